// Source   proc(5) "/proc/pid/maps"; fs/proc/task_mmu.c show_map_vma (field widths, the padding before the name) and
//          fs/seq_file.c seq_path with escape "\n": only a newline in a name is written as \012.
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "agent/procfs/procfs.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr absl::string_view kDeleted = " (deleted)";
constexpr size_t kMaxShownLine = 120;

// Takes digits of `base` up to `stop` off the front of `text`.
template <typename T>
bool TakeNumber(absl::string_view* text, int base, char stop, T* value) {
  const size_t end = text->find(stop);
  if (end == 0 || end == absl::string_view::npos) return false;
  uint64_t wide = 0;
  for (char c : text->substr(0, end)) {
    const int digit = absl::ascii_isdigit(static_cast<unsigned char>(c)) ? c - '0'
                      : c >= 'a' && c <= 'f'                             ? c - 'a' + 10
                                                                         : 99;
    const auto step = static_cast<uint64_t>(base);
    if (digit >= base || wide > (UINT64_MAX - static_cast<uint64_t>(digit)) / step) return false;
    wide = wide * step + static_cast<uint64_t>(digit);
  }
  *value = static_cast<T>(wide);
  text->remove_prefix(end + 1);
  return *value == wide;
}

bool TakePermissions(absl::string_view* text, MapEntry* entry) {
  if (text->size() < 5 || (*text)[4] != ' ') return false;
  const auto flag = [&](size_t i, char set, bool* value) {
    *value = (*text)[i] == set;
    return *value || (*text)[i] == '-';
  };
  if (!flag(0, 'r', &entry->readable) || !flag(1, 'w', &entry->writable) ||
      !flag(2, 'x', &entry->executable)) {
    return false;
  }
  entry->shared = (*text)[3] == 's' || (*text)[3] == 'S';
  if (!entry->shared && (*text)[3] != 'p') return false;
  text->remove_prefix(5);
  return true;
}

// Inode, then nothing or spaces and the name. Old kernels leave a space after the inode of anonymous memory.
bool TakeInodeAndPath(absl::string_view text, MapEntry* entry) {
  const size_t inode_end = text.find(' ');
  if (!absl::SimpleAtoi(text.substr(0, inode_end), &entry->inode)) return false;
  if (inode_end == absl::string_view::npos) return true;
  const size_t name = text.find_first_not_of(' ', inode_end);
  if (name == absl::string_view::npos) return true;
  absl::string_view path = text.substr(name);
  // A file can really be called "x (deleted)"; the kernel writes no better, so the mark wins.
  if (path.front() != '[' && absl::EndsWith(path, kDeleted)) {
    entry->deleted = true;
    path.remove_suffix(kDeleted.size());
  }
  entry->path = absl::StrReplaceAll(path, {{"\\012", "\n"}});
  return true;
}

bool ParseLine(absl::string_view line, MapEntry* entry) {
  return TakeNumber(&line, 16, '-', &entry->start) && TakeNumber(&line, 16, ' ', &entry->end) &&
         TakePermissions(&line, entry) && TakeNumber(&line, 16, ' ', &entry->file_offset) &&
         TakeNumber(&line, 16, ':', &entry->device_major) &&
         TakeNumber(&line, 16, ' ', &entry->device_minor) && TakeInodeAndPath(line, entry) &&
         entry->start < entry->end;
}

}  // namespace

absl::StatusOr<std::vector<MapEntry>> ParseMaps(absl::string_view text) {
  std::vector<MapEntry> entries;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    MapEntry entry;
    if (!ParseLine(line, &entry)) {
      return absl::InvalidArgumentError(
          absl::StrCat("not a line of maps: '", line.substr(0, kMaxShownLine), "'"));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace perfd::agent
