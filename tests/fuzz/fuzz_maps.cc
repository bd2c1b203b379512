// The parsers of /proc texts: whatever parses must hold what the parser promises.
#include <cstdint>
#include <cstdlib>

#include "agent/procfs/procfs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto entries = perfd::agent::ParseMaps(text);
  if (entries.ok()) {
    for (const perfd::agent::MapEntry& entry : *entries) {
      if (entry.start >= entry.end) std::abort();
    }
  }
  const auto status = perfd::agent::ParseStatus(text);
  if (status.ok() && status->tgid == 0) std::abort();
  return 0;
}
