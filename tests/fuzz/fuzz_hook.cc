// Whatever the text, host lists and policies are read within their bounds; what is accepted keeps the rules it promises.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "core/spec/policy.h"
#include "core/spec/spec.h"
#include "daemon/policy/decide.h"
#include "daemon/policy/hostlist.h"

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
    const perfd::PolicyChoice choice =
        perfd::Decide(*policy, job, {.counted = counted, .active = 0, .today = 0});
    const bool profile = choice.answer.decision == perfd::HookDecision::kProfile;
    if (profile && !policy->presets.contains(choice.preset)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  CheckHosts(text);
  CheckPolicy(text);
  return 0;
}
