// core/spec/config_table.h - configuration files of the daemons: one table of keys reads, prints and compares them.
//
// Shape    a table binds each key to a field of the program's flags: ReadConfig(FormatConfig(t)) changes nothing in t.
//          Keys are "name" or "section.name"; paths are absolute, as a service has no folder of its own.
// Errors   ReadConfig: kInvalidArgument with every error found, one per line: "line L, column C: ...". Fields may then
//          be half read: read into a copy.
// Threads  thread-compatible.
#ifndef CORE_SPEC_CONFIG_TABLE_H_
#define CORE_SPEC_CONFIG_TABLE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace perfd {

using ConfigField = std::variant<std::string*, int64_t*, bool*, std::vector<std::string>*>;

enum class ConfigForm { kPlain, kPath, kChoice };

struct ConfigKey {
  absl::string_view path;
  ConfigField field;
  bool live = false;  // may change while the program runs
  ConfigForm form = ConfigForm::kPlain;
  absl::string_view choices = "";  // of kChoice, separated by '|'
  int64_t low = 0;                 // of whole numbers
  int64_t high = 0;
};

struct ConfigTable {
  absl::string_view kind;  // "DaemonConfig"
  std::vector<ConfigKey> keys;
};

inline constexpr size_t kMaxConfigText = 4096;  // bytes of one value
inline constexpr size_t kMaxConfigTexts = 256;  // values of one list

// Strict: unknown and duplicate keys, wrong types and ranges are errors. What is not given keeps its value.
absl::Status ReadConfig(absl::string_view text, const ConfigTable& table);

// Every key with its value, as a configuration file.
std::string FormatConfig(const ConfigTable& table);

// What a running program made of a new configuration.
struct ConfigChanges {
  std::vector<std::string> taken;    // "log.level: info -> debug"
  std::vector<std::string> refused;  // the same, of keys that only a restart changes
};

// Carries the values of live keys from `wanted` over to `running`. Both tables have the same keys.
ConfigChanges AdoptLive(const ConfigTable& wanted, const ConfigTable& running);

}  // namespace perfd

#endif  // CORE_SPEC_CONFIG_TABLE_H_
