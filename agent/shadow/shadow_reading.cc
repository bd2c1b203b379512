#include "agent/shadow/shadow_reading.h"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/shadow/forking/memory_areas.h"

namespace perfd::agent {
namespace {

std::string ErrnoText(int32_t error) {
  return error == 0 ? "" : absl::StrCat(": ", strerror(error));
}

const char* StepText(uint32_t step) {
  switch (step) {
    case kStepProtect:
      return "shared memory could not be protected";
    case kStepBuffer:
      return "no memory for its buffers";
    case kStepClone:
      return "its threads could not be made";
    case kStepAgent:
      return "the agent did not look at it in time";
    case kStepPlan:
      return "its plan is broken";
    case kStepFilter:
      return "its system calls could not be filtered";
    default:
      return "it could not be set up";
  }
}

const char* TrimText(int32_t step) {
  switch (step) {
    case kTrimNoAnswer:
      return "the agent did not answer in time";
    case kTrimTooLate:
      return "its threads could not be kept together";
    case kTrimNotMarked:
      return "the kernel did not mark it";
    default:
      return "refused";
  }
}

// OK when there may be results to read.
absl::Status Judge(const ShadowReading& r) {
  switch (r.site.last_outcome) {
    case kOutcomeDone:
    case kOutcomeKilled:
    case kOutcomeDied:
    case kOutcomeWatchdog:
    case kOutcomeFaulted:
    case kOutcomeTrapped:
    case kOutcomeLocked:
      return absl::OkStatus();
    case kOutcomeGatherTimeout:
      return absl::OutOfRangeError("the team did not meet at the loop within a millisecond");
    case kOutcomeTeamLost:
      return absl::UnavailableError("a thread that had come to the loop was not there any more");
    case kOutcomeForkFailed:
      return absl::FailedPreconditionError(
          absl::StrCat("the rank could not fork", ErrnoText(r.site.last_error)));
    case kOutcomeSetupFailed: {
      const std::string text = absl::StrCat(
          "the shadow did not start: ", StepText(r.child.error_step), ErrnoText(r.child.error));
      return r.child.error_step == kStepAgent ? absl::UnavailableError(text)
                                              : absl::FailedPreconditionError(text);
    }
    case kOutcomeNotTrimmed:
      return absl::AbortedError(
          absl::StrCat("memory could not be left out of a shadow: ", TrimText(r.site.last_error)));
    case kOutcomeRightsChanged:
      return absl::PermissionDeniedError(
          "the rank has other rights than when it was admitted: it is not touched any more");
    case kOutcomeTaken:
      return absl::FailedPreconditionError(
          "the program waits for any child, clones too (__WALL or __WCLONE), and reaped a shadow: "
          "no more are made in this rank");
    default:
      return absl::InternalError(absl::StrCat("unknown outcome ", r.site.last_outcome));
  }
}

// As if it were in the copy's first place; none: it is in no place of it.
std::optional<uint64_t> WithoutShift(const CodeCopy& copy, uint64_t pc) {
  const auto holds = [&](uint64_t shift) {
    return pc >= copy.address + shift && pc - copy.address - shift < copy.bytes.size();
  };
  if (holds(0)) return pc;
  const auto shift = std::find_if(copy.places.shifts.begin(), copy.places.shifts.end(), holds);
  return shift == copy.places.shifts.end() ? std::nullopt : std::optional(pc - *shift);
}

// The original instruction behind an address in one of the copies.
std::string InstructionText(const ShadowReading& r, uint64_t pc) {
  for (const CodeCopy* copy : r.copies) {
    const std::optional<uint64_t> at = WithoutShift(*copy, pc);
    if (!at) continue;
    uint64_t original = 0;
    for (const AddressPair& pair : copy->address_map) {
      if (pair.copy <= *at) original = pair.original;
    }
    return absl::StrCat(" (instruction 0x", absl::Hex(original), ")");
  }
  return absl::StrCat(" (at 0x", absl::Hex(pc), ")");
}

// Why a good loop faults in a shadow: it touches what others can see, or what is not there as it is in the rank.
const char* ProtectedText(const ShadowReading& r, uint64_t address) {
  const char* text = "";
  for (const ProtectRange& range : r.protects) {
    if (address < range.address || address - range.address >= range.bytes) continue;
    switch (static_cast<WhyProtected>(range.why)) {
      case WhyProtected::kShared:
        text = "writes shared memory: ";
        break;
      case WhyProtected::kDevice:
        text = "touches device memory: ";
        break;
      case WhyProtected::kEmptyInForks:
        return "touches memory that is empty in forks (MADV_WIPEONFORK): ";
      case WhyProtected::kPagedByOthers:
        return "touches memory whose missing pages another process brings (userfaultfd): ";
    }
  }
  return text;
}

bool MissedMemory(const ShadowReading& r) {
  if (r.child.fault_count == 0) return false;
  return std::any_of(r.trimmed_out.begin(), r.trimmed_out.end(), [&](const PcRange& range) {
    return r.child.fault.address >= range.start && r.child.fault.address < range.end;
  });
}

std::string FaultText(const ShadowReading& r) {
  const FaultRecord& fault = r.child.fault;
  const char* name = sigabbrev_np(static_cast<int>(fault.signal));
  // Source: sigaction(2), si_code SEGV_MAPERR: nothing is mapped there.
  const bool unmapped = fault.signal == SIGSEGV && fault.code == SEGV_MAPERR;
  const char* missed = MissedMemory(r) ? "touches memory that was left out: "
                       : unmapped && r.early_end.fault_in_rank
                           ? "touches memory that the program keeps out of forks (MADV_DONTFORK): "
                           : "";
  return absl::StrCat(missed, ProtectedText(r, fault.address), "SIG", name != nullptr ? name : "?",
                      " at 0x", absl::Hex(fault.address), InstructionText(r, fault.pc));
}

std::string CallText(const ShadowReading& r) {
  std::string text = r.early_end.trapped ? TextOf(*r.early_end.trapped)
                                         : absl::StrCat("makes system call ", r.child.trap.call);
  if (r.site.last_outcome != kOutcomeLocked) return text;
  return absl::StrCat("waits for what a thread outside the shadow holds, at 0x",
                      absl::Hex(r.child.trap.argument), ": ", text);
}

// With the instruction of the loop that led there, if that was a call.
std::string TrapText(const ShadowReading& r) {
  const std::string text = CallText(r);
  const uint64_t back = r.child.trap.return_address;
  const bool from_copy =
      std::any_of(r.copies.begin(), r.copies.end(), [back](const CodeCopy* copy) {
        return back != 0 && WithoutShift(*copy, back - 1).has_value();
      });
  return from_copy ? absl::StrCat(text, InstructionText(r, back - 1)) : text;
}

std::string OutcomeText(const ShadowReading& r) {
  switch (r.site.last_outcome) {
    case kOutcomeDone:
      return "done";
    case kOutcomeKilled:
      return "overdue, killed by the rank";
    case kOutcomeDied:
      return absl::StrCat("died, wait status ", r.site.last_error);
    case kOutcomeWatchdog:
      return "overdue, ended by its own timer";
    case kOutcomeTrapped:
      return absl::StrCat("ended by a system call: it ", TrapText(r));
    case kOutcomeLocked:
      return absl::StrCat("ended by a lock: it ", TrapText(r));
    default:
      return absl::StrCat("ended by faults, first ", FaultText(r));
  }
}

RunOutcome OutcomeOf(const ShadowReading& r, const RunResult& result, size_t run) {
  if (result.status == kRunOk) return RunOutcome::kOk;
  if (result.status == kRunFaulted) return RunOutcome::kFault;
  if (result.status == kRunCutShort) return RunOutcome::kCutShort;
  const size_t planned = run + 1;  // a probe comes first
  const bool under_way = r.site.last_outcome != kOutcomeDone && r.child.current_run == planned;
  if (under_way && EndedByCall(r.site.last_outcome)) return RunOutcome::kFault;
  return under_way ? RunOutcome::kTimeout : RunOutcome::kNotRun;
}

std::string FailureText(const ShadowReading& r, RunOutcome outcome, size_t run) {
  switch (outcome) {
    case RunOutcome::kOk:
      return "";
    case RunOutcome::kFault:
      if (EndedByCall(r.site.last_outcome) && r.child.trap.run == run + 1) return TrapText(r);
      // Only the first fault is kept in full.
      return r.child.fault.run == run + 1
                 ? FaultText(r)
                 : absl::StrCat("fault, like the first one: ", FaultText(r));
    case RunOutcome::kTimeout:
      return absl::StrCat("did not end: ", OutcomeText(r));
    case RunOutcome::kCutShort:
      return "the loop around it ended in its midst";
    case RunOutcome::kNotRun:
      return r.site.last_outcome == kOutcomeDone
                 ? "not run: time was up"
                 : absl::StrCat("not run: the shadow ", OutcomeText(r));
  }
  return "";
}

uint64_t ProbeCycles(const ShadowReading& r) {
  std::vector<uint64_t> cycles;
  for (size_t run : {size_t{0}, r.runs + 1, r.runs + 2}) {
    for (uint32_t place = 0; place < r.team; ++place) {
      const RunResult& result = r.results[run * r.team + place];
      if (result.status == kRunOk) cycles.push_back(result.cycles);
    }
  }
  if (cycles.empty()) return 0;
  std::nth_element(cycles.begin(), cycles.begin() + static_cast<std::ptrdiff_t>(cycles.size() / 2),
                   cycles.end());
  return cycles[cycles.size() / 2];
}

}  // namespace

int32_t MostRuns(int32_t team) {
  const auto slots = static_cast<int32_t>(kResultSlots) / std::max(1, team);
  return std::min(static_cast<int32_t>(kMaxRuns), slots) - static_cast<int32_t>(kProbeRuns);
}

absl::StatusOr<ShadowAnswer> ReadAnswer(const ShadowReading& r) {
  absl::Status status = Judge(r);
  if (!status.ok()) return status;
  if (r.team == 0 || r.team > kMaxTeam || r.results.size() != (r.runs + kProbeRuns) * r.team)
    return absl::InternalError("the shadow's results have the wrong size");
  ShadowAnswer answer;
  answer.outcome = OutcomeText(r);
  answer.trapped = r.early_end.trapped;
  answer.probe_cycles = ProbeCycles(r);
  answer.missed_memory = MissedMemory(r);
  answer.failed_gathers = static_cast<int32_t>(std::min<uint32_t>(r.site.failures, 1000));
  for (size_t run = 0; run < r.runs; ++run) {
    for (uint32_t place = 0; place < r.team; ++place) {
      const RunResult& result = r.results[(run + 1) * r.team + place];
      ShadowRun out;
      out.run = static_cast<int32_t>(run);
      out.thread = static_cast<int32_t>(place);
      out.cycles = result.cycles;
      out.iterations = result.iterations;
      out.inner_passes = result.inner_passes;
      out.instances = std::max<uint64_t>(1, result.instances);
      out.ok = result.status == kRunOk;
      out.differs = result.differing != 0;
      out.outcome = OutcomeOf(r, result, run);
      out.failure = FailureText(r, out.outcome, run);
      answer.runs.push_back(std::move(out));
    }
  }
  for (uint32_t place = 0; place < r.team; ++place) {
    if (place < r.traces.size()) answer.traces.push_back(r.traces[place]);
    if (place < r.excluded_paths.size())
      answer.left_by_excluded_path.push_back(r.excluded_paths[place] == 1);
  }
  return answer;
}

}  // namespace perfd::agent
