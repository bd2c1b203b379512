#include "daemon/relay/relayed_connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "absl/strings/string_view.h"
#include "daemon/relay/refusal_frames.h"

namespace perfd::daemon {

RelayedConnection::~RelayedConnection() {
  // The counting of connections has a second descriptor of it, which tells of a shutdown only.
  ::shutdown(client_.get(), SHUT_RDWR);
}

bool RelayedConnection::Read(const UniqueFd& from, Direction& direction) {
  if (!direction.bytes.empty() || direction.has_ended) return false;
  std::array<char, kTurnBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled
  const ssize_t size = ::recv(from.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size > 0) {
    direction.bytes.assign(buffer.data(), static_cast<size_t>(size));
    return true;
  }
  if (size == 0 || (errno != EAGAIN && errno != EINTR)) direction.has_ended = true;
  return size == 0 || errno == EINTR;
}

bool RelayedConnection::Write(const UniqueFd& to, Direction& direction) {
  if (direction.ready == 0) return false;
  const ssize_t size =
      ::send(to.get(), direction.bytes.data(), direction.ready, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (size < 0) {
    if (errno == EAGAIN) return false;
    if (errno == EINTR || errno == ENOBUFS || errno == ENOMEM) return true;
    direction.bytes = {};
    direction.ready = 0;
    direction.is_lost = true;
    return true;
  }
  direction.bytes.erase(0, static_cast<size_t>(size));
  if (direction.bytes.empty()) direction.bytes = {};
  direction.ready -= static_cast<size_t>(size);
  return true;
}

bool RelayedConnection::MoveRequests(int64_t now_ns) {
  bool moved = Read(client_, requests_);
  if (!refused().ok() || requests_.is_lost) {  // what comes now is for nobody: only its end
    ending_.Drop(requests_.bytes.size());
    requests_.bytes = {};
    requests_.ready = 0;
    return moved;
  }
  meter_.frames().Tick(now_ns);
  do {
    requests_.ready += meter_.Pass(absl::string_view(requests_.bytes).substr(requests_.ready));
  } while (meter_.status().ok() && admission_.Proceed(meter_, now_ns));
  moved |= Write(server_, requests_);
  return moved;
}

bool RelayedConnection::MoveAnswers() {
  bool moved = false;
  if (!has_said_it_) {
    moved = Read(server_, answers_);
    if (moved) meter_.Answered(answers_.bytes);
    if (!refused().ok() && meter_.answers_may_be_cut()) SayRefusal();
  }
  answers_.ready = answers_.bytes.size();
  moved |= Write(client_, answers_);
  return moved;
}

void RelayedConnection::SayRefusal() {
  answers_.bytes +=
      RefusalFrames(refused(), meter_.call(), meter_.call_is_answered(), meter_.newest_call());
  has_said_it_ = true;
}

bool RelayedConnection::IsOver() const {
  // The rest of what either said has been given on, or cannot be.
  if (requests_.has_ended && requests_.ready == 0) return true;
  if (is_hung_up_ && admission_.is_waiting()) return true;
  return answers_.has_ended && answers_.bytes.empty() && !has_said_it_;
}

RelayedConnection::Outcome RelayedConnection::Move(int64_t now_ns) {
  bool moved = MoveAnswers();
  moved |= MoveRequests(now_ns);
  if (!refused().ok() && !has_said_it_) moved |= MoveAnswers();
  if (IsOver()) return Outcome::kOver;
  const bool is_ending = !refused().ok() || answers_.has_ended || requests_.has_ended ||
                         requests_.is_lost || answers_.is_lost;
  if (is_ending) ending_.Begin(now_ns);
  if (ending_.is_over(now_ns)) return Outcome::kOver;
  if (moved) return Outcome::kAgain;
  return admission_.is_waiting() || ending_.has_begun() ? Outcome::kTimed : Outcome::kIdle;
}

}  // namespace perfd::daemon
