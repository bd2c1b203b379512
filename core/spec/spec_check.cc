#include "core/spec/spec_check.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/spec/field.h"
#include "core/spec/spec.h"

namespace perfd {
namespace {

bool IsEventName(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("_-:.=,/").find(c) != absl::string_view::npos;
  });
}

}  // namespace

std::vector<RuleError> CheckRules(const ProfileSpec& spec) {
  std::vector<RuleError> errors;
  const TargetSpec& target = spec.target;
  const int selectors = (target.slurm_job.has_value() ? 1 : 0) +
                        (target.command.has_value() ? 1 : 0) + (target.pids.empty() ? 0 : 1);
  if (selectors != 1)
    errors.push_back({"target", absl::StrCat("target needs exactly one of slurm_job, command and "
                                             "pids; ",
                                             selectors, " given")});
  if (!target.user.empty() && !target.command.has_value())
    errors.push_back({"target.user", "target.user can only stand with target.command"});
  if (target.tree && target.pids.empty())
    errors.push_back({"target.tree", "target.tree can only stand with target.pids"});
  if (target.command.has_value() && target.command->find('/') != std::string::npos)
    errors.push_back({"target.command", "target.command is a base name, without '/'"});
  if (!IsEventName(spec.hotspots.event))
    errors.push_back({"hotspots.event", "hotspots.event is not an event name"});
  return errors;
}

absl::Status ValidateProfileSpec(const ProfileSpec& spec) {
  SpecErrors errors;
  for (const SpecKey& key : SpecKeys()) {
    if (const std::string error = CheckField(key, spec); !error.empty())
      errors.Add(absl::StrCat(key.path, " ", error));
  }
  for (const RuleError& error : CheckRules(spec)) errors.Add(error.text);
  return errors.empty() ? absl::OkStatus() : absl::InvalidArgumentError(errors.Join());
}

std::vector<std::string> ListUnmeasured(const ProfileSpec& spec) {
  std::vector<std::string> notes;
  if (spec.memory.trace != "off") notes.push_back("memory.trace: not measured by this version");
  if (spec.coherence_enabled) notes.push_back("coherence: not measured by this version");
  if (spec.pages.enabled)
    notes.push_back(spec.pages.apply ? "pages: not measured by this version; no page is moved"
                                     : "pages: not measured by this version");
  return notes;
}

}  // namespace perfd
