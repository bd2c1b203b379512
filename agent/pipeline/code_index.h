// agent/pipeline/code_index.h - what is known about the code of each module, learnt from readers and kept by file and
//                               build-id.
//
// Shape    Learn(module, file offsets, ..., detail) asks the module's reader for what is missing and returns all that is
//          known. A module of which nothing is missing needs no reader. Once its lines were wanted they always are: what
//          was learnt without them is read again.
// Errors   a module that cannot be read has its reason in ModuleCode::error; it is tried again after a pause that doubles
//          with each failure, and is several times as long as the failure took.
// Threads  thread-bound (the resolver's thread); Learn blocks up to the timeout given, and as long as opening takes.
// Bounds   kMaxFunctions and kMaxReaders are kept; what is unused for longest goes first.
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
#include "agent/anonymous/moved_code.h"
#include "agent/anonymous/perf_maps.h"
#include "agent/pipeline/raw_window.h"
#include "core/base/clock.h"
#include "core/model/module.h"

namespace perfd::agent {

// The reader of one module: a process in production, a table in tests.
class CodeSource {
 public:
  virtual ~CodeSource() = default;
  virtual const ModuleFacts& facts() const = 0;
  virtual absl::StatusOr<CodeFacts> Lookup(const std::vector<ElfAddress>& addresses,
                                           absl::Duration timeout) = 0;
  // Whether the file's code has these bytes there.
  virtual absl::StatusOr<bool> HasBytes(ElfAddress /*address*/, absl::string_view /*bytes*/,
                                        absl::Duration /*timeout*/) {
    return absl::UnimplementedError("this reader does not compare");
  }
};
using OpenCodeSource =
    std::function<absl::StatusOr<std::unique_ptr<CodeSource>>(const RawModule&, ModuleDetail)>;
// Whether a process still runs: while it does, the inode of a file that it maps means that file, and as a rule its contents, too.
using IsAlive = std::function<bool(int32_t pid)>;
bool ProcessIsAlive(int32_t pid);

struct ModuleCode {
  std::string
      id;  // build-id, else "code:" and a hash of its code, or "path:" and its path where nothing could be read
  ModuleFacts facts;
  absl::Status error;                             // why there is no code
  std::map<ElfAddress, FunctionFacts> functions;  // by low
  struct FurtherPart {
    ElfAddress high;
    ElfAddress function;  // its low
  };
  std::map<ElfAddress, FurtherPart> further_parts;  // of functions, by low
  absl::flat_hash_set<ElfAddress> unresolved;       // addresses known to be in no function
  int64_t last_used_ns = 0;

  void Add(FunctionFacts function);
  // The function that holds a virtual address in one of its parts, or null.
  const FunctionFacts* FunctionAt(ElfAddress address) const;
};

// What tells of code that is not mapped from a file. Empty: nothing does.
struct AnonymousPorts {
  MovedCode::ReadMemory read_memory;
  PerfMaps::Read read_perf_map;
};

class CodeIndex {
 public:
  static constexpr size_t kMaxFunctions = 200'000;
  static constexpr size_t kMaxReaders = 8;
  static constexpr size_t kMaxAddresses = 1024;      // of one question to a reader
  static constexpr size_t kMaxThrough = 1024;        // processes remembered of a file
  static constexpr int64_t kTrustNs = kNsPerSecond;  // in what a process has mapped that is no more
  static constexpr int64_t kMinRetryNs = 10 * kNsPerSecond;
  static constexpr int64_t kMaxRetryNs = 300 * kNsPerSecond;

  CodeIndex(OpenCodeSource open, const Clock& clock, IsAlive is_alive = ProcessIsAlive,
            AnonymousPorts anonymous = {})
      : open_(std::move(open)),
        is_alive_(std::move(is_alive)),
        clock_(clock),
        moved_(std::move(anonymous.read_memory)),
        perf_maps_(std::move(anonymous.read_perf_map), clock) {}

  // Shared, because a later Learn may evict the module while a window still needs it.
  std::shared_ptr<const ModuleCode> Learn(const RawModule& module,
                                          const std::vector<FileOffset>& file_offsets,
                                          absl::Duration timeout,
                                          ModuleDetail detail = ModuleDetail::kLines);
  // Whether Learn would not wait for a reader.
  bool Knows(const RawModule& module, const std::vector<FileOffset>& file_offsets) const;
  // What is known already, be it nothing.
  std::shared_ptr<const ModuleCode> Recall(const RawModule& module) const;
  // Of a file that was learnt: whether its code in [range.low, range.high), ELF addresses, is what the process has there.
  absl::Status CheckMoved(const RawModule& file, LoadBias bias, const CodeRange& range,
                          absl::Duration timeout);
  PerfMaps& perf_maps() { return perf_maps_; }
  // How long all calls of Learn have waited for readers, ns.
  int64_t waited_ns() const { return waited_ns_; }
  // Ends readers that were not asked for `idle_ns`; forgets failures that are that old and over.
  void CloseIdleReaders(int64_t idle_ns);
  size_t reader_count() const;

 private:
  struct Source {
    std::unique_ptr<CodeSource> reader;          // null: closed or failed
    std::string code_key;                        // in code_; empty: never tried
    bool known = false;                          // code_key was learnt from a reader
    ModuleDetail detail = ModuleDetail::kNames;  // wanted by anyone so far
    std::vector<ProcessId> through;  // the processes through which it was, the last one last
    int64_t opened_ns = 0;
    int64_t opened_unix_ns = 0;
    int64_t last_used_ns = 0;
    int64_t reader_used_ns = 0;
    int64_t retry_at_ns = 0;     // after a failure
    int64_t retry_pause_ns = 0;  // the last one; 0: it did not fail
    absl::Status failure;        // the last one
  };
  bool Open(const RawModule& module, Source& source);
  bool LacksLines(const Source& source) const;
  bool KnowsLinesUnreadBy(const RawModule& module, const CodeSource& reader) const;
  void Adopt(const RawModule& module, Source& source, std::unique_ptr<CodeSource> reader);
  void ReadLines(const RawModule& module, Source& source, const std::vector<FileOffset>& offsets,
                 absl::Duration timeout);
  bool Trusts(const Source& source, const RawModule& module) const;
  void LearnMissing(Source& source, ModuleCode& code, std::vector<ElfAddress> missing,
                    absl::Duration timeout);
  void Fail(Source& source, const absl::Status& status, int64_t since_ns);
  ModuleCode& Code(Source& source, std::string key, std::string id);
  void CloseReaders(const Source& keep);
  void Evict(const std::string& keep);

  OpenCodeSource open_;
  IsAlive is_alive_;
  const Clock& clock_;
  int64_t waited_ns_ = 0;
  MovedCode moved_;
  PerfMaps perf_maps_;
  absl::flat_hash_map<ModuleKey, Source> sources_;
  absl::flat_hash_map<std::string, std::shared_ptr<ModuleCode>> code_;  // by CodeKey
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_CODE_INDEX_H_
