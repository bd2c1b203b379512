#include "client/notify/on_done.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace perfd::client {
namespace {

// Ours replace what is there of the same names.
std::vector<std::string> EnvironmentOf(const ProfileStatus& status) {
  std::vector<std::string> out = {absl::StrCat("PERFD_PROFILE=", status.id),
                                  absl::StrCat("PERFD_STATE=", ProfileStateName(status.state)),
                                  absl::StrCat("PERFD_END=", EndReasonKey(status.course.end))};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const bool ours = absl::StartsWith(text, "PERFD_PROFILE=") ||
                      absl::StartsWith(text, "PERFD_STATE=") ||
                      absl::StartsWith(text, "PERFD_END=");
    if (!ours) out.emplace_back(text);
  }
  return out;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

absl::Status RunOnDone(const std::string& command, const ProfileStatus& status) {
  std::vector<std::string> words = {"sh", "-c", command};
  std::vector<std::string> environment = EnvironmentOf(status);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/bin/sh", nullptr, nullptr, Pointers(words).data(),
                                  Pointers(environment).data());
  if (error != 0) return absl::UnavailableError(absl::StrCat("/bin/sh: ", strerror(error)));
  int code = 0;
  while (::waitpid(child, &code, 0) < 0) {
    if (errno != EINTR) return absl::InternalError(absl::StrCat("waitpid: ", strerror(errno)));
  }
  if (WIFEXITED(code) && WEXITSTATUS(code) == 0) return absl::OkStatus();
  return absl::AbortedError(WIFSIGNALED(code) ? absl::StrCat("ended by signal ", WTERMSIG(code))
                                              : absl::StrCat("ended with ", WEXITSTATUS(code)));
}

}  // namespace perfd::client
