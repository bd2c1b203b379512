#include "agent/replay/recorded_files.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/utf8.h"

namespace perfd::agent {
namespace {

// A recording names tens of thousands of files at most; who names more is not believed.
constexpr size_t kMostFiles = 65'536;
constexpr size_t kFewestDigits = 4;

std::string CachedFile(const std::string& cache, const std::string& build_id) {
  return absl::StrCat(cache, "/.build-id/", build_id.substr(0, 2), "/", build_id.substr(2), "/elf");
}

// The module as a file of this machine that we have open, as it were.
std::optional<RawModule> LocalFile(const RawModule& module, const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  RawModule local = module;
  local.key = {major(info.st_dev), minor(info.st_dev), info.st_ino, path};
  local.pid = ::getpid();
  local.uid = ::geteuid();
  local.gid = ::getegid();
  return local;
}

}  // namespace

RecordedFiles::RecordedFiles(const std::vector<RecordedModule>& modules, OpenCodeSource open,
                             std::vector<std::string> caches)
    : open_(std::move(open)), caches_(std::move(caches)) {
  MutexLock lock(&mutex_);
  for (const RecordedModule& module : modules) {
    if (in_header_.size() >= kMostFiles) break;
    const std::string build_id = absl::BytesToHexString(module.build_id);
    const auto [it, is_new] = in_header_.try_emplace(module.path, build_id);
    if (!is_new && it->second != build_id) it->second.clear();
  }
}

std::vector<std::string> RecordedFiles::UsualCaches() {
  std::vector<std::string> caches;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    caches.push_back(absl::StrCat(home, "/.debug"));
  return caches;
}

MappingEvent RecordedFiles::Identify(MappingEvent mapping) {
  std::string build_id = absl::BytesToHexString(mapping.build_id);
  MutexLock lock(&mutex_);
  if (build_id.empty()) {
    const auto known = in_header_.find(mapping.path);
    if (known != in_header_.end()) build_id = known->second;
  }
  mapping.device_major = mapping.device_minor = 0;
  mapping.inode = 0;
  if (build_ids_.size() >= kMostFiles && !inodes_.contains({mapping.path, build_id})) return mapping;
  const auto [it, is_new] = inodes_.try_emplace({mapping.path, build_id}, build_ids_.size() + 1);
  if (is_new) build_ids_.push_back(build_id);
  mapping.inode = it->second;
  return mapping;
}

OpenCodeSource RecordedFiles::Opener() {
  return [this](const RawModule& module, ModuleDetail detail) { return Open(module, detail); };
}

std::string RecordedFiles::BuildIdOf(uint64_t inode) const {
  MutexLock lock(&mutex_);
  return inode == 0 || inode > build_ids_.size() ? "" : build_ids_[inode - 1];
}

absl::StatusOr<std::unique_ptr<CodeSource>> RecordedFiles::Open(const RawModule& module,
                                                                ModuleDetail detail) {
  const std::string& path = module.key.path;
  const std::string build_id = BuildIdOf(module.key.inode);
  if (build_id.size() < kFewestDigits) {
    return absl::FailedPreconditionError(
        absl::StrCat("the recording has no build-id of ", DisplayForm(path),
                     ": whether a file of this name is the same is not known (perf record "
                     "--buildid-mmap records them)"));
  }
  std::vector<std::string> candidates = {path};
  for (const std::string& cache : caches_) candidates.push_back(CachedFile(cache, build_id));
  absl::Status why;
  for (const std::string& candidate : candidates) {
    const std::optional<RawModule> local = LocalFile(module, candidate);
    if (!local.has_value()) continue;
    auto source = open_(*local, detail);
    if (!source.ok()) {
      why = source.status();
    } else if ((*source)->facts().build_id == build_id) {
      return source;
    }
  }
  if (!why.ok()) return why;
  return absl::NotFoundError(absl::StrCat(
      "there is no ", DisplayForm(path), " with the recorded build-id ", build_id, " here: put it to ",
      caches_.empty() ? DisplayForm(path) : DisplayForm(CachedFile(caches_.front(), build_id))));
}

}  // namespace perfd::agent
