#include "agent/anonymous/moved_code.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t PageDown(uint64_t value) {
  return value & ~(kPage - 1);
}
uint64_t PageUp(uint64_t value) {
  return PageDown(value + kPage - 1);
}

// The file's page that a mapping begins with may hold the end of one segment and the begin of another.
bool BeginsIn(const ModuleSegment& segment, FileOffset offset) {
  const uint64_t begin = PageDown(segment.file_offset.value());
  const uint64_t end = PageUp(segment.file_offset.value() + segment.file_size);
  return offset.value() >= begin && offset.value() < end;
}

bool IsWithinCode(const ModuleFacts& facts, LoadBias bias, RuntimeAddress start,
                  RuntimeAddress end) {
  return std::any_of(facts.segments.begin(), facts.segments.end(), [&](const ModuleSegment& code) {
    const RuntimeAddress low = ElfAddress(PageDown(code.virtual_address.value())) + bias;
    const uint64_t bytes =
        PageUp(code.virtual_end().value()) - PageDown(code.virtual_address.value());
    return code.executable && start - low < bytes && end - low <= bytes;
  });
}

const ModuleSegment* CodeAt(const ModuleFacts& facts, ElfAddress address) {
  const auto it = std::find_if(facts.segments.begin(), facts.segments.end(), [&](const auto& s) {
    return s.executable && address >= s.virtual_address && address < s.virtual_end();
  });
  return it == facts.segments.end() ? nullptr : &*it;
}

}  // namespace

std::optional<LoadBias> BiasOfMoved(const ModuleFacts& facts, RuntimeAddress start,
                                    RuntimeAddress end, const FileNeighbour& beside) {
  std::optional<LoadBias> found;
  for (const ModuleSegment& segment : facts.segments) {
    if (!BeginsIn(segment, beside.file_offset)) continue;
    const uint64_t from_segment =
        beside.file_offset.value() - PageDown(segment.file_offset.value());
    const LoadBias bias(beside.start, PageDown(segment.virtual_address.value()) + from_segment);
    if (!IsWithinCode(facts, bias, start, end)) continue;
    if (found.has_value() && *found != bias) return std::nullopt;
    found = bias;
  }
  return found;
}

MovedCode::Known& MovedCode::Of(const ProcessId& process) {
  if (known_.size() >= kMaxProcesses && !known_.contains(process))
    known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
      return a.second.asked < b.second.asked;
    }));
  Known& known = known_[process];
  known.asked = ++asked_;
  return known;
}

absl::Status MovedCode::Check(const ProcessId& process, const ModuleFacts& facts, LoadBias bias,
                              const CodeRange& range, HasBytes has_bytes) {
  if (!read_) return absl::UnimplementedError("the memory of the process is not read");
  Known& known = Of(process);
  for (uint64_t page = PageDown(range.low); page < range.high; page += kPage) {
    const RuntimeAddress at = ElfAddress(page) + bias;
    if (known.equal.contains(at)) continue;
    // What the file's last page holds beyond its code is nobody's.
    const ModuleSegment* code = CodeAt(facts, std::max(page, range.low));
    if (code == nullptr) return absl::FailedPreconditionError("it is beyond the code of the file");
    const uint64_t low = std::max(page, code->virtual_address.value());
    const uint64_t bytes = std::min(page + kPage, code->virtual_end().value()) - low;
    ASSIGN_OR_RETURN(const std::string memory, read_(process.pid, ElfAddress(low) + bias, bytes));
    ASSIGN_OR_RETURN(const bool equal, has_bytes(low, memory));
    if (!equal) return absl::FailedPreconditionError("its bytes are not those of the file");
    known.equal.insert(at);
  }
  return absl::OkStatus();
}

}  // namespace perfd::agent
