#include "core/model/hook.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace perfd {
namespace {

constexpr uint32_t kFnvBasis = 2166136261u;
constexpr uint32_t kFnvPrime = 16777619u;
constexpr uint32_t kHashed = uint32_t{1} << 31;  // no scheduler that counts its jobs comes so far

uint32_t Hash(absl::string_view text) {
  uint32_t hash = kFnvBasis;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= kFnvPrime;
  }
  return hash | kHashed;
}

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// "4711[3]" or "4711[3].server", after its first `digits`.
bool IsElement(absl::string_view job, size_t digits) {
  if (digits == 0 || digits == job.size() || job[digits] != '[') return false;
  size_t end = digits + 1;
  while (end < job.size() && IsDigit(job[end])) ++end;
  if (end == digits + 1 || end == job.size() || job[end] != ']') return false;
  return end + 1 == job.size() || job[end + 1] == '.';
}

}  // namespace

const char* HookDecisionName(HookDecision decision) {
  switch (decision) {
    case HookDecision::kProfile:
      return "profile";
    case HookDecision::kNotChosen:
      return "not_chosen";
    case HookDecision::kOptedOut:
      return "opted_out";
    case HookDecision::kNever:
      return "never";
    case HookDecision::kQuota:
      return "quota";
    case HookDecision::kUnavailable:
      return "unavailable";
    case HookDecision::kNone:
      return "none";
  }
  return "unknown";
}

std::optional<uint32_t> JobNumber(absl::string_view job) {
  size_t digits = 0;
  while (digits < job.size() && IsDigit(job[digits])) ++digits;
  const bool numbered = digits == job.size() || job[digits] == '.';
  uint32_t number = 0;
  if (digits > 0 && numbered && absl::SimpleAtoi(job.substr(0, digits), &number)) {
    if (number == 0) return std::nullopt;
    return number;
  }
  if (job.empty()) return std::nullopt;
  return Hash(IsElement(job, digits) ? job.substr(0, job.find(']') + 1) : job);
}

}  // namespace perfd
