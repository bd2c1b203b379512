#include "daemon/reload.h"

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/log_file.h"
#include "core/base/status_macros.h"
#include "daemon/perfd_config.h"

namespace perfd::daemon {

// Everything is said at the end: in the log that is open then.
int Reloader::Reload() {
  std::vector<std::string> wrong;
  ConfigChanges changes;
  absl::StatusOr<PerfdFlags> wanted = read_();
  if (wanted.ok()) {
    changes = AdoptLive(PerfdConfig(*wanted), PerfdConfig(running_));
  } else {
    wrong.push_back(absl::StrCat("the configuration stays as it was: ", wanted.status().message()));
  }
  for (const LiveSetting& setting : settings_) {
    const absl::Status status = setting.apply(running_);
    if (!status.ok())
      wrong.push_back(
          absl::StrCat(setting.in_part ? "the rest of " : "the ", setting.name,
                       setting.in_part ? " is new: " : " stays as it was: ", status.message()));
  }
  for (const std::string& change : changes.taken) LogInfo("reload: {}", change);
  for (const std::string& change : changes.refused)
    LogWarning("reload: {} needs a restart of perfd", change);
  for (const std::string& error : wrong) LogError("reload: {}", error);
  if (wrong.empty() && changes.refused.empty()) LogInfo("reloaded");
  return static_cast<int>(wrong.size() + changes.refused.size());
}

absl::Status ApplyLog(const PerfdFlags& flags) {
  LogLevel level = LogLevel::kInfo;
  RETURN_IF_ERROR(ParseLogLevel(flags.log_level, &level));
  SetLogLevel(level);
  return LogToFile(flags.log_file);
}

}  // namespace perfd::daemon
