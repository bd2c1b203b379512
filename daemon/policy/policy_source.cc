#include "daemon/policy/policy_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "core/spec/policy.h"

namespace perfd::daemon {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;  // the parser's own limit is lower, and says so

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  // A FIFO in its place must not make the daemon wait.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("policy ", path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("policy ", path, " is not a file"));
  std::string text;
  std::array<char, 16384> buffer{};
  while (text.size() < kMaxBytes) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("read policy ", path));
    if (got == 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return text;
}

absl::StatusOr<std::shared_ptr<const Policy>> Load(const std::string& path) {
  if (path.empty()) return std::shared_ptr<const Policy>();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<Policy> policy = ParsePolicy(text);
  if (!policy.ok())
    return absl::Status(policy.status().code(),
                        absl::StrCat("policy ", path, ": ", policy.status().message()));
  return std::make_shared<const Policy>(*std::move(policy));
}

}  // namespace

absl::Status PolicySource::Reload() {
  absl::StatusOr<std::shared_ptr<const Policy>> loaded = Load(path_);
  MutexLock lock(&mutex_);
  error_ = std::string(loaded.status().message());
  RETURN_IF_ERROR(loaded.status());
  policy_ = *std::move(loaded);
  return absl::OkStatus();
}

std::shared_ptr<const Policy> PolicySource::Get() const {
  MutexLock lock(&mutex_);
  return policy_;
}

std::string PolicySource::error() const {
  MutexLock lock(&mutex_);
  return error_;
}

std::string PolicySource::Describe() const {
  const std::shared_ptr<const Policy> policy = Get();
  if (policy == nullptr) return "";
  std::string text = policy->every == 0   ? "jobs that ask for it"
                     : policy->every == 1 ? "every job"
                                          : absl::StrCat("one of every ", policy->every, " jobs");
  absl::StrAppend(&text, ", at most ", policy->quota_active, " at a time and ",
                  policy->quota_per_day, " a day");
  if (!policy->rules.empty())
    absl::StrAppend(&text, ", ", policy->rules.size(),
                    policy->rules.size() == 1 ? " rule" : " rules");
  return absl::StrCat(text, " (", path_, ")");
}

DoctorCheck PolicySource::Check() const {
  const std::string wrong = error();
  DoctorCheck check{
      .name = "policy", .ok = wrong.empty(), .optional = true, .found = Describe(), .fix = ""};
  if (check.found.empty()) check.found = "none: no job is profiled without being asked for";
  if (!check.ok) {
    absl::StrAppend(&check.found,
                    "; the file is not taken: ", absl::StrReplaceAll(wrong, {{"\n", "; "}}));
    check.fix = absl::StrCat("correct ", path_, " and `systemctl reload perfd`");
  }
  return check;
}

}  // namespace perfd::daemon
