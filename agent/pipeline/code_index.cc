#include "agent/pipeline/code_index.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

std::string CodeId(const RawModule& module, const ModuleFacts& facts) {
  if (!facts.build_id.empty()) return facts.build_id;
  return facts.code_hash.empty() ? absl::StrCat("path:", module.key.path)
                                 : absl::StrCat("code:", facts.code_hash);
}

// Under which it is kept: neither an older file of this name, nor another one of this build-id, nor its stripped twin.
std::string CodeKey(const RawModule& module, const ModuleFacts& facts) {
  return absl::StrCat(CodeId(module, facts), "|", facts.file.device, ":", facts.file.inode, "|",
                      facts.file.bytes, "|", facts.file.modified_ns, "|", facts.has_symbols);
}

// Addresses of which nothing is known, each once.
std::vector<ElfAddress> MissingFrom(const ModuleCode& code,
                                    const std::vector<FileOffset>& offsets) {
  std::vector<ElfAddress> missing;
  for (FileOffset offset : offsets) {
    const auto address = ToElfAddress(code.facts, offset);
    if (!address.has_value() || code.FunctionAt(*address) != nullptr) continue;
    if (!code.unresolved.contains(*address)) missing.push_back(*address);
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return missing;
}

}  // namespace

const FunctionFacts* ModuleCode::FunctionAt(ElfAddress address) const {
  if (auto it = functions.upper_bound(address); it != functions.begin()) {
    const FunctionFacts& function = std::prev(it)->second;
    if (address < function.high) return &function;
  }
  const auto part = further_parts.upper_bound(address);
  if (part == further_parts.begin() || address >= std::prev(part)->second.high) return nullptr;
  const auto function = functions.find(std::prev(part)->second.function);
  return function == functions.end() ? nullptr : &function->second;
}

void ModuleCode::Add(FunctionFacts function) {
  const ElfAddress low = function.low;
  for (const CodeRange& part : function.further_parts)
    further_parts.insert_or_assign(part.low, FurtherPart{part.high, low});
  functions.insert_or_assign(low, std::move(function));
}

bool ProcessIsAlive(int32_t pid) {
  return ::kill(pid, 0) == 0 || errno != ESRCH;
}

// The process through which it was opened holds the inode: no other file can have it. An open reader does not: once the program
// has ended, another one may be copied over it. A library may be written over under a process that lives: what began, or was
// executed, after the reading may have mapped something else. Of programs that come and go at a great rate each would be looked at
// anew: for a moment nothing is.
bool CodeIndex::Trusts(const Source& source, const RawModule& module) const {
  if (!source.known) return false;
  const auto& through = source.through;
  if (std::find(through.begin(), through.end(), module.process) != through.end()) return true;
  if (clock_.MonotonicNs() - source.opened_ns < kTrustNs) return true;
  return is_alive_(through.back().pid) && module.process.image == 0 &&
         BeganAtUnixNs(clock_, module.process.start_ticks) + kBeganBlurNs < source.opened_unix_ns;
}

ModuleCode& CodeIndex::Code(Source& source, std::string key, std::string id) {
  source.code_key = std::move(key);
  auto& code = code_[source.code_key];
  if (code == nullptr) code = std::make_shared<ModuleCode>();
  code->id = std::move(id);
  return *code;
}

bool CodeIndex::KnowsLinesUnreadBy(const RawModule& module, const CodeSource& reader) const {
  const auto known = code_.find(CodeKey(module, reader.facts()));
  return known != code_.end() && reader.facts().lines_unread && !known->second->facts.lines_unread;
}

// False: there is no reader now.
bool CodeIndex::Open(const RawModule& module, Source& source) {
  if (source.reader != nullptr) return true;
  const int64_t now = clock_.MonotonicNs();
  if (now < source.retry_at_ns) return false;
  auto reader = open_(module, source.detail);
  // An earlier profile, or the same file by another path: once lines were read they stay.
  if (reader.ok() && KnowsLinesUnreadBy(module, **reader)) {
    source.detail = ModuleDetail::kLines;
    if (auto lines = open_(module, source.detail); lines.ok()) reader = std::move(lines);
  }
  waited_ns_ += clock_.MonotonicNs() - now;
  if (!reader.ok()) {
    Fail(source, reader.status(), now);
    const std::string unread = absl::StrCat("path:", module.key.path);
    if (!source.known) Code(source, unread, unread).error = source.failure;
    return false;
  }
  Adopt(module, source, std::move(reader).value());
  return true;
}

// What was learnt without lines is forgotten; a window that is being resolved keeps it.
void CodeIndex::Adopt(const RawModule& module, Source& source, std::unique_ptr<CodeSource> reader) {
  const ModuleFacts& facts = reader->facts();
  const std::string key = CodeKey(module, facts);
  const auto known = code_.find(key);
  if (known != code_.end() && known->second->facts.lines_unread && !facts.lines_unread)
    code_.erase(known);
  source.known = true;
  if (key != source.code_key || source.through.size() >= kMaxThrough) source.through.clear();
  source.through.push_back(module.process);
  source.opened_unix_ns = clock_.UnixNs();
  source.reader_used_ns = source.opened_ns = clock_.MonotonicNs();
  ModuleCode& code = Code(source, key, CodeId(module, facts));
  code.facts = facts;
  code.error = absl::OkStatus();
  source.reader = std::move(reader);
}

// Instead of what is known without; where that fails it stays as it was, until the next try.
void CodeIndex::ReadLines(const RawModule& module, Source& source,
                          const std::vector<FileOffset>& offsets, absl::Duration timeout) {
  const int64_t now = clock_.MonotonicNs();
  auto reader = open_(module, ModuleDetail::kLines);
  waited_ns_ += clock_.MonotonicNs() - now;
  auto names = std::exchange(source.reader, nullptr);
  const std::string key = source.code_key;
  const std::shared_ptr<ModuleCode> before = code_.at(key);
  if (reader.ok()) {
    Adopt(module, source, std::move(reader).value());
    ModuleCode& code = *code_.at(source.code_key);
    LearnMissing(source, code, MissingFrom(code, offsets), timeout);
    if (source.reader != nullptr) return;
  } else {
    Fail(source, reader.status(), now);
  }
  source.reader = std::move(names);
  source.code_key = key;
  code_[key] = before;
}

bool CodeIndex::LacksLines(const Source& source) const {
  return source.detail == ModuleDetail::kLines && source.known &&
         code_.at(source.code_key)->facts.lines_unread;
}

// A module that always fails slowly gets a small part of the resolver's time.
void CodeIndex::Fail(Source& source, const absl::Status& status, int64_t since_ns) {
  constexpr int64_t kPausePerTime = 4;
  const int64_t now = clock_.MonotonicNs();
  source.reader.reset();
  source.retry_pause_ns =
      std::clamp(std::max(2 * source.retry_pause_ns, kPausePerTime * (now - since_ns)), kMinRetryNs,
                 kMaxRetryNs);
  source.retry_at_ns = now + source.retry_pause_ns;
  source.failure = status;
}

void CodeIndex::LearnMissing(Source& source, ModuleCode& code, std::vector<ElfAddress> missing,
                             absl::Duration timeout) {
  const int64_t start = clock_.MonotonicNs();
  const int64_t end = start + absl::ToInt64Nanoseconds(timeout);
  for (size_t first = 0; first < missing.size(); first += kMaxAddresses) {
    const size_t last = std::min(first + kMaxAddresses, missing.size());
    const std::vector<ElfAddress> chunk(missing.begin() + static_cast<std::ptrdiff_t>(first),
                                        missing.begin() + static_cast<std::ptrdiff_t>(last));
    const int64_t asked = clock_.MonotonicNs();
    auto facts = source.reader->Lookup(chunk, absl::Nanoseconds(std::max<int64_t>(end - asked, 0)));
    waited_ns_ += clock_.MonotonicNs() - asked;
    if (!facts.ok()) return Fail(source, facts.status(), start);
    for (FunctionFacts& function : facts->functions) code.Add(std::move(function));
    code.unresolved.insert(facts->unresolved.begin(), facts->unresolved.end());
  }
  source.reader_used_ns = clock_.MonotonicNs();
  source.retry_pause_ns = 0;
}

std::shared_ptr<const ModuleCode> CodeIndex::Learn(const RawModule& module,
                                                   const std::vector<FileOffset>& file_offsets,
                                                   absl::Duration timeout, ModuleDetail detail) {
  Source& source = sources_[module.key];
  source.last_used_ns = clock_.MonotonicNs();
  source.detail = std::max(source.detail, detail);
  // A job that has ended may leave nothing to open: then what was known of the file a moment ago is the best there is.
  if (!Trusts(source, module)) {
    source.reader.reset();
    Open(module, source);
  }
  if (LacksLines(source) && timeout > absl::ZeroDuration() &&
      source.last_used_ns >= source.retry_at_ns)
    ReadLines(module, source, file_offsets, timeout);
  std::shared_ptr<ModuleCode> code = code_.at(source.code_key);
  if (source.known && !MissingFrom(*code, file_offsets).empty()) {
    if (Open(module, source)) {
      code = code_.at(source.code_key);  // the file may turn out to be another one
      LearnMissing(source, *code, MissingFrom(*code, file_offsets), timeout);
    }
    if (source.reader == nullptr) code->error = source.failure;
  }
  code->last_used_ns = source.last_used_ns;
  CloseReaders(source);
  Evict(source.code_key);
  return code;
}

bool CodeIndex::Knows(const RawModule& module, const std::vector<FileOffset>& file_offsets) const {
  const auto source = sources_.find(module.key);
  if (source == sources_.end() || source->second.code_key.empty()) return false;
  if (source->second.reader == nullptr && clock_.MonotonicNs() < source->second.retry_at_ns)
    return true;  // it would not be tried again
  return Trusts(source->second, module) &&
         MissingFrom(*code_.at(source->second.code_key), file_offsets).empty();
}

std::shared_ptr<const ModuleCode> CodeIndex::Recall(const RawModule& module) const {
  const auto source = sources_.find(module.key);
  if (source != sources_.end() && !source->second.code_key.empty())
    return code_.at(source->second.code_key);
  auto nothing = std::make_shared<ModuleCode>();
  nothing->id = absl::StrCat("path:", module.key.path);
  nothing->error = absl::DeadlineExceededError("it has not been read");
  return nothing;
}

absl::Status CodeIndex::CheckMoved(const RawModule& file, LoadBias bias, const CodeRange& range,
                                   absl::Duration timeout) {
  const auto found = sources_.find(file.key);
  if (found == sources_.end() || !found->second.known) return absl::NotFoundError("never read");
  Source& source = found->second;
  const std::string key = source.code_key;
  const std::shared_ptr<const ModuleCode> code = code_.at(key);  // lives on, whatever is read anew
  const int64_t end = clock_.MonotonicNs() + absl::ToInt64Nanoseconds(timeout);
  const auto has_bytes = [&](ElfAddress at, absl::string_view bytes) -> absl::StatusOr<bool> {
    if (timeout <= absl::ZeroDuration())
      return absl::DeadlineExceededError("reading has taken too long already");
    if (!Open(file, source)) return source.failure;
    if (source.code_key != key) return absl::FailedPreconditionError("the file is another one now");
    const int64_t asked = clock_.MonotonicNs();
    auto same =
        source.reader->HasBytes(at, bytes, absl::Nanoseconds(std::max<int64_t>(end - asked, 0)));
    waited_ns_ += clock_.MonotonicNs() - asked;
    if (!same.ok()) Fail(source, same.status(), asked);
    source.reader_used_ns = clock_.MonotonicNs();
    return same;
  };
  return moved_.Check(file.process, code->facts, bias, range, has_bytes);
}

size_t CodeIndex::reader_count() const {
  return static_cast<size_t>(std::count_if(sources_.begin(), sources_.end(), [](const auto& entry) {
    return entry.second.reader != nullptr;
  }));
}

void CodeIndex::CloseReaders(const Source& keep) {
  while (reader_count() > kMaxReaders) {
    Source* oldest = nullptr;
    for (auto& [key, source] : sources_) {
      if (source.reader == nullptr || &source == &keep) continue;
      if (oldest == nullptr || source.reader_used_ns < oldest->reader_used_ns) oldest = &source;
    }
    oldest->reader.reset();
  }
}

void CodeIndex::CloseIdleReaders(int64_t idle_ns) {
  const int64_t now = clock_.MonotonicNs();
  absl::erase_if(sources_, [&](auto& entry) {
    const Source& source = entry.second;
    return now - source.last_used_ns >= idle_ns && now - source.retry_at_ns >= idle_ns;
  });
  for (auto& [key, source] : sources_) {
    if (now - source.reader_used_ns >= idle_ns) source.reader.reset();
  }
}

void CodeIndex::Evict(const std::string& keep) {
  size_t total = 0;
  for (const auto& [id, code] : code_) total += code->functions.size() + code->unresolved.size();
  while (total > kMaxFunctions && code_.size() > 1) {
    auto oldest = code_.end();
    for (auto it = code_.begin(); it != code_.end(); ++it) {
      if (it->first == keep) continue;
      if (oldest == code_.end() || it->second->last_used_ns < oldest->second->last_used_ns)
        oldest = it;
    }
    total -= oldest->second->functions.size() + oldest->second->unresolved.size();
    const std::string id = oldest->first;
    absl::erase_if(sources_, [&](const auto& entry) { return entry.second.code_key == id; });
    code_.erase(oldest);
  }
}

}  // namespace perfd::agent
