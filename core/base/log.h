// core/base/log.h - the one log facade: Log(level, format, args...) to standard error.
//
// Shape    perfd::LogInfo("listening on {}", address);
// Bounds   a line is one line of at most 4 KB: control bytes are written as \xNN, whoever they came from.
// Threads  thread-safe.
#ifndef CORE_BASE_LOG_H_
#define CORE_BASE_LOG_H_

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"

namespace perfd {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Sets the program name shown in each line and the lowest level that is written. Call once, in main.
void InitLog(absl::string_view program, LogLevel lowest);

// One of "debug", "info", "warning", "error".
absl::Status ParseLogLevel(absl::string_view text, LogLevel* level);

void LogLine(LogLevel level, const std::string& line);

// What others wrote may be in it: a line is one line, moves no cursor, and is not longer than people read. As the log shows it, for what
// a program prints.
std::string OneLine(absl::string_view text);

template <typename... Args>
void LogDebug(fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

// absl::Status for fmt (its own formatter would need a newer Abseil).
inline std::string Text(const absl::Status& status) {
  return status.ToString();
}

// Lines that somebody else may cause as often as they like: one a second, with how many were left out. Thread-compatible: a lock of
// the owner's covers it.
class RareLog {
 public:
  // To be written now, with how many were left out since the last one; nothing: this one is left out, too.
  std::optional<uint64_t> Next(int64_t now_ns) {
    if (written_ns_.has_value() && now_ns - *written_ns_ < kNsPerSecond) {
      ++left_out_;
      return std::nullopt;
    }
    written_ns_ = now_ns;
    return std::exchange(left_out_, 0);
  }

 private:
  std::optional<int64_t> written_ns_;
  uint64_t left_out_ = 0;
};

}  // namespace perfd

#endif  // CORE_BASE_LOG_H_
