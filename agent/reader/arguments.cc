#include "agent/reader/arguments.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kNumberCount = 10;
constexpr size_t kUnwindNumberCount = 4;
constexpr char kUsage[] =
    "usage: perf-agent-reader PID UID GID MAJOR MINOR INODE MAP_START MAP_END MEMORY LINES PATH, "
    "or perf-agent-reader unwind PID UID GID MEMORY, or perf-agent-reader host "
    "(started by perf-agent, socket on descriptor 3)";

absl::StatusOr<std::vector<uint64_t>> Numbers(std::vector<std::string>::const_iterator word,
                                              size_t count) {
  std::vector<uint64_t> numbers(count);
  for (size_t i = 0; i < count; ++i, ++word) {
    if (!absl::SimpleAtoi(*word, &numbers[i]))
      return absl::InvalidArgumentError(
          absl::StrCat("argument ", i + 1, ": '", *word, "' is not a number"));
  }
  return numbers;
}

template <typename T>
absl::Status ParseId(uint64_t number, absl::string_view name, T& out) {
  if (number > static_cast<uint64_t>(std::numeric_limits<T>::max()))
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", number, " is too large"));
  out = static_cast<T>(number);
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> FormatArguments(const ReaderArguments& arguments) {
  const ModuleFile& file = arguments.file;
  return {absl::StrCat(file.pid),
          absl::StrCat(file.uid),
          absl::StrCat(file.gid),
          absl::StrCat(file.device_major),
          absl::StrCat(file.device_minor),
          absl::StrCat(file.inode),
          absl::StrCat(file.map_start),
          absl::StrCat(file.map_end),
          absl::StrCat(arguments.memory_limit_bytes),
          arguments.detail == ModuleDetail::kLines ? "1" : "0",
          file.path};
}

std::vector<std::string> FormatArguments(const UnwindArguments& arguments) {
  const UnwindProcess& process = arguments.process;
  return {kUnwindMode, absl::StrCat(process.pid), absl::StrCat(process.uid),
          absl::StrCat(process.gid), absl::StrCat(arguments.memory_limit_bytes)};
}

absl::StatusOr<UnwindArguments> ParseUnwindArguments(const std::vector<std::string>& arguments) {
  if (arguments.size() != kUnwindNumberCount + 1 || arguments[0] != kUnwindMode)
    return absl::InvalidArgumentError(kUsage);
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers,
                   Numbers(arguments.begin() + 1, kUnwindNumberCount));
  UnwindArguments out;
  RETURN_IF_ERROR(ParseId(numbers[0], "pid", out.process.pid));
  RETURN_IF_ERROR(ParseId(numbers[1], "uid", out.process.uid));
  RETURN_IF_ERROR(ParseId(numbers[2], "gid", out.process.gid));
  out.memory_limit_bytes = numbers[3];
  return out;
}

absl::StatusOr<ReaderArguments> ParseArguments(const std::vector<std::string>& arguments) {
  if (arguments.size() != kNumberCount + 1) return absl::InvalidArgumentError(kUsage);
  ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, Numbers(arguments.begin(), kNumberCount));
  ReaderArguments out;
  RETURN_IF_ERROR(ParseId(numbers[0], "pid", out.file.pid));
  RETURN_IF_ERROR(ParseId(numbers[1], "uid", out.file.uid));
  RETURN_IF_ERROR(ParseId(numbers[2], "gid", out.file.gid));
  RETURN_IF_ERROR(ParseId(numbers[3], "device major", out.file.device_major));
  RETURN_IF_ERROR(ParseId(numbers[4], "device minor", out.file.device_minor));
  out.file.inode = numbers[5];
  out.file.map_start = numbers[6];
  out.file.map_end = numbers[7];
  out.memory_limit_bytes = numbers[8];
  if (numbers[9] > 1)
    return absl::InvalidArgumentError(absl::StrCat("lines: ", numbers[9], " is not 0 or 1"));
  out.detail = numbers[9] == 1 ? ModuleDetail::kLines : ModuleDetail::kNames;
  out.file.path = arguments[kNumberCount];
  return out;
}

}  // namespace perfd::agent
