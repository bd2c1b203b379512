#include "daemon/reload_thread.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/version.h"

namespace perfd::daemon {

void ReloadThread::Ask() {
  // No room: one waits that will read what there is to read now.
  (void)worker_.Post([this] { Reload(); });
}

std::function<void()> ReloadThread::Asking() {
  if (!reloader_.HasFiles()) return {};
  return [this] { Ask(); };
}

void ReloadThread::Reload() {
  notify_.Reloading();
  const int wrong = reloader_.Reload();
  notify_.Ready(wrong == 0
                    ? std::string(kVersion)
                    : absl::StrCat(kVersion, "; not all of the last reload was done (", wrong,
                                   wrong == 1 ? " thing" : " things", "): see the log"));
}

}  // namespace perfd::daemon
