#include "agent/procfs/process_rights.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

constexpr size_t kNameBufferBytes = 16384;

std::string UserName(uint32_t uid) {
  std::array<char, kNameBufferBytes> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return error == 0 && found != nullptr ? found->pw_name : std::string();
}

std::string GroupName(uint32_t gid) {
  std::array<char, kNameBufferBytes> buffer{};
  group entry{};
  group* found = nullptr;
  const int error = ::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found);
  return error == 0 && found != nullptr ? found->gr_name : absl::StrCat("gid ", gid);
}

// The first id that is not the real one.
const uint32_t* Borrowed(const std::array<uint32_t, 3>& ids) {
  const auto* other =
      std::find_if(ids.begin(), ids.end(), [&](uint32_t id) { return id != ids[0]; });
  return other == ids.end() ? nullptr : other;
}

}  // namespace

std::string UserText(uint32_t uid) {
  const std::string name = UserName(uid);
  return name.empty() ? absl::StrCat("uid ", uid) : absl::StrCat(name, " (uid ", uid, ")");
}

ProcessRights RightsOf(const ProcessStatus& status) {
  return {{status.real_uid, status.effective_uid, status.saved_uid},
          {status.real_gid, status.effective_gid, status.saved_gid},
          status.capabilities.permitted};
}

ProcessRights WithoutCapabilities(ProcessRights rights) {
  rights.capabilities = 0;
  return rights;
}

absl::Status CheckPlain(const ProcessRights& rights, const std::string& who) {
  if (const uint32_t* uid = Borrowed(rights.uids)) {
    const std::string name = UserName(*uid);
    return absl::PermissionDeniedError(absl::StrCat(
        who, " runs with the rights of ", name.empty() ? absl::StrCat("uid ", *uid) : name,
        " (setuid); only an administrator may profile it"));
  }
  if (const uint32_t* gid = Borrowed(rights.gids)) {
    return absl::PermissionDeniedError(
        absl::StrCat(who, " runs with the rights of group ", GroupName(*gid),
                     " (setgid); only an administrator may profile it"));
  }
  if (rights.capabilities != 0 && rights.uids[0] != 0) {
    return absl::PermissionDeniedError(absl::StrCat(who, " has capabilities (0x",
                                                    absl::Hex(rights.capabilities),
                                                    "); only an administrator may profile it"));
  }
  return absl::OkStatus();
}

}  // namespace perfd::agent
