#include "agent/shadow/forking/process_files.h"

#include <limits.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/procfs/procfs.h"
#include "agent/procfs/read_file.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kSmallFile = 64 << 10;
constexpr size_t kMaxOpenFiles = 4096;

uint64_t Value(const absl::flat_hash_map<std::string, uint64_t>& lines, absl::string_view key) {
  auto it = lines.find(key);
  return it == lines.end() ? 0 : it->second;
}

std::string PathOf(int32_t pid, absl::string_view file) {
  return absl::StrCat("/proc/", pid, "/", file);
}

uint64_t ParseFlags(absl::string_view fdinfo) {
  for (absl::string_view line : absl::StrSplit(fdinfo, '\n')) {
    if (!absl::ConsumePrefix(&line, "flags:")) continue;
    uint64_t flags = 0;
    for (char c : absl::StripAsciiWhitespace(line)) {
      if (c < '0' || c > '7') return 0;
      flags = flags << 3 | static_cast<uint64_t>(c - '0');
    }
    return flags;
  }
  return 0;
}

}  // namespace

absl::flat_hash_map<std::string, uint64_t> ParseKbLines(absl::string_view text) {
  absl::flat_hash_map<std::string, uint64_t> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    uint64_t number = 0;
    if (!absl::ConsumeSuffix(&value, " kB") || !absl::SimpleAtoi(value, &number)) continue;
    if (number <= (UINT64_MAX >> 10)) lines[std::string(parts.first)] = number << 10;
  }
  return lines;
}

absl::StatusOr<MemoryCounts> ReadMemoryCounts(int32_t pid) {
  ASSIGN_OR_RETURN(std::string status, ReadWholeFile(PathOf(pid, "status"), kSmallFile));
  auto vm = ParseKbLines(status);
  return MemoryCounts{.anonymous = Value(vm, "RssAnon"),
                      .hugetlb = Value(vm, "HugetlbPages"),
                      .page_tables = Value(vm, "VmPTE"),
                      .pinned = Value(vm, "VmPin"),
                      .accounted = Value(vm, "VmData") + Value(vm, "VmStk")};
}

absl::StatusOr<NodeMemory> ReadNodeMemory() {
  ASSIGN_OR_RETURN(std::string text, ReadWholeFile("/proc/meminfo", kSmallFile));
  auto lines = ParseKbLines(text);
  NodeMemory memory;
  memory.available = Value(lines, "MemAvailable");
  memory.commit_limit = Value(lines, "CommitLimit");
  memory.committed = Value(lines, "Committed_AS");
  ASSIGN_OR_RETURN(memory.overcommit, ProcFs().SysctlInt("vm/overcommit_memory"));
  return memory;
}

absl::StatusOr<uint64_t> ReadMinorFaults(int32_t pid) {
  ASSIGN_OR_RETURN(std::string text, ReadWholeFile(PathOf(pid, "stat"), kSmallFile));
  // The name in parentheses may hold anything; minflt is field 10, the eighth behind it.
  size_t close = text.rfind(')');
  if (close == std::string::npos) return absl::InvalidArgumentError("stat: no name");
  std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(text).substr(close + 1), ' ', absl::SkipEmpty());
  uint64_t faults = 0;
  if (fields.size() < 8 || !absl::SimpleAtoi(fields[7], &faults))
    return absl::InvalidArgumentError("stat: no minor faults");
  return faults;
}

absl::StatusOr<NamespacePid> ParseNamespacePid(absl::string_view status_text) {
  for (absl::string_view line : absl::StrSplit(status_text, '\n')) {
    if (!absl::ConsumePrefix(&line, "NSpid:")) continue;
    std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    NamespacePid pid;
    if (fields.empty() || !absl::SimpleAtoi(fields.back(), &pid.inner) || pid.inner <= 0) break;
    pid.levels = static_cast<int32_t>(fields.size());
    return pid;
  }
  return absl::InvalidArgumentError("status: no NSpid line");
}

absl::StatusOr<NamespacePid> ReadNamespacePid(int32_t pid) {
  ASSIGN_OR_RETURN(std::string text, ReadWholeFile(PathOf(pid, "status"), kSmallFile));
  return ParseNamespacePid(text);
}

absl::StatusOr<int32_t> FindChild(int32_t parent, int32_t inner) {
  ProcFs procfs;
  // Without name spaces in between the number is the answer.
  auto direct = procfs.Status(inner);
  if (direct.ok() && direct->parent_pid == parent) {
    auto own = ReadNamespacePid(inner);
    if (own.ok() && own->inner == inner) return inner;
  }
  ASSIGN_OR_RETURN(std::vector<int32_t> pids, procfs.Pids());
  for (int32_t pid : pids) {
    auto status = procfs.Status(pid);
    if (!status.ok() || status->parent_pid != parent) continue;
    auto own = ReadNamespacePid(pid);
    if (own.ok() && own->inner == inner) return pid;
  }
  return absl::NotFoundError(absl::StrCat("process ", parent, " has no child ", inner));
}

absl::Status CheckShadow(const Admission& rank, int32_t parent, int32_t child) {
  const ProcFs procfs;
  ASSIGN_OR_RETURN(const ProcessStatus status, procfs.Status(child));
  ASSIGN_OR_RETURN(const ProcessStamp stamp, procfs.Stamp(child));
  if (stamp.state == 'Z' || stamp.state == 'X')
    return absl::NotFoundError(absl::StrCat("the shadow ", child, " has ended"));
  if (stamp.parent_pid == parent && stamp.exit_signal == 0 &&
      stamp.stack_start == rank.stack_start && RightsOf(status) == rank.rights)
    return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "process ", child, ", which the rank names as its shadow, is none: it is not looked into"));
}

absl::StatusOr<std::vector<OpenFile>> ReadOpenFiles(int32_t pid) {
  std::vector<OpenFile> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(PathOf(pid, "fd"), error)) {
    OpenFile file;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &file.number)) continue;
    char target[PATH_MAX];
    ssize_t size = readlink(entry.path().c_str(), target, sizeof(target));
    if (size <= 0) continue;  // closed meanwhile
    file.target.assign(target, static_cast<size_t>(size));
    auto info = HeadOfFile(PathOf(pid, absl::StrCat("fdinfo/", file.number)), kSmallFile);
    if (info.ok()) file.flags = ParseFlags(*info);
    files.push_back(std::move(file));
    if (files.size() > kMaxOpenFiles)
      return absl::ResourceExhaustedError(
          absl::StrCat("process ", pid, " has more than ", kMaxOpenFiles, " files open"));
  }
  if (error) return FileError(error.value(), "list", PathOf(pid, "fd"));
  return files;
}

std::string BootId() {
  auto text = ReadWholeFile("/proc/sys/kernel/random/boot_id", 256);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : "";
}

}  // namespace perfd::agent
