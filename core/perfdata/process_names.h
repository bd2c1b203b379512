// core/perfdata/process_names.h - what the processes of a recording are called: names by the records of tasks, in the order of time.
//
// Threads  thread-compatible.
#ifndef CORE_PERFDATA_PROCESS_NAMES_H_
#define CORE_PERFDATA_PROCESS_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "core/perfdata/records/sample.h"

namespace perfd {

class ProcessNames {
 public:
  void OnTask(const TaskEvent& task);
  // In display form; empty: not told. 0 is the kernel's, of idle CPUs.
  std::string NameOf(int32_t pid) const;

 private:
  absl::flat_hash_map<int32_t, std::string> names_{{0, "swapper"}};
};

}  // namespace perfd

#endif  // CORE_PERFDATA_PROCESS_NAMES_H_
