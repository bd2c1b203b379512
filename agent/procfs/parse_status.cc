// Source   proc(5) "/proc/pid/status"; fs/proc/array.c proc_pid_status.
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {
namespace {

using Fields = std::vector<absl::string_view>;

// The n-th white-space separated field as a number; false when it is missing or is none.
template <typename T>
bool Number(const Fields& fields, size_t n, T* value) {
  return n < fields.size() && absl::SimpleAtoi(fields[n], value);
}

bool Kilobytes(const Fields& fields, uint64_t* bytes) {
  uint64_t kib = 0;
  if (!Number(fields, 0, &kib) || kib > (UINT64_MAX >> 10)) return false;
  *bytes = kib << 10;
  return true;
}

// Source: include/uapi/linux/limits.h NGROUPS_MAX.
constexpr size_t kMaxGroups = 65536;

bool ParseGroups(const Fields& fields, std::vector<uint32_t>* groups) {
  if (fields.size() > kMaxGroups) return false;
  groups->resize(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!Number(fields, i, &(*groups)[i])) return false;
  }
  return true;
}

// Lines that are not here are not needed. False: the line is one of ours and does not parse.
bool ParseField(absl::string_view key, const Fields& fields, ProcessStatus* status) {
  if (key == "Tgid") return Number(fields, 0, &status->tgid);
  if (key == "PPid") return Number(fields, 0, &status->parent_pid);
  if (key == "TracerPid") return Number(fields, 0, &status->tracer_pid);
  if (key == "Uid") {
    return Number(fields, 0, &status->real_uid) && Number(fields, 1, &status->effective_uid) &&
           Number(fields, 2, &status->saved_uid);
  }
  if (key == "Gid") {
    return Number(fields, 0, &status->real_gid) && Number(fields, 1, &status->effective_gid) &&
           Number(fields, 2, &status->saved_gid);
  }
  if (key == "Groups") return ParseGroups(fields, &status->groups);
  if (key == "Threads") return Number(fields, 0, &status->thread_count);
  if (key == "Seccomp") return Number(fields, 0, &status->seccomp_mode);
  if (key == "VmRSS") return Kilobytes(fields, &status->memory.resident_bytes);
  if (key == "VmSize") return Kilobytes(fields, &status->memory.address_space_bytes);
  if (key == "VmPeak") return Kilobytes(fields, &status->memory.most_address_space_bytes);
  if (key == "VmData") return Kilobytes(fields, &status->memory.data_bytes);
  if (key == "VmLck") return Kilobytes(fields, &status->memory.locked_bytes);
  if (key == "CapPrm") {
    return !fields.empty() && absl::SimpleHexAtoi(fields[0], &status->capabilities.permitted);
  }
  if (key == "CapEff") {
    return !fields.empty() && absl::SimpleHexAtoi(fields[0], &status->capabilities.effective);
  }
  if (key == "State") {
    if (fields.empty() || fields[0].size() != 1) return false;
    status->state = fields[0][0];
  }
  return true;
}

}  // namespace

absl::StatusOr<ProcessStatus> ParseStatus(absl::string_view text) {
  ProcessStatus status;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (parts.first == "Name") {
      status.name = std::string(absl::StripAsciiWhitespace(parts.second));
      continue;
    }
    const Fields fields = absl::StrSplit(parts.second, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (!ParseField(parts.first, fields, &status)) {
      return absl::InvalidArgumentError(
          absl::StrCat("status: cannot read '", line.substr(0, 120), "'"));
    }
  }
  if (status.tgid == 0) return absl::InvalidArgumentError("status: no Tgid line");
  return status;
}

}  // namespace perfd::agent
