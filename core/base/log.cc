#include "core/base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/log_file.h"
#include "core/base/unique_fd.h"
#include "core/base/utf8.h"

namespace perfd {
namespace {

constexpr mode_t kLogMode = 0640;  // names users and programs

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

bool WriteAll(int fd, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t put = ::write(fd, text, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text += put;
    size -= static_cast<size_t>(put);
  }
  return true;
}

// Standard error, or a file that can be changed for another between two lines.
class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void Use(UniqueFd file) {
    const std::lock_guard<std::mutex> lock(mutex_);
    file_ = std::move(file);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (file_.valid() && WriteAll(file_.get(), line.data(), line.size())) return;
    (void)WriteAll(STDERR_FILENO, line.data(), line.size());
  }
  void flush_() override {}

 private:
  UniqueFd file_;
};

constexpr size_t kMaxLineBytes = 4096;

absl::StatusOr<UniqueFd> OpenLog(const std::string& path) {
  // Never waits for the reader of a pipe, never follows a link that someone else put there.
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  UniqueFd file(::open(path.c_str(), flags, kLogMode));
  if (!file.valid()) {
    const int error = errno;
    const std::string why = absl::StrCat("cannot log to ", path, ": ", std::strerror(error));
    if (error == ELOOP || error == ENXIO) return absl::InvalidArgumentError(why);
    return error == ENOENT ? absl::NotFoundError(why) : absl::PermissionDeniedError(why);
  }
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("cannot log to ", path, ": not a regular file"));
  return file;
}

}  // namespace

std::string OneLine(absl::string_view text) {
  std::string line;
  size_t done = 0;
  while (done < text.size() && line.size() < kMaxLineBytes) {
    const absl::string_view rest = text.substr(done);
    const absl::string_view character = rest.substr(0, Utf8SequenceLength(rest));
    if (character.empty() || IsControlCharacter(character)) {
      const size_t bytes = std::max<size_t>(character.size(), 1);
      for (const char c : rest.substr(0, bytes))
        absl::StrAppend(&line, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
      done += bytes;
    } else {
      absl::StrAppend(&line, character);
      done += character.size();
    }
  }
  if (done < text.size()) absl::StrAppend(&line, "... (", text.size() - done, " bytes more)");
  return line;
}

void InitLog(absl::string_view program, LogLevel lowest) {
  auto logger =
      std::make_shared<spdlog::logger>(std::string(program), std::make_shared<LineSink>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %n %^%l%$ %v");
  logger->set_level(ToSpdlog(lowest));
  spdlog::set_default_logger(std::move(logger));
  ::signal(SIGPIPE, SIG_IGN);  // who reads the log may have gone: that ends nobody
}

void SetLogLevel(LogLevel lowest) {
  spdlog::default_logger_raw()->set_level(ToSpdlog(lowest));
}

absl::Status LogToFile(const std::string& path) {
  const auto& sinks = spdlog::default_logger_raw()->sinks();
  // Another sink only where InitLog was not called.
  auto* sink = sinks.empty() ? nullptr : dynamic_cast<LineSink*>(sinks.front().get());
  if (sink == nullptr) return absl::FailedPreconditionError("the log is not set up");
  if (path.empty()) {
    sink->Use(UniqueFd());
    return absl::OkStatus();
  }
  auto file = OpenLog(path);
  if (!file.ok()) return file.status();
  sink->Use(*std::move(file));
  return absl::OkStatus();
}

absl::Status ParseLogLevel(absl::string_view text, LogLevel* level) {
  if (text == "debug")
    *level = LogLevel::kDebug;
  else if (text == "info")
    *level = LogLevel::kInfo;
  else if (text == "warning")
    *level = LogLevel::kWarning;
  else if (text == "error")
    *level = LogLevel::kError;
  else
    return absl::InvalidArgumentError(
        absl::StrCat("log level '", text, "' is not one of debug, info, warning, error"));
  return absl::OkStatus();
}

void LogLine(LogLevel level, const std::string& line) {
  spdlog::default_logger_raw()->log(ToSpdlog(level), "{}", OneLine(line));
}

}  // namespace perfd
