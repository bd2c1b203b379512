#include "agent/pipeline/code_index.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace perfd {
namespace {

constexpr int64_t kRetryNs = 10 * kNsPerSecond;

std::string CodeId(const RawModule& module, const ModuleFacts& facts) {
  return facts.build_id.empty() ? absl::StrCat("path:", module.key.path) : facts.build_id;
}

}  // namespace

const FunctionFacts* ModuleCode::FunctionAt(uint64_t address) const {
  auto it = functions.upper_bound(address);
  if (it == functions.begin()) return nullptr;
  const FunctionFacts& function = std::prev(it)->second;
  return address < function.high ? &function : nullptr;
}

CodeIndex::Source& CodeIndex::Open(const RawModule& module) {
  const int64_t now = clock_.MonotonicNs();
  Source& source = sources_[module.key];
  source.last_used_ns = now;
  if (source.reader != nullptr || now < source.retry_at_ns) return source;
  auto reader = open_(module);
  if (!reader.ok()) {
    source.retry_at_ns = now + kRetryNs;
    if (source.code_id.empty()) source.code_id = absl::StrCat("path:", module.key.path);
    auto& code = code_[source.code_id];
    if (code == nullptr) code = std::make_shared<ModuleCode>();
    code->id = source.code_id;
    code->error = reader.status();
    return source;
  }
  source.reader = std::move(reader).value();
  source.code_id = CodeId(module, source.reader->facts());
  auto& code = code_[source.code_id];
  if (code == nullptr) code = std::make_shared<ModuleCode>();
  code->id = source.code_id;
  code->facts = source.reader->facts();
  code->error = absl::OkStatus();
  return source;
}

void CodeIndex::LearnMissing(Source& source, ModuleCode& code, const std::vector<uint64_t>& offsets,
                             absl::Duration timeout) {
  std::vector<uint64_t> missing;
  for (uint64_t offset : offsets) {
    const auto address = VirtualAddress(code.facts, offset);
    if (!address.has_value() || code.FunctionAt(*address) != nullptr) continue;
    if (!code.unresolved.contains(*address)) missing.push_back(*address);
  }
  if (missing.empty()) return;
  auto facts = source.reader->Lookup(missing, timeout);
  if (!facts.ok()) {
    source.reader.reset();
    source.retry_at_ns = clock_.MonotonicNs() + kRetryNs;
    code.error = facts.status();
    return;
  }
  for (FunctionFacts& function : facts->functions) {
    const uint64_t low = function.low;
    code.functions.insert_or_assign(low, std::move(function));
  }
  code.unresolved.insert(facts->unresolved.begin(), facts->unresolved.end());
}

std::shared_ptr<const ModuleCode> CodeIndex::Learn(const RawModule& module,
                                                   const std::vector<uint64_t>& file_offsets,
                                                   absl::Duration timeout) {
  Source& source = Open(module);
  std::shared_ptr<ModuleCode> code = code_.at(source.code_id);
  code->last_used_ns = source.last_used_ns;
  if (source.reader != nullptr) LearnMissing(source, *code, file_offsets, timeout);
  Evict(source.code_id);
  return code;
}

void CodeIndex::CloseIdleReaders(int64_t idle_ns) {
  const int64_t now = clock_.MonotonicNs();
  absl::erase_if(sources_, [&](const auto& entry) {
    return now - entry.second.last_used_ns >= idle_ns && now >= entry.second.retry_at_ns;
  });
}

void CodeIndex::Evict(const std::string& keep) {
  size_t total = 0;
  for (const auto& [id, code] : code_) total += code->functions.size() + code->unresolved.size();
  while (total > kMaxFunctions && code_.size() > 1) {
    auto oldest = code_.end();
    for (auto it = code_.begin(); it != code_.end(); ++it) {
      if (it->first == keep) continue;
      if (oldest == code_.end() || it->second->last_used_ns < oldest->second->last_used_ns) oldest = it;
    }
    total -= oldest->second->functions.size() + oldest->second->unresolved.size();
    const std::string id = oldest->first;
    absl::erase_if(sources_, [&](const auto& entry) { return entry.second.code_id == id; });
    code_.erase(oldest);
  }
}

}  // namespace perfd
