// Maps of code made at run time, as users write them: symbols stay disjoint, named and within bounds.
#include <cstdint>
#include <cstdlib>

#include "agent/anonymous/perf_map.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using perfd::agent::PerfMap;
  const PerfMap map = PerfMap::Parse(absl::string_view(reinterpret_cast<const char*>(data), size));
  perfd::RuntimeAddress end = 0;
  for (const auto& [start, symbol] : map.symbols()) {
    if (start < end || symbol.end <= start || symbol.name.empty()) std::abort();
    if (symbol.name.size() > PerfMap::kMaxNameBytes) std::abort();
    if (map.At(start) != &symbol || map.At(symbol.end - 1) != &symbol) std::abort();
    end = symbol.end;
  }
  return 0;
}
