#include "agent/app/leftovers/heal.h"

#include <cstdio>

#include "agent/shadow/journal.h"
#include "agent/shadow/rank_injector.h"
#include "core/base/log.h"

namespace perfd::agent {

int Heal(const HealOptions& options, const HealFlags& flags) {
  if (flags.pids.empty() && !flags.all) {
    std::fprintf(stderr, "perf-agent heal: name pids, or --all for every rank of this node\n");
    return 2;
  }
  const std::string& directory = options.journal_directory;
  const auto journal = directory.empty()
                           ? absl::StatusOr<Journal>(absl::InvalidArgumentError(kNoFolder))
                           : Journal::Open(directory);
  const bool none = absl::IsNotFound(journal.status());
  int code = 0;
  if (!journal.ok() && !none) {
    // A rank that is named is healed by what is in the rank itself.
    std::fprintf(stderr, "perf-agent heal: no journal is believed: %s\n",
                 OneLine(journal.status().message()).c_str());
    code = 1;
  }
  std::vector<std::string> damaged;
  absl::StatusOr<UniqueFd> lock;
  if (journal.ok() && (!journal->ReadAll(&damaged).empty() || !damaged.empty()))
    lock = journal->Lock();
  if (absl::IsFailedPrecondition(lock.status())) {
    std::fprintf(stderr,
                 "perf-agent heal: %s; it restores its ranks itself, at once when %s exists; to "
                 "heal in its place, end it first\n",
                 OneLine(lock.status().message()).c_str(), options.disable_file.c_str());
    return 1;
  }
  auto tracer = Tracer::Start({.program = options.tracer_binary, .arguments = {}});
  if (!tracer.ok()) {
    std::fprintf(stderr, "perf-agent heal: %s\n", OneLine(tracer.status().message()).c_str());
    return 1;
  }
  InjectorOptions injector;
  injector.tracer = tracer->get();
  injector.journal = journal.ok() ? &*journal : nullptr;
  std::vector<HealReport> reports;
  if (flags.all) reports = HealAll(injector);
  for (const int32_t pid : flags.pids) reports.push_back(HealRank(pid, injector));
  if (reports.empty() && code == 0)
    std::printf("no journal in %s: nothing was injected\n", directory.c_str());
  for (const HealReport& report : reports) {
    if (report.status.ok()) {
      std::printf("pid %d: %s\n", report.pid, OneLine(report.done).c_str());
    } else {
      std::fprintf(stderr, "pid %d: %s\n", report.pid, OneLine(report.status.message()).c_str());
      code = 1;
    }
  }
  return code;
}

}  // namespace perfd::agent
