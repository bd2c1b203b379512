#include "core/service/account.h"

#include <pwd.h>

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace perfd {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

}  // namespace

absl::StatusOr<uint32_t> UidOf(const std::string& user) {
  uint32_t uid = 0;
  // 4294967295 is "no user" to the kernel (setresuid(2)).
  if (absl::SimpleAtoi(user, &uid) && uid != UINT32_MAX) return uid;
  std::vector<char> buffer(kBufferBytes);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("this host knows no user '", user, "'"));
  return found->pw_uid;
}

}  // namespace perfd
