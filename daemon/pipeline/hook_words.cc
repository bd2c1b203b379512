#include "daemon/pipeline/hook_words.h"

#include "absl/strings/str_cat.h"

namespace perfd::daemon {

const std::string& NodeOf(const HookCaller& caller, const HookJob& job) {
  return caller.node.empty() ? job.node : caller.node;
}

std::string CallerText(const HookCaller& caller) {
  if (!caller.node.empty()) return absl::StrCat("node ", caller.node);
  return caller.person.empty() ? "root" : caller.person;
}

}  // namespace perfd::daemon
