// Source   PROCMAP_QUERY of linux/fs.h (since 6.11), fs/proc/task_mmu.c do_procmap_query. It tells names as they are: only seq_path
//          writes a newline as \012.
#include <fcntl.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/procfs.h"
#include "agent/procfs/read_file.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {
namespace {

// struct procmap_query, which the headers of older kernels do not have.
struct ProcmapQuery {
  uint64_t size = sizeof(ProcmapQuery);
  uint64_t query_flags = 0;
  uint64_t query_address = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t flags = 0;
  uint64_t page_size = 0;
  uint64_t file_offset = 0;
  uint64_t inode = 0;
  std::array<uint32_t, 2> device{};  // major, minor
  // Room for a name and for a build-id; afterwards what there is, a name with its NUL.
  std::array<uint32_t, 2> name_sizes{};
  std::array<uint64_t, 2> name_addresses{};
};
constexpr auto kProcmapQuery = _IOWR('f', 17, ProcmapQuery);
// No mapping of the process: only the text has it, and nothing there is the program's.
constexpr absl::string_view kOldCalls = "[vsyscall]";
constexpr uint64_t kReadable = 0x01;
constexpr uint64_t kWritable = 0x02;
constexpr uint64_t kExecutable = 0x04;
constexpr uint64_t kShared = 0x08;
constexpr uint64_t kThisOrNext = 0x10;

// 0, or errno: ENOENT when there is none. Its name as maps has it.
int Query(int fd, uint64_t address, uint64_t flags, MapEntry* found) {
  std::array<char, PATH_MAX> name{};
  ProcmapQuery query{.query_flags = flags,
                     .query_address = address,
                     .name_sizes = {static_cast<uint32_t>(name.size()), 0},
                     .name_addresses = {reinterpret_cast<uint64_t>(name.data()), 0}};
  if (::ioctl(fd, kProcmapQuery, &query) != 0) return errno;
  const absl::string_view text(name.data(), query.name_sizes[0] > 0 ? query.name_sizes[0] - 1 : 0);
  *found = {.start = query.start,
            .end = query.end,
            .readable = (query.flags & kReadable) != 0,
            .writable = (query.flags & kWritable) != 0,
            .executable = (query.flags & kExecutable) != 0,
            .shared = (query.flags & kShared) != 0,
            .file_offset = query.file_offset,
            .device_major = query.device[0],
            .device_minor = query.device[1],
            .inode = query.inode,
            .path = absl::StrReplaceAll(text, {{"\n", "\\012"}})};
  return 0;
}

std::string LineOf(const MapEntry& entry) {
  return absl::StrFormat("%x-%x %c%c%c%c %08x %02x:%02x %d %s\n", entry.start, entry.end,
                         entry.readable ? 'r' : '-', entry.writable ? 'w' : '-',
                         entry.executable ? 'x' : '-', entry.shared ? 's' : 'p', entry.file_offset,
                         entry.device_major, entry.device_minor, entry.inode, entry.path);
}

// None: the kernel does not tell, or not all.
std::optional<std::string> AskKernel(int fd, size_t limit) {
  std::string lines;
  uint64_t told = 0;  // up to this address
  MapEntry found;
  const auto tell = [&] {
    lines += LineOf(found);
    told = found.end;
  };
  int error = 0;
  while ((error = Query(fd, told, kThisOrNext | kExecutable, &found)) == 0) {
    const uint64_t start = found.start;
    const MapEntry code = found;
    const bool anonymous = code.inode == 0 && code.path.empty();
    if (anonymous && start > told && Query(fd, start - 1, 0, &found) == 0) tell();
    found = code;
    tell();
    if (anonymous && Query(fd, told, 0, &found) == 0 && !found.executable) tell();
    if (lines.size() > limit || told <= start) return std::nullopt;
  }
  if (error != ENOENT) return std::nullopt;
  return lines;
}

}  // namespace

absl::StatusOr<std::string> ReadExecutableMaps(const std::string& maps_path, size_t limit) {
  if (const UniqueFd file(::open(maps_path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
      file.valid()) {
    if (auto lines = AskKernel(file.get(), limit); lines.has_value()) return *std::move(lines);
  }
  ASSIGN_OR_RETURN(const std::string maps, ReadWholeFile(maps_path, limit));
  return PickExecutable(maps);
}

std::string PickExecutable(absl::string_view maps) {
  const std::vector<absl::string_view> lines = absl::StrSplit(maps, '\n', absl::SkipEmpty());
  std::vector<bool> wanted(lines.size(), false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (absl::EndsWith(lines[i], kOldCalls)) continue;
    const size_t space = lines[i].find(' ');
    const bool clear = space != lines[i].npos && lines[i].size() > space + 4;
    if (clear && lines[i][space + 3] != 'x') continue;
    wanted[i] = true;
    if (!clear || lines[i].find_first_of("/[") != lines[i].npos) continue;
    if (i > 0) wanted[i - 1] = true;
    if (i + 1 < lines.size()) wanted[i + 1] = true;
  }
  std::string picked;
  for (size_t i = 0; i < lines.size(); ++i)
    if (wanted[i]) absl::StrAppend(&picked, lines[i], "\n");
  return picked;
}

}  // namespace perfd::agent
