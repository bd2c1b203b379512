#include "daemon/relay/request_meter.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace perfd::daemon {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

}  // namespace

size_t RequestMeter::Pass(absl::string_view bytes) {
  size_t passed = PassPreface(bytes);
  while (passed < bytes.size() && status_.ok() && needed_ == 0 && !call_waits_) {
    absl::string_view rest = bytes.substr(passed);
    const bool data = requests_.payload_left() > 0 && requests_.head().type == FrameType::kData;
    if (data) {
      rest = rest.substr(
          0, PassData(requests_.head().stream, rest.substr(0, requests_.payload_left())));
      if (rest.empty()) break;
    }
    const FrameReader::Piece piece = requests_.Next(rest);
    if (piece.ends_head) BeginFrame();
    passed += piece.size;
  }
  return status_.ok() ? passed : 0;
}

size_t RequestMeter::PassPreface(absl::string_view bytes) {
  const absl::string_view wanted = kPreface.substr(preface_size_, bytes.size());
  if (!absl::StartsWith(bytes, wanted)) {
    Fail(absl::InvalidArgumentError("this is not HTTP/2"));
    return 0;
  }
  preface_size_ += wanted.size();
  return wanted.size();
}

void RequestMeter::Fail(absl::Status status) {
  status_ = std::move(status);
  call_ = 0;
}

void RequestMeter::BeginFrame() {
  const FrameHeader& head = requests_.head();
  if (head.type == FrameType::kResetStream) return EndCall(head.stream);
  if (head.type == FrameType::kData && (head.flags & kPadded) != 0)
    Fail(absl::InvalidArgumentError("padded DATA"));
  // Numbers that are even, or not new, begin no call: gRPC leaves them out as well.
  if (head.type != FrameType::kHeaders || head.stream % 2 == 0 || head.stream <= newest_) return;
  if (calls_.size() >= kMostCalls) {
    return Fail(absl::ResourceExhaustedError(
        absl::StrCat("more than ", kMostCalls, " calls on one connection")));
  }
  newest_ = head.stream;
  calls_[newest_];
  call_waits_ = true;
}

size_t RequestMeter::PassData(uint32_t stream, absl::string_view data) {
  const auto found = calls_.find(stream);
  if (found == calls_.end()) return data.size();  // it has ended: gRPC drops that
  Call& call = found->second;
  if (call.left > 0) {
    const size_t size = std::min<size_t>(call.left, data.size());
    call.left -= static_cast<uint32_t>(size);
    return size;
  }
  const size_t size = std::min(kPrefixBytes - call.prefix_size, data.size());
  std::copy_n(data.begin(), size,
              call.prefix.begin() + static_cast<std::ptrdiff_t>(call.prefix_size));
  call.prefix_size += size;
  if (call.prefix_size == kPrefixBytes) BeginMessage(stream, call);
  return status_.ok() ? size : 0;
}

void RequestMeter::BeginMessage(uint32_t stream, Call& call) {
  call.prefix_size = 0;
  call.room = {};
  const auto& p = call.prefix;
  const uint32_t size = static_cast<uint32_t>(p[1]) << 24 | static_cast<uint32_t>(p[2]) << 16 |
                        static_cast<uint32_t>(p[3]) << 8 | p[4];
  call_ = stream;
  if (p[0] != 0) {
    status_ = absl::InvalidArgumentError("compressed messages are not taken");
  } else if (size > most_bytes_) {
    status_ = absl::ResourceExhaustedError(
        absl::StrCat("a message of ", size, " bytes is over the limit of ", most_bytes_));
  } else {
    call.left = size;
    if (size > kFreeBytes) needed_ = size;
  }
}

void RequestMeter::Admit(Share room) {
  if (const auto found = calls_.find(call_); found != calls_.end())
    found->second.room = std::move(room);
  needed_ = 0;
}

void RequestMeter::EndCall(uint32_t stream) {
  calls_.erase(stream);
  if (stream == call_) needed_ = 0;
}

void RequestMeter::Answered(absl::string_view bytes) {
  while (!bytes.empty()) {
    const FrameReader::Piece piece = answers_.Next(bytes);
    bytes.remove_prefix(piece.size);
    if (!piece.ends_head) continue;
    has_settings_ = true;
    const FrameHeader& head = answers_.head();
    const bool headers = head.type == FrameType::kHeaders;
    if (headers || head.type == FrameType::kContinuation)
      in_headers_ = (head.flags & kEndHeaders) == 0;
    if (const auto call = calls_.find(head.stream); headers && call != calls_.end())
      call->second.answered = true;
    const bool last = (headers || head.type == FrameType::kData) && (head.flags & kEndStream) != 0;
    if (last || head.type == FrameType::kResetStream) EndCall(head.stream);
  }
}

bool RequestMeter::call_is_answered() const {
  const auto found = calls_.find(call_);
  return found != calls_.end() && found->second.answered;
}

}  // namespace perfd::daemon
