#include "core/base/frame.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 16;
constexpr int64_t kMaxWaitMs = 60'000;  // one poll; the deadline decides

absl::Status Gone(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("socket: ", what));
}

// Waits until the socket is ready for `events`.
absl::Status Await(int socket, int16_t events, int64_t deadline_ns) {
  while (true) {
    int64_t wait_ms = kMaxWaitMs;
    if (deadline_ns != kNoDeadline) {
      const int64_t left_ns = deadline_ns - SystemClock().MonotonicNs();
      if (left_ns <= 0) return absl::DeadlineExceededError("socket: no answer in time");
      wait_ms = std::min(kMaxWaitMs, left_ns / kNsPerMs + 1);
    }
    pollfd ready{socket, events, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(wait_ms));
    if (count > 0) return absl::OkStatus();
    if (count < 0 && errno != EINTR) return Gone(strerror(errno));
  }
}

absl::Status SendAll(int socket, absl::string_view bytes, int64_t deadline_ns) {
  while (!bytes.empty()) {
    RETURN_IF_ERROR(Await(socket, POLLOUT, deadline_ns));
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    if (sent < 0 && errno != EINTR && errno != EAGAIN) return Gone(strerror(errno));
  }
  return absl::OkStatus();
}

// Memory grows with what has come, not with what the peer announced.
absl::Status ReceiveAll(int socket, size_t size, std::string& out, int64_t deadline_ns) {
  while (out.size() < size) {
    RETURN_IF_ERROR(Await(socket, POLLIN, deadline_ns));
    const size_t before = out.size();
    out.resize(std::min(size, before + kChunkBytes));
    const ssize_t got = ::recv(socket, out.data() + before, out.size() - before, MSG_DONTWAIT);
    out.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return Gone("closed by the other side");
    if (got < 0 && errno != EINTR && errno != EAGAIN) return Gone(strerror(errno));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SendFrame(int socket, absl::string_view message, int64_t deadline_ns) {
  if (message.size() > kMaxFrameBytes)
    return absl::ResourceExhaustedError(
        absl::StrCat("message of ", message.size(), " bytes: over the limit"));
  std::array<char, 4> length;
  for (size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<char>((message.size() >> (8 * i)) & 0xFF);
  RETURN_IF_ERROR(SendAll(socket, {length.data(), length.size()}, deadline_ns));
  return SendAll(socket, message, deadline_ns);
}

absl::StatusOr<std::string> ReceiveFrame(int socket, int64_t deadline_ns) {
  std::string head;
  RETURN_IF_ERROR(ReceiveAll(socket, 4, head, deadline_ns));
  size_t length = 0;
  for (size_t i = 0; i < head.size(); ++i)
    length |= static_cast<size_t>(static_cast<unsigned char>(head[i])) << (8 * i);
  if (length > kMaxFrameBytes)
    return absl::ResourceExhaustedError(
        absl::StrCat("message of ", length, " bytes: over the limit"));
  std::string message;
  RETURN_IF_ERROR(ReceiveAll(socket, length, message, deadline_ns));
  return message;
}

}  // namespace perfd
