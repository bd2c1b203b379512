#include "agent/experiment/kill_switch.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace perfd {

std::string KillSwitch::Obstacle() const {
  if (allowed_ != nullptr && !*allowed_)
    return "its configuration does not allow it (injection.allowed, --no-injection)";
  const bool exists = !disable_file_.empty() && access(disable_file_.c_str(), F_OK) == 0;
  return exists ? absl::StrCat(disable_file_, " exists") : "";
}

bool KillSwitch::Thrown() const {
  if (allowed_ != nullptr && !*allowed_) return true;
  const int64_t now = SystemClock().MonotonicNs();
  if (looked_ns_ == 0 || now - looked_ns_ >= kLookNs) {
    thrown_ = !Obstacle().empty();
    looked_ns_ = now;
  }
  return thrown_;
}

}  // namespace perfd
