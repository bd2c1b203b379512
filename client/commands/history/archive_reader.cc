#include "client/commands/history/archive_reader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/json/history_json.h"

namespace perfd::client {
namespace {

namespace fs = std::filesystem;

// Newest name first.
std::vector<std::string> JsonFiles(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code odd;
    if (it.depth() >= kMaxArchiveDepth) it.disable_recursion_pending();
    if (!fs::is_regular_file(it->symlink_status(odd)) || it->path().extension() != ".json")
      continue;
    files.push_back(it->path().string());
    if (files.size() == kMaxArchiveFiles) break;
  }
  std::sort(files.rbegin(), files.rend());
  return files;
}

std::optional<HistoryProfile> ReadProfile(const std::string& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error || size > kMaxArchiveFileBytes) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<size_t>(size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  absl::StatusOr<HistoryProfile> profile = HistoryFromReportJson(text);
  return profile.ok() ? std::optional(*std::move(profile)) : std::nullopt;
}

}  // namespace

absl::StatusOr<ProgramHistory> ReadArchive(const std::string& folder, std::string command,
                                           size_t limit) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return absl::NotFoundError(absl::StrCat("there is no directory '", folder, "'"));
  ProgramHistory history;
  history.command = std::move(command);
  size_t odd = 0;
  for (const std::string& path : JsonFiles(folder)) {
    if (history.profiles.size() == limit) break;
    std::optional<HistoryProfile> profile = ReadProfile(path);
    if (!profile.has_value()) {
      ++odd;
      continue;
    }
    if (history.command.empty()) history.command = profile->command;
    if (profile->command == history.command) history.profiles.push_back(*std::move(profile));
  }
  if (odd > 0)
    history.incomplete = absl::StrCat(odd, " files there are no reports that can be read");
  if (history.profiles.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no report in '", folder, "' is of ",
                     history.command.empty() ? "any program" : history.command,
                     odd > 0 ? absl::StrCat("; ", history.incomplete) : ""));
  }
  std::stable_sort(history.profiles.begin(), history.profiles.end(),
                   [](const HistoryProfile& a, const HistoryProfile& b) {
                     return a.started_unix_ns < b.started_unix_ns;
                   });
  return history;
}

}  // namespace perfd::client
