#include "daemon/policy/decide.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/clock.h"

namespace perfd::daemon {
namespace {

using Action = PolicyRule::Action;

constexpr int64_t kDayNs = 24 * 3600 * kNsPerSecond;
constexpr size_t kMaxShown = 64;  // characters of a user's text

bool Names(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

const PolicyRule* RuleOf(const Policy& policy, const HookJob& job) {
  const auto rule =
      std::find_if(policy.rules.begin(), policy.rules.end(), [&](const PolicyRule& candidate) {
        const PolicyMatch& match = candidate.match;
        return Names(match.partitions, job.partition) && Names(match.users, job.user) &&
               Names(match.accounts, job.account);
      });
  return rule == policy.rules.end() ? nullptr : &*rule;
}

std::string Ordinal(int64_t number) {
  const int64_t last = number % 10;
  const bool teen = number % 100 >= 11 && number % 100 <= 13;
  const char* suffix = "th";
  if (!teen && last == 1) suffix = "st";
  if (!teen && last == 2) suffix = "nd";
  if (!teen && last == 3) suffix = "rd";
  return absl::StrCat(number, suffix);
}

// Which rule, for people.
std::string RuleText(const Policy& policy, const PolicyRule& rule) {
  std::vector<std::string> parts;
  const auto add = [&](const char* what, const std::vector<std::string>& names,
                       const std::string& text) {
    if (!names.empty()) parts.push_back(absl::StrCat(what, " ", text));
  };
  const auto join = [](const std::vector<std::string>& names) { return absl::StrJoin(names, "/"); };
  add("partition", rule.match.partitions, join(rule.match.partitions));
  add("user", rule.match.users, join(rule.match.users));
  add("account", rule.match.accounts, join(rule.match.accounts));
  return absl::StrCat("rule ", &rule - policy.rules.data() + 1,
                      parts.empty() ? "" : absl::StrCat(" for ", absl::StrJoin(parts, ", ")));
}

// Why every Nth job is profiled, as a person would say it.
std::string EveryText(int64_t every, const std::string& where) {
  return every == 1 ? absl::StrCat("every job ", where)
                    : absl::StrCat("every ", Ordinal(every), " job ", where);
}

PolicyChoice Refuse(HookDecision decision, std::string reason) {
  PolicyChoice choice;
  choice.answer = {decision, std::move(reason), ""};
  return choice;
}

PolicyChoice Accept(std::string reason, std::string preset) {
  PolicyChoice choice;
  choice.answer = {HookDecision::kProfile, std::move(reason), ""};
  choice.preset = std::move(preset);
  return choice;
}

PolicyChoice CountJob(int64_t every, int64_t seed, int64_t number, const std::string& where,
                      std::string preset) {
  if (every <= 0)
    return Refuse(HookDecision::kNotChosen, absl::StrCat("only jobs that ask for it ", where));
  const bool chosen = (number % every + seed % every) % every == 0;
  const std::string text =
      absl::StrCat(EveryText(every, where), chosen ? " (number " : "; this is number ", number,
                   chosen ? ")" : "");
  PolicyChoice choice =
      chosen ? Accept(text, std::move(preset)) : Refuse(HookDecision::kNotChosen, text);
  choice.number = number;
  return choice;
}

// A user's text, short and on one line.
std::string Shown(absl::string_view text) {
  std::string shown(text.substr(0, kMaxShown));
  for (char& c : shown) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return text.size() > kMaxShown ? absl::StrCat(shown, "...") : shown;
}

// A preset that is none must not be a way to refuse, where the policy forbids that: the usual one is taken.
PolicyChoice AskedFor(const Policy& policy, const HookJob& job, const std::string& usual) {
  if (job.preset.empty()) return Accept("asked for by its user", usual);
  if (policy.presets.contains(job.preset)) return Accept("asked for by its user", job.preset);
  std::vector<std::string> names;
  for (const auto& [name, spec] : policy.presets) names.push_back(name);
  return Accept(
      absl::StrCat("asked for by its user with preset '", Shown(job.preset), "', which is none of ",
                   absl::StrJoin(names, ", "), ": '", usual, "' is taken"),
      usual);
}

// Without the quota.
PolicyChoice Choose(const Policy& policy, const HookJob& job, int64_t counted) {
  const PolicyRule* rule = RuleOf(policy, job);
  const std::string where =
      rule == nullptr ? "by policy" : absl::StrCat("by policy, ", RuleText(policy, *rule));
  if (rule != nullptr && rule->action == Action::kNever)
    return Refuse(HookDecision::kNever, absl::StrCat("never ", where));
  if (job.preference == HookPreference::kOptOut && policy.users_opt_out)
    return Refuse(HookDecision::kOptedOut, "refused by its user");
  const std::string& preset =
      rule == nullptr || rule->preset.empty() ? policy.preset : rule->preset;
  if (job.preference == HookPreference::kOptIn && policy.users_opt_in)
    return AskedFor(policy, job, preset);
  if (rule != nullptr && rule->action == Action::kProfile)
    return Accept(EveryText(1, where), preset);
  const bool own = rule != nullptr && rule->every.has_value();
  return CountJob(own ? *rule->every : policy.every, policy.seed, counted + 1, where, preset);
}

}  // namespace

std::string CounterOf(const Policy& policy, const HookJob& job) {
  const PolicyRule* rule = RuleOf(policy, job);
  if (rule == nullptr || !rule->every.has_value()) return "";
  const auto text = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return absl::StrJoin(names, ",");
  };
  return absl::StrCat("partition=", text(rule->match.partitions), ";user=", text(rule->match.users),
                      ";account=", text(rule->match.accounts));
}

PolicyChoice Decide(const Policy& policy, const HookJob& job, const PolicyUse& use) {
  PolicyChoice choice = Choose(policy, job, use.counted);
  if (choice.answer.decision != HookDecision::kProfile) return choice;
  std::string quota;
  if (use.active >= policy.quota_active) {
    quota = absl::StrCat(use.active, " profiles of jobs are active, and ", policy.quota_active,
                         " may be at a time");
  } else if (use.today >= policy.quota_per_day) {
    quota = absl::StrCat(use.today, " profiles of jobs were begun today (UTC), and ",
                         policy.quota_per_day, " may be");
  }
  if (quota.empty()) return choice;
  choice.answer = {HookDecision::kQuota, absl::StrCat(choice.answer.reason, ", but ", quota), ""};
  choice.preset.clear();
  return choice;
}

int64_t MidnightNs(int64_t unix_ns) {
  return unix_ns - unix_ns % kDayNs;
}

}  // namespace perfd::daemon
