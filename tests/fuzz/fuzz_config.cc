// Whatever the text, the reader of configuration files answers; what it accepts is in range and survives printing.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/spec/config_table.h"

namespace {

struct Settings {
  std::string name;
  std::string folder;
  std::string level = "info";
  int64_t days = 90;
  bool open = false;
  std::vector<std::string> admins;
};

perfd::ConfigTable TableOf(Settings& s) {
  return {"FuzzConfig",
          {{.path = "name", .field = &s.name},
           {.path = "store.folder", .field = &s.folder, .form = perfd::ConfigForm::kPath},
           {.path = "store.days", .field = &s.days, .low = 1, .high = 100},
           {.path = "log.level",
            .field = &s.level,
            .form = perfd::ConfigForm::kChoice,
            .choices = "debug|info|warning"},
           {.path = "log.open", .field = &s.open},
           {.path = "access.admins", .field = &s.admins}}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Settings settings;
  if (!perfd::ReadConfig(text, TableOf(settings)).ok()) return 0;
  if (settings.days < 1 || settings.days > 100) std::abort();
  if (!settings.folder.empty() && settings.folder[0] != '/') std::abort();
  const std::string printed = perfd::FormatConfig(TableOf(settings));
  Settings back;
  // A printed configuration is longer than what was read, and may be too long to be read.
  if (printed.size() > 32768) return 0;
  if (!perfd::ReadConfig(printed, TableOf(back)).ok()) std::abort();
  if (perfd::FormatConfig(TableOf(back)) != printed) std::abort();
  return 0;
}
