#include "agent/procfs/guarded/file_server.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/frame.h"

namespace perfd::agent {
namespace {

// The agent's end is closed: whatever is being read, nobody waits for it.
void EndWithAgent(int socket) {
  pollfd gone{socket, POLLRDHUP, 0};
  while (::poll(&gone, 1, -1) <= 0) continue;
  ::_exit(0);
}

}  // namespace

std::string EncodeRead(const SlowRead& read) {
  return absl::StrCat(static_cast<int>(read.what), " ", read.limit, " ", read.offset, " ",
                      read.owner_uid, " ", read.path);
}

absl::StatusOr<SlowRead> DecodeRead(absl::string_view message) {
  const std::vector<absl::string_view> parts = absl::StrSplit(message, absl::MaxSplits(' ', 4));
  SlowRead read;
  int what = 0;
  if (parts.size() != 5 || !absl::SimpleAtoi(parts[0], &what) || what < 0 ||
      what > static_cast<int>(SlowRead::What::kExecutableMaps) ||
      !absl::SimpleAtoi(parts[1], &read.limit) || !absl::SimpleAtoi(parts[2], &read.offset) ||
      !absl::SimpleAtoi(parts[3], &read.owner_uid))
    return absl::InvalidArgumentError("not a request to read a file");
  read.what = static_cast<SlowRead::What>(what);
  read.path = std::string(parts[4]);
  return read;
}

// The code, then the contents or the text of the error.
std::string EncodeAnswer(const absl::StatusOr<std::string>& answer) {
  const bool fits = !answer.ok() || answer->size() < kMaxFrameBytes;
  const absl::Status status =
      fits ? answer.status() : absl::ResourceExhaustedError("longer than an answer may be");
  std::string message(1, static_cast<char>(status.code()));
  absl::StrAppend(&message, status.ok() ? absl::string_view(*answer) : status.message());
  return message;
}

absl::StatusOr<std::string> DecodeAnswer(absl::string_view message) {
  if (message.empty()) return absl::InvalidArgumentError("an empty answer");
  const auto code = static_cast<absl::StatusCode>(message[0]);
  message.remove_prefix(1);
  if (code == absl::StatusCode::kOk) return std::string(message);
  return absl::Status(code, message);
}

void ServeSlowFiles(int socket, PerformRead perform) {
  std::thread(EndWithAgent, socket).detach();
  if (!SendFrame(socket, "ready", kNoDeadline).ok()) return;
  while (true) {
    const absl::StatusOr<std::string> message = ReceiveFrame(socket, kNoDeadline);
    if (!message.ok()) return;
    const absl::StatusOr<SlowRead> read = DecodeRead(*message);
    const absl::StatusOr<std::string> answer = read.ok() ? perform(*read) : read.status();
    if (!SendFrame(socket, EncodeAnswer(answer), kNoDeadline).ok()) return;
  }
}

}  // namespace perfd::agent
