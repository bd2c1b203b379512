// agent/replay/recorded_files.h - the files that a recording's code came from, where they are to be had on this machine.
//
// Shape    a file counts only if its build-id is the one that was recorded: the path itself, then the caches of perf.
// Errors   kNotFound: none with that build-id; the text says where one would be found. kFailedPrecondition: the recording has no
//          build-id of that file, and whether a file of the same name is the same cannot be known.
// Threads  Identify before and beside Opener's calls: thread-safe.
// Source   tools/perf/Documentation/perf-buildid-cache.txt (~/.debug/.build-id).
#ifndef AGENT_REPLAY_RECORDED_FILES_H_
#define AGENT_REPLAY_RECORDED_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "agent/pipeline/code_index.h"
#include "core/base/mutex.h"
#include "core/perfdata/recording_facts.h"
#include "core/perfdata/records/sample.h"

namespace perfd::agent {

class RecordedFiles {
 public:
  RecordedFiles(const std::vector<RecordedModule>& modules, OpenCodeSource open,
                std::vector<std::string> caches);

  // The mapping with an inode of ours, which is another one for each path and build-id: the kernel gives either a build-id or an inode,
  // and a path may be another file in another process.
  MappingEvent Identify(MappingEvent mapping);
  // Valid as long as this lives.
  OpenCodeSource Opener();

  // $HOME/.debug.
  static std::vector<std::string> UsualCaches();

 private:
  absl::StatusOr<std::unique_ptr<CodeSource>> Open(const RawModule& module, ModuleDetail detail);
  std::string BuildIdOf(uint64_t inode) const;

  const OpenCodeSource open_;
  const std::vector<std::string> caches_;
  mutable Mutex mutex_;
  // By path, what the recording's header says: hex; empty where it names several.
  absl::flat_hash_map<std::string, std::string> in_header_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::pair<std::string, std::string>, uint64_t> inodes_
      ABSL_GUARDED_BY(mutex_);                                     // by path and build-id, from 1
  std::vector<std::string> build_ids_ ABSL_GUARDED_BY(mutex_);  // by inode - 1
};

}  // namespace perfd::agent

#endif  // AGENT_REPLAY_RECORDED_FILES_H_
