#include "daemon/relay/request_meter.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace perfd::daemon {
namespace {

constexpr uint32_t kMostFrameBytes =
    16 << 10;  // RFC 9113, SETTINGS_MAX_FRAME_SIZE: gRPC announces no other
constexpr uint32_t kResetBytes = 4;
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

}  // namespace

size_t RequestMeter::Pass(absl::string_view bytes) {
  size_t passed = PassPreface(bytes);
  while (passed < bytes.size() && status_.ok() && wait_.needed == 0 && !wait_.call) {
    absl::string_view rest = bytes.substr(passed);
    const bool data = requests_.payload_left() > 0 && requests_.head().type == FrameType::kData;
    if (data) {
      rest = rest.substr(
          0, PassData(requests_.head().stream, rest.substr(0, requests_.payload_left())));
      if (rest.empty()) break;
      frames_.Earn(static_cast<int64_t>(rest.size()));
    }
    const FrameReader::Piece piece = requests_.Next(rest);
    if (piece.ends_head) BeginFrame();
    if (requests_.between_frames()) EndFrame();
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
  const FrameHeader& header = requests_.head();
  const bool asks = header.type == FrameType::kPing && (header.flags & kAck) == 0;
  if (!frames_.Spend(asks ? FrameBudget::kPingCost : FrameBudget::kFrameCost))
    return Fail(absl::ResourceExhaustedError("more frames than a client of gRPC sends"));
  if (header.length > kMostFrameBytes)
    return Fail(absl::InvalidArgumentError(absl::StrCat("a frame of ", header.length, " bytes")));
  if (header.type == FrameType::kData && (header.flags & ~kEndStream) != 0)
    return Fail(absl::InvalidArgumentError("DATA with flags"));
  if (header.type == FrameType::kResetStream && header.length != kResetBytes)
    return Fail(absl::InvalidArgumentError("RST_STREAM of another size"));
  const bool begins = header.type == FrameType::kHeaders;
  if (!begins && header.type != FrameType::kContinuation) return;
  if (const absl::Status taken = newest_.Add(header); !taken.ok()) return Fail(taken);
  if (!begins) return;
  if (calls_.size() >= kMostCalls)
    return Fail(absl::ResourceExhaustedError(
        absl::StrCat("more than ", kMostCalls, " calls on one connection")));
  calls_[header.stream];
  wait_.call = true;
  frames_.Earn(FrameBudget::kCall);
}

// What gRPC has only a part of does not end a call yet.
void RequestMeter::EndFrame() {
  if (requests_.head().type == FrameType::kResetStream) EndCall(requests_.head().stream);
}

void RequestMeter::BeginCall(Share place) {
  wait_.call = false;
  if (const auto call = calls_.find(newest_.stream()); call != calls_.end())
    call->second.place = std::move(place);
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
  const auto& p = call.prefix;
  const uint32_t size = static_cast<uint32_t>(p[1]) << 24 | static_cast<uint32_t>(p[2]) << 16 |
                        static_cast<uint32_t>(p[3]) << 8 | p[4];
  call_ = stream;
  if (p[0] != 0) {
    status_ = absl::InvalidArgumentError("compressed messages are not taken");
  } else if (const uint32_t most = call.answered ? sizes_.most : sizes_.most_question;
             size > most) {
    status_ = absl::ResourceExhaustedError(
        absl::StrCat("a message of ", size, " bytes is over the limit of ", most));
  } else {
    call.left = size;
    if (size <= kFreeBytes || size <= call.room_bytes) return;
    wait_.needed = size - call.room_bytes;
    ++wait_.messages;
  }
}

void RequestMeter::Admit(Share room) {
  if (const auto found = calls_.find(call_); found != calls_.end()) {
    found->second.room.Add(std::move(room));
    found->second.room_bytes += wait_.needed;
  }
  wait_.needed = 0;
}

void RequestMeter::EndCall(uint32_t stream) {
  calls_.erase(stream);
  if (stream == call_) wait_.needed = 0;
}

void RequestMeter::Answered(absl::string_view bytes) {
  while (!bytes.empty()) {
    const AnswerReader::Piece piece = answers_.Next(bytes);
    bytes.remove_prefix(piece.size);
    frames_.Earn(static_cast<int64_t>(piece.data));
    if (const auto call = calls_.find(piece.stream); piece.headers && call != calls_.end())
      call->second.answered = true;
    if (piece.last) EndCall(piece.stream);
  }
}

bool RequestMeter::call_is_answered() const {
  const auto found = calls_.find(call_);
  return found != calls_.end() && found->second.answered;
}

}  // namespace perfd::daemon
