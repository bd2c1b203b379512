// Names of symbols as a foreign file has them.
#include <cstdint>
#include <cstdlib>

#include "agent/binary/symbol_name.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view name(reinterpret_cast<const char*>(data), size);
  if (perfd::agent::ReadableName(name).size() > perfd::agent::kMaxReadableName) std::abort();
  return 0;
}
