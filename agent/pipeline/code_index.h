// agent/pipeline/code_index.h - what is known about the code of each module, learnt from readers and kept by build-id.
//
// Shape    Learn(module, file offsets) asks the module's reader for what is missing and returns all that is known.
// Errors   a module that cannot be read has its reason in ModuleCode::error; it is tried again after a while.
// Threads  thread-bound (the resolver's thread); blocks up to the timeout given.
// Bounds   at most kMaxFunctions are kept; the module unused for longest goes first.
#ifndef AGENT_PIPELINE_CODE_INDEX_H_
#define AGENT_PIPELINE_CODE_INDEX_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/pipeline/raw_window.h"
#include "core/base/clock.h"
#include "core/model/module.h"

namespace perfd {

// The reader of one module: a process in production, a table in tests.
class CodeSource {
 public:
  virtual ~CodeSource() = default;
  virtual const ModuleFacts& facts() const = 0;
  virtual absl::StatusOr<CodeFacts> Lookup(const std::vector<uint64_t>& addresses, absl::Duration timeout) = 0;
};
using OpenCodeSource = std::function<absl::StatusOr<std::unique_ptr<CodeSource>>(const RawModule&)>;

struct ModuleCode {
  std::string id;      // build-id, else "path:" + path
  ModuleFacts facts;
  absl::Status error;  // why there is no code
  std::map<uint64_t, FunctionFacts> functions;  // by low
  absl::flat_hash_set<uint64_t> unresolved;     // addresses known to be in no function
  int64_t last_used_ns = 0;

  // The function that holds a virtual address, or null.
  const FunctionFacts* FunctionAt(uint64_t address) const;
};

class CodeIndex {
 public:
  static constexpr size_t kMaxFunctions = 200'000;

  CodeIndex(OpenCodeSource open, const Clock& clock) : open_(std::move(open)), clock_(clock) {}

  // Shared, because a later Learn may evict the module while a window still needs it.
  std::shared_ptr<const ModuleCode> Learn(const RawModule& module, const std::vector<uint64_t>& file_offsets,
                                          absl::Duration timeout);
  // Ends readers that were not asked for `idle_ns`.
  void CloseIdleReaders(int64_t idle_ns);
  size_t reader_count() const { return sources_.size(); }

 private:
  struct Source {
    std::unique_ptr<CodeSource> reader;  // null: closed or failed
    std::string code_id;                 // key in code_
    int64_t last_used_ns = 0;
    int64_t retry_at_ns = 0;             // after a failure
  };
  Source& Open(const RawModule& module);
  void LearnMissing(Source& source, ModuleCode& code, const std::vector<uint64_t>& offsets,
                    absl::Duration timeout);
  void Evict(const std::string& keep);

  OpenCodeSource open_;
  const Clock& clock_;
  absl::flat_hash_map<ModuleKey, Source> sources_;
  absl::flat_hash_map<std::string, std::shared_ptr<ModuleCode>> code_;
};

}  // namespace perfd

#endif  // AGENT_PIPELINE_CODE_INDEX_H_
