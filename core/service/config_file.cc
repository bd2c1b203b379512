#include "core/service/config_file.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/status_macros.h"
#include "core/service/trusted_file.h"
#include "core/spec/yaml_tree.h"

namespace perfd {

absl::Status ReadConfigFile(const std::string& path, const ConfigTable& table) {
  ASSIGN_OR_RETURN(const std::string text, ReadTrustedFile(path, kMaxYamlBytes));
  const absl::Status status = ReadConfig(text, table);
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(path, ": ",
                   absl::StrReplaceAll(status.message(), {{"\n", "\n" + path + ": "}})));
}

}  // namespace perfd
