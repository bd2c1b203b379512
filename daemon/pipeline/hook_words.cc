#include "daemon/pipeline/hook_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace perfd::daemon {
namespace {

constexpr size_t kMaxNamed = 8;

}  // namespace

std::string SomeNodes(std::vector<std::string> names) {
  const size_t more = names.size() > kMaxNamed ? names.size() - kMaxNamed : 0;
  names.resize(names.size() - more);
  return absl::StrCat(absl::StrJoin(names, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

const std::string& NodeOf(const HookCaller& caller, const HookJob& job) {
  return caller.node.empty() ? job.node : caller.node;
}

std::string CallerText(const HookCaller& caller) {
  if (!caller.node.empty()) return absl::StrCat("node ", caller.node);
  return caller.person.empty() ? "root" : caller.person;
}

}  // namespace perfd::daemon
