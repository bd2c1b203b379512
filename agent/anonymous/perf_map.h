// agent/anonymous/perf_map.h - the names of code that was made at run time, as its maker has written them: /tmp/perf-PID.map.
//
// Shape    Parse(text) -> PerfMap; NameAt(address). Pure; the text is foreign: lines that are none are skipped, what is written
//          later is true of the same addresses (a compiler uses memory again).
// Units    run-time addresses of the process.
// Bounds   kMaxSymbols, and kMaxNameBytes of a name: the rest of it is cut off.
// Threads  thread-compatible.
// Source   Linux, tools/perf/Documentation/jit-interface.txt: "START SIZE symbolname", START and SIZE in hex without 0x (which
//          some write), the rest of the line is the name.
#ifndef AGENT_ANONYMOUS_PERF_MAP_H_
#define AGENT_ANONYMOUS_PERF_MAP_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "core/base/address.h"

namespace perfd::agent {

class PerfMap {
 public:
  static constexpr size_t kMaxSymbols = 500'000;
  static constexpr size_t kMaxNameBytes = 1024;
  struct Symbol {
    RuntimeAddress end;  // exclusive
    std::string name;
  };

  static PerfMap Parse(absl::string_view text);
  // Null: none. Valid until the map goes.
  const Symbol* At(RuntimeAddress address) const;
  const std::map<RuntimeAddress, Symbol>& symbols() const { return by_start_; }  // disjoint

 private:
  void Add(RuntimeAddress start, RuntimeAddress end, absl::string_view name);

  std::map<RuntimeAddress, Symbol> by_start_;
};

}  // namespace perfd::agent

#endif  // AGENT_ANONYMOUS_PERF_MAP_H_
