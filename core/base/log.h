// core/base/log.h - the one log facade: Log(level, format, args...) to standard error.
//
// Shape    perfd::LogInfo("listening on {}", address);
// Bounds   a line is one line of at most 4 KB: control bytes are written as \xNN, whoever they came from.
// Threads  thread-safe.
#ifndef CORE_BASE_LOG_H_
#define CORE_BASE_LOG_H_

#include <fmt/format.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

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

}  // namespace perfd

#endif  // CORE_BASE_LOG_H_
