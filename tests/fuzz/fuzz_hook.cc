// Whatever the text, host lists and policies are read within their bounds; what is accepted keeps the rules it promises.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "core/hosts/host_list.h"
#include "core/spec/policy.h"
#include "core/spec/spec.h"
#include "daemon/policy/decide.h"

namespace {

void CheckHosts(absl::string_view text) {
  const auto hosts = perfd::ExpandHostList(text);
  if (!hosts.ok()) return;
  if (hosts->size() > perfd::kMaxHosts) std::abort();
  const std::set<std::string> names(hosts->begin(), hosts->end());
  if (names.size() != hosts->size()) std::abort();
  for (const std::string& name : names) {
    if (name.empty() || name.size() > perfd::kMaxHostBytes) std::abort();
    // A name without brackets means itself.
    if (perfd::ExpandHostList(name)->front() != name) std::abort();
  }
}

// What a user writes as a preset neither refuses a profile nor leads to one that the policy does not have.
void CheckPreset(absl::string_view text) {
  const perfd::Policy policy;
  perfd::HookJob job;
  job.job = "1";
  job.preference = perfd::HookPreference::kOptIn;
  job.preset = std::string(text);
  const perfd::daemon::PolicyChoice choice = perfd::daemon::Decide(policy, job, {});
  if (choice.answer.decision != perfd::HookDecision::kProfile) std::abort();
  if (!policy.presets.contains(choice.preset)) std::abort();
  if (choice.answer.reason.find('\n') != std::string::npos) std::abort();
}

void CheckNumber(absl::string_view text) {
  const auto number = perfd::JobNumber(text);
  if (number.has_value() && *number == 0) std::abort();
  if (perfd::JobNumber(std::string(text)) != number) std::abort();
}

void CheckPolicy(absl::string_view text) {
  const auto policy = perfd::ParsePolicy(text);
  if (!policy.ok()) return;
  if (!policy->presets.contains(policy->preset)) std::abort();
  for (auto [name, spec] : policy->presets) {
    spec.target.slurm_job = 1;
    if (!perfd::ValidateProfileSpec(spec).ok()) std::abort();
  }
  perfd::HookJob job;
  job.job = "1";
  for (int64_t counted = 0; counted < 4; ++counted) {
    const perfd::daemon::PolicyChoice choice =
        perfd::daemon::Decide(*policy, job, {.counted = counted, .active = 0, .today = 0});
    const bool profile = choice.answer.decision == perfd::HookDecision::kProfile;
    if (profile && !policy->presets.contains(choice.preset)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  CheckHosts(text);
  CheckPolicy(text);
  CheckPreset(text);
  CheckNumber(text);
  return 0;
}
