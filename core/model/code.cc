#include "core/model/code.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace perfd {

const char* CategoryName(Category category) {
  switch (category) {
    case Category::kLoop:
      return "loops";
    case Category::kOutsideLoop:
      return "outside loops";
    case Category::kLibrary:
      return "libraries";
    case Category::kKernel:
      return "kernel";
    case Category::kUnknown:
      return "unknown";
  }
  return "unknown";
}

const char* KernelCauseName(KernelCause cause) {
  switch (cause) {
    case KernelCause::kUnknown:
      return "unknown";
    case KernelCause::kPageFault:
      return "page_faults";
    case KernelCause::kMemoryReturn:
      return "memory_return";
    case KernelCause::kMemoryMap:
      return "memory_mapping";
    case KernelCause::kIo:
      return "io";
    case KernelCause::kCopy:
      return "copies";
    case KernelCause::kWaiting:
      return "waiting";
    case KernelCause::kInterrupt:
      return "interrupts";
    case KernelCause::kOther:
      return "other_calls";
  }
  return "unknown";
}

std::vector<CodeRange> PartsOf(const FunctionFacts& function) {
  std::vector<CodeRange> parts = function.further_parts;
  const CodeRange first{function.low, function.high};
  parts.insert(std::upper_bound(parts.begin(), parts.end(), first), first);
  return parts;
}

const LoopFacts* InnermostLoop(const FunctionFacts& function, ElfAddress address) {
  auto after = std::upper_bound(function.spans.begin(), function.spans.end(), address,
                                [](ElfAddress a, const LoopSpan& span) { return a < span.low; });
  if (after == function.spans.begin()) return nullptr;
  const LoopSpan& span = *std::prev(after);
  if (address >= span.high || span.loop >= function.loops.size()) return nullptr;
  return &function.loops[span.loop];
}

std::string LocationKey(const CodeLocation& location) {
  std::string key = absl::StrCat(static_cast<int>(location.category), "|", location.module_id, "|");
  if (location.loop.has_value()) {
    absl::StrAppend(&key, "L", absl::Hex(location.loop->header));
  } else if (location.function_low != 0) {
    absl::StrAppend(&key, "F", absl::Hex(location.function_low));
  } else {
    absl::StrAppend(&key, "N", location.function);
  }
  if (location.kernel_cause != KernelCause::kUnknown)
    absl::StrAppend(&key, "|C", static_cast<int>(location.kernel_cause));
  if (!location.kernel_caller.empty())
    absl::StrAppend(&key, "|", location.kernel_caller, "|", location.source.first_line);
  return key;
}

std::string LocationId(const CodeLocation& location) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a offset basis and prime, RFC draft-eastlake-fnv
  for (char c : LocationKey(location))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return absl::StrFormat("%016x", hash);
}

}  // namespace perfd
