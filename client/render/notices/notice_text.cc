#include "client/render/notices/notice_text.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace perfd::client {
namespace {

// "4713 (heat), 4714 (heat) and 6 more"
std::string ProcessesText(const std::vector<NamedProcess>& processes, int32_t count) {
  std::string text =
      absl::StrJoin(processes, ", ", [](std::string* out, const NamedProcess& process) {
        absl::StrAppend(out, process.pid, " (", process.command, ")");
      });
  const auto more = count - static_cast<int32_t>(processes.size());
  return more > 0 ? absl::StrCat(text, " and ", more, " more") : text;
}

std::string PidsText(const std::vector<NamedProcess>& processes) {
  return absl::StrJoin(processes, ",", [](std::string* out, const NamedProcess& process) {
    absl::StrAppend(out, process.pid);
  });
}

std::string RefusedText(const LauncherNote& note) {
  const std::string who = ProcessesText(note.launchers, note.launcher_count);
  const std::string only =
      absl::StrCat(who, note.launcher_count == 1 ? " only waits for its children"
                                                 : " only wait for their children");
  if (note.working.empty()) return only + ", and none of them works yet: try again when they do";
  const std::string tree = absl::StrCat("--pid ", PidsText(note.launchers), " --tree");
  const bool all_named = note.working_count == static_cast<int32_t>(note.working.size());
  return absl::StrCat(
      only, "; ", ProcessesText(note.working, note.working_count),
      note.working_count == 1 ? " works" : " work", ": perfctl submit ",
      all_named ? absl::StrCat("--pid ", PidsText(note.working), ", or ", tree) : tree,
      " for all that run below it");
}

std::string LaunchersText(const LauncherNote& note) {
  if (note.disposition == LauncherNote::Disposition::kRefused) return RefusedText(note);
  return absl::StrCat(ProcessesText(note.launchers, note.launcher_count),
                      note.launcher_count == 1 ? " only waits for its children and is left out"
                                               : " only wait for their children and are left out");
}

}  // namespace

std::string NoticeText(const Notice& notice) {
  return notice.launchers.has_value() ? LaunchersText(*notice.launchers) : notice.text;
}

// "rank 3 (pid 17) ...", "process 17 (app) ...".
bool NamesProcess(const Notice& notice) {
  if (notice.launchers.has_value()) return true;
  for (const char* word : {"pid ", "process "}) {
    const std::string named = absl::StrCat(word, notice.pid);
    const size_t at = notice.text.find(named);
    if (at == std::string::npos) continue;
    const size_t end = at + named.size();
    if (end == notice.text.size() ||
        !absl::ascii_isdigit(static_cast<unsigned char>(notice.text[end])))
      return true;
  }
  return false;
}

}  // namespace perfd::client
