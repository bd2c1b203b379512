// HealRank, HealAll, HealBefore: take out what an agent that is no more has left.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/shadow/journal.h"
#include "agent/shadow/rank_injector.h"
#include "agent/shadow/region_injection.h"
#include "agent/shadow/restore.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

void Audit(const InjectorOptions& options, const Injection& injection, const RestoreResult& result,
           const absl::Status& status) {
  if (!options.audit) return;
  AuditEntry entry;
  entry.unix_ns = SystemClock().UnixNs();
  entry.pid = injection.pid;
  entry.action = "heal";
  for (int64_t ns : result.stops_ns) entry.pause_ns += ns;
  entry.outcome = status.ok() ? "ok" : std::string(status.message());
  options.audit(std::move(entry));
}

HealReport Heal(const Injection& injection, const InjectorOptions& options) {
  HealReport report;
  report.pid = injection.pid;
  if (options.tracer == nullptr) {
    report.status = absl::InvalidArgumentError("healing needs a tracer");
    return report;
  }
  RestoreResult result;
  report.status = RestoreRank(
      injection,
      {options.tracer, options.max_stop_ns, options.heal_patience_ns, true, options.answers},
      &result);
  if (!result.ended) Audit(options, injection, result, report.status);
  if (result.ended) {
    report.done = "the process has ended";
  } else if (result.sites == 0 && result.unmapped_bytes == 0) {
    report.done = "nothing of ours was left in it";
  } else {
    report.done = absl::StrFormat("restored %d loops, unmapped %.1f MB", result.sites,
                                  static_cast<double>(result.unmapped_bytes) / (1 << 20));
  }
  if (report.status.ok() && options.journal != nullptr)
    report.status = options.journal->Remove(injection);
  return report;
}

std::vector<Injection> ReadJournals(const InjectorOptions& options,
                                    std::vector<std::string>* damaged) {
  return options.journal == nullptr ? std::vector<Injection>() : options.journal->ReadAll(damaged);
}

absl::StatusOr<Injection> JournalOf(const RankInfo& rank, const InjectorOptions& options) {
  if (options.journal == nullptr) return absl::NotFoundError("no journals");
  return options.journal->Read(rank.pid, rank.start_ticks);
}

}  // namespace

HealReport HealRank(int32_t pid, const InjectorOptions& options) {
  std::vector<std::string> damaged;
  HealReport report;
  report.pid = pid;
  report.done = "nothing was injected";
  for (const Injection& injection : ReadJournals(options, &damaged)) {
    if (injection.pid != pid) continue;
    report = Heal(injection, options);
    if (!report.status.ok()) return report;
  }
  // The journal may be lost, or tell of another process under this pid.
  auto found = ReadInjectionFromRank(pid);
  if (found.ok()) return Heal(*found, options);
  if (!absl::IsNotFound(found.status())) report.status = found.status();
  return report;
}

std::vector<HealReport> HealAll(const InjectorOptions& options) {
  std::vector<std::string> damaged;
  std::vector<HealReport> reports;
  for (const Injection& injection : ReadJournals(options, &damaged)) {
    if (options.cancelled && options.cancelled()) {
      reports.push_back({injection.pid, absl::CancelledError("not healed: time was up"), ""});
      continue;
    }
    reports.push_back(Heal(injection, options));
  }
  for (const std::string& text : damaged) {
    HealReport report;
    report.status =
        absl::InvalidArgumentError(absl::StrCat("journal ", text, "; heal its process by its pid"));
    reports.push_back(std::move(report));
  }
  return reports;
}

absl::Status HealBefore(const RankInfo& rank, const InjectorOptions& options) {
  const auto known = JournalOf(rank, options);
  if (absl::IsPermissionDenied(known.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("a journal tells of it, but ", known.status().message(),
                     "; look who has written it, remove it, and run: perf-agent heal ", rank.pid));
  }
  if (known.ok() && options.tracer == nullptr) {
    return absl::FailedPreconditionError(
        "an agent that has ended left its jumps in it; measuring takes them out first, and so does "
        "perf-agent heal");
  }
  const absl::Status healed = known.ok() ? Heal(*known, options).status : absl::OkStatus();
  if (!healed.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("what an earlier agent left in it cannot be taken out: ", healed.message()));
  }
  if (options.answers) RETURN_IF_ERROR(options.answers(rank.pid));
  const auto found = ReadInjectionFromRank(rank.pid);
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("another agent alters it, or has left its jumps in it", found.ok() ? "" : " (",
                   found.ok() ? "" : found.status().message(), found.ok() ? "" : ")",
                   "; when none does any more, run: perf-agent heal ", rank.pid));
}

}  // namespace perfd::agent
