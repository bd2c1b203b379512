#include "agent/procfs/procfs.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/procfs/read_file.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// No honest file of its kind is longer. maps: vm.max_map_count is 65530 by default and a line is at most a path long;
// environ and cmdline: a quarter of the largest stack limit (execve(2)), here a generous fixed bound.
constexpr size_t kSmallFileLimit = size_t{64} << 10;
constexpr size_t kStatusLimit = size_t{1} << 20;  // 65536 groups of up to 11 bytes each
constexpr size_t kMapsLimit = size_t{64} << 20;
constexpr size_t kVectorLimit = size_t{8} << 20;
constexpr size_t kMaxLinkBytes = 4096;  // PATH_MAX
constexpr absl::string_view kDeleted = " (deleted)";

absl::StatusOr<std::vector<int32_t>> NumericEntries(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(directory.c_str()), ::closedir);
  if (dir == nullptr) return FileError(errno, "list", directory);
  std::vector<int32_t> numbers;
  while (const dirent* entry = ::readdir(dir.get())) {
    int32_t number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number) && number > 0) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// A number of stat by its field (the state is 3). The command name may hold spaces and parentheses: the last ')' ends it.
absl::StatusOr<uint64_t> StatNumber(absl::string_view text, size_t field) {
  const size_t end = text.rfind(')');
  if (end == absl::string_view::npos) return absl::InvalidArgumentError("stat: no command name");
  size_t number = 3;
  for (absl::string_view word :
       absl::StrSplit(text.substr(end + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    uint64_t value = 0;
    if (number++ != field) continue;
    if (absl::SimpleAtoi(word, &value)) return value;
    break;
  }
  return absl::InvalidArgumentError(absl::StrCat("stat: no number in field ", field));
}

std::string Under(int32_t pid, absl::string_view file) {
  return absl::StrCat(pid, "/", file);
}

// NUL-separated strings; the last may lack its NUL when a process has overwritten it.
std::vector<std::string> SplitNul(absl::string_view text) {
  if (absl::EndsWith(text, absl::string_view("\0", 1))) text.remove_suffix(1);
  if (text.empty()) return {};
  return absl::StrSplit(text, '\0');
}

}  // namespace

ProcFs::ProcFs(std::string root, std::shared_ptr<SlowFiles> slow)
    : root_(std::move(root)), slow_(std::move(slow)) {}

absl::StatusOr<std::string> ProcFs::ReadFile(absl::string_view relative, size_t limit) const {
  return ReadWholeFile(absl::StrCat(root_, "/", relative), limit);
}

absl::StatusOr<std::string> ProcFs::ReadSlowly(int32_t pid, absl::string_view file,
                                               SlowRead::What what, size_t limit) const {
  return Perform(
      pid, {.what = what, .limit = limit, .path = absl::StrCat(root_, "/", Under(pid, file))});
}

absl::StatusOr<std::string> ProcFs::Perform(int32_t pid, const SlowRead& read) const {
  return slow_ == nullptr ? ReadSlowFile(read) : slow_->Read(pid, read);
}

absl::StatusOr<std::vector<int32_t>> ProcFs::Pids() const {
  return NumericEntries(root_);
}

absl::StatusOr<std::vector<int32_t>> ProcFs::Threads(int32_t pid) const {
  return NumericEntries(absl::StrCat(root_, "/", pid, "/task"));
}

absl::StatusOr<ProcessStatus> ProcFs::Status(int32_t pid) const {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(Under(pid, "status"), kStatusLimit));
  return ParseStatus(text);
}

absl::StatusOr<ProcessStatus> ProcFs::ThreadStatus(int32_t pid, int32_t tid) const {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadFile(absl::StrCat(pid, "/task/", tid, "/status"), kStatusLimit));
  return ParseStatus(text);
}

absl::StatusOr<ProcessStamp> ProcFs::Stamp(int32_t pid) const {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(Under(pid, "stat"), kSmallFileLimit));
  ProcessStamp stamp;
  ASSIGN_OR_RETURN(stamp.start_ticks, StatNumber(text, 22));
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string::npos || open > close || close + 2 >= text.size()) {
    return absl::InvalidArgumentError("stat: no command name");
  }
  stamp.command = text.substr(open + 1, close - open - 1);
  stamp.state = text[close + 2];
  stamp.parent_pid = static_cast<int32_t>(
      std::min<uint64_t>(StatNumber(text, 4).value_or(0), std::numeric_limits<int32_t>::max()));
  stamp.stack_start = StatNumber(text, 28).value_or(0);
  stamp.exit_signal = StatNumber(text, 38).value_or(stamp.exit_signal);
  return stamp;
}

absl::StatusOr<uint64_t> ProcFs::StartTicks(int32_t pid) const {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(Under(pid, "stat"), kSmallFileLimit));
  return StatNumber(text, 22);
}

// A thread: the first number of schedstat is ns on a CPU (Documentation/scheduler/sched-stats.rst). A process, or a
// kernel without schedstat: utime + stime of stat (fields 14 and 15) in clock ticks; they include ended threads.
absl::StatusOr<uint64_t> ProcFs::CpuNs(int32_t pid, int32_t tid) const {
  const std::string base = tid == 0 ? absl::StrCat(pid) : absl::StrCat(pid, "/task/", tid);
  if (tid != 0) {
    const absl::StatusOr<std::string> text = ReadFile(base + "/schedstat", kSmallFileLimit);
    uint64_t ns = 0;
    if (text.ok() && absl::SimpleAtoi(text->substr(0, text->find(' ')), &ns)) return ns;
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(base + "/stat", kSmallFileLimit));
  ASSIGN_OR_RETURN(const uint64_t user, StatNumber(text, 14));
  ASSIGN_OR_RETURN(const uint64_t system, StatNumber(text, 15));
  const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  const uint64_t ns_per_tick =
      1'000'000'000u / static_cast<uint64_t>(ticks_per_second > 0 ? ticks_per_second : 100);
  return (user + system) * ns_per_tick;
}

absl::StatusOr<std::string> ProcFs::WaitChannel(int32_t pid) const {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(Under(pid, "wchan"), kSmallFileLimit));
  return std::string(absl::StripAsciiWhitespace(text));
}

// Source: Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat".
absl::StatusOr<std::vector<ThreadSchedule>> ProcFs::Schedule(int32_t pid) const {
  ASSIGN_OR_RETURN(const std::vector<int32_t> tids, Threads(pid));
  std::vector<ThreadSchedule> threads;
  for (const int32_t tid : tids) {
    const absl::StatusOr<std::string> text =
        ReadFile(absl::StrCat(pid, "/task/", tid, "/schedstat"), kSmallFileLimit);
    if (!text.ok()) continue;  // ended since the listing
    ThreadSchedule thread{.tid = tid};
    const std::vector<absl::string_view> numbers =
        absl::StrSplit(absl::StripAsciiWhitespace(*text), ' ');
    if (numbers.size() == 3 && absl::SimpleAtoi(numbers[0], &thread.run_ns) &&
        absl::SimpleAtoi(numbers[1], &thread.wait_ns) &&
        absl::SimpleAtoi(numbers[2], &thread.switches)) {
      threads.push_back(thread);
    }
  }
  return threads;
}

absl::StatusOr<absl::flat_hash_map<std::string, std::string>> ProcFs::Environment(
    int32_t pid) const {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadSlowly(pid, "environ", SlowRead::What::kWhole, kVectorLimit));
  absl::flat_hash_map<std::string, std::string> environment;
  for (const std::string& entry : SplitNul(text)) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    // getenv(3) finds the first of several; so do we.
    environment.try_emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

absl::StatusOr<std::vector<std::string>> ProcFs::CommandLine(int32_t pid) const {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadSlowly(pid, "cmdline", SlowRead::What::kWhole, kVectorLimit));
  return SplitNul(text);
}

absl::StatusOr<std::string> ProcFs::Executable(int32_t pid) const {
  const std::string path = absl::StrCat(root_, "/", pid, "/exe");
  std::string target(kMaxLinkBytes, '\0');
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return FileError(errno, "read link", path);
  target.resize(static_cast<size_t>(length));
  if (absl::EndsWith(target, kDeleted)) target.resize(target.size() - kDeleted.size());
  return target;
}

absl::StatusOr<std::vector<MapEntry>> ProcFs::Maps(int32_t pid) const {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadSlowly(pid, "maps", SlowRead::What::kWhole, kMapsLimit));
  return ParseMaps(text);
}

absl::StatusOr<std::vector<MapEntry>> ProcFs::FirstMaps(int32_t pid, size_t bytes,
                                                        bool* all) const {
  ASSIGN_OR_RETURN(const std::string text, ReadSlowly(pid, "maps", SlowRead::What::kHead, bytes));
  *all = text.size() < bytes;
  if (*all) return ParseMaps(text);
  const size_t last = text.rfind('\n');
  return ParseMaps(absl::string_view(text).substr(0, last == std::string::npos ? 0 : last));
}

absl::StatusOr<std::vector<CgroupEntry>> ProcFs::Cgroups(int32_t pid) const {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(Under(pid, "cgroup"), kSmallFileLimit));
  std::vector<CgroupEntry> entries;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    CgroupEntry entry;
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &entry.hierarchy)) {
      return absl::InvalidArgumentError(absl::StrCat("cgroup: cannot read '", line, "'"));
    }
    entry.controllers = std::string(parts[1]);
    entry.path = std::string(parts[2]);
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::string> ProcFs::Cgroup(int32_t pid) const {
  ASSIGN_OR_RETURN(const std::vector<CgroupEntry> entries, Cgroups(pid));
  for (const CgroupEntry& entry : entries) {
    if (entry.hierarchy == 0 && entry.path != "/") return entry.path;
  }
  for (const CgroupEntry& entry : entries) {
    if (entry.path != "/") return entry.path;
  }
  return std::string("/");
}

absl::StatusOr<std::vector<MountEntry>> ProcFs::Mounts() const {
  ASSIGN_OR_RETURN(const std::string text, ReadFile("mounts", kVectorLimit));
  std::vector<MountEntry> mounts;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, ' ');
    if (parts.size() >= 4) mounts.push_back({parts[1], parts[2], parts[3]});
  }
  return mounts;
}

absl::StatusOr<std::string> ProcFs::ExecutableHead(int32_t pid, size_t limit) const {
  return ReadSlowly(pid, "exe", SlowRead::What::kHead, limit);
}

absl::StatusOr<FileId> ProcFs::ExecutableId(int32_t pid) const {
  const absl::StatusOr<std::string> text = ReadSlowly(pid, "exe", SlowRead::What::kIdentity, 0);
  if (text.ok()) return ParseFileId(*text);
  return absl::IsUnavailable(text.status()) ? text.status() : absl::StatusOr<FileId>(FileId{});
}

absl::StatusOr<int64_t> ProcFs::SysctlInt(absl::string_view name) const {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(absl::StrCat("sys/", name), kSmallFileLimit));
  int64_t value = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &value)) {
    return absl::InvalidArgumentError(absl::StrCat("sysctl ", name, " is not a number"));
  }
  return value;
}

absl::StatusOr<std::vector<MapEntry>> ExecutableMaps(const ProcFs& procfs, int32_t pid) {
  ASSIGN_OR_RETURN(const std::string text,
                   procfs.Perform(pid, {.what = SlowRead::What::kExecutableMaps,
                                        .limit = kMapsLimit,
                                        .path = absl::StrCat(procfs.root(), "/", pid, "/maps")}));
  return ParseMaps(text);
}

absl::StatusOr<std::string> MemoryOf(const ProcFs& procfs, int32_t pid, const FilePart& part) {
  return procfs.Perform(pid, {.what = SlowRead::What::kPart,
                              .limit = part.bytes,
                              .path = absl::StrCat(procfs.root(), "/", pid, "/mem"),
                              .offset = part.offset});
}

absl::StatusOr<ForeignFile> FileOfUser(const ProcFs& procfs, int32_t pid, uint32_t uid,
                                       const WholeFile& file) {
  const std::string directory = absl::StrCat(procfs.root(), "/", pid, "/root");
  ASSIGN_OR_RETURN(const std::string answer,
                   procfs.Perform(pid, {.what = SlowRead::What::kForeign,
                                        .limit = file.limit,
                                        .path = absl::StrCat(directory, file.path),
                                        .offset = directory.size(),
                                        .owner_uid = uid}));
  return DecodeForeign(answer);
}

absl::StatusOr<int32_t> InnerPid(const ProcFs& procfs, int32_t pid) {
  ASSIGN_OR_RETURN(const std::string status,
                   procfs.Perform(pid, {.what = SlowRead::What::kWhole,
                                        .limit = kStatusLimit,
                                        .path = absl::StrCat(procfs.root(), "/", pid, "/status")}));
  constexpr absl::string_view kKey = "\nNSpid:";  // one number for each name space, its own last
  const absl::string_view text = status;
  const size_t at = text.find(kKey);
  if (at == text.npos) return pid;
  const absl::string_view rest = text.substr(at + kKey.size());
  const std::vector<absl::string_view> pids =
      absl::StrSplit(rest.substr(0, rest.find('\n')), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  int32_t inner = 0;
  if (pids.empty() || !absl::SimpleAtoi(pids.back(), &inner))
    return absl::InvalidArgumentError("status: cannot read NSpid");
  return inner;
}

}  // namespace perfd::agent
