#include "agent/pipeline/window_delivery.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/mutex.h"

namespace perfd::agent {

WindowDelivery::WindowDelivery(SessionOutput* output, std::string profile_id, std::string node)
    : output_(output), profile_id_(std::move(profile_id)), node_(std::move(node)) {}

void WindowDelivery::Expect() {
  MutexLock lock(&mutex_);
  ++outstanding_;
}

void WindowDelivery::Unexpect() {
  MutexLock lock(&mutex_);
  --outstanding_;
}

void WindowDelivery::RecordUnreadable(const UnreadableModules& unreadable) {
  for (const auto& [path, status] : unreadable) {
    if (!noted_.insert(path).second) continue;
    notices_.push_back({.severity = Notice::Severity::kWarning,
                        .code = status.code(),
                        .node = node_,
                        .text = absl::StrCat(
                            "the code of ", path,
                            " cannot be read, its samples count as unknown: ", status.message())});
  }
}

void WindowDelivery::Deliver(Window window, const UnreadableModules& unreadable) {
  MutexLock lock(&mutex_);
  --outstanding_;
  RecordUnreadable(unreadable);
  Hand(std::move(window));
}

void WindowDelivery::Flush() {
  MutexLock lock(&mutex_);
  if (refused_ == Accounting{}) return;
  Window window;
  window.setup = last_setup_;
  Hand(std::move(window));
  if (refused_.seen == 0) return;
  notices_.push_back({.severity = Notice::Severity::kWarning,
                      .code = absl::StatusCode::kDataLoss,
                      .node = node_,
                      .text = absl::StrCat("the last ", refused_.seen, " samples of node ", node_,
                                           " are in no window: the spool had no room for them")});
}

void WindowDelivery::Hand(Window window) {
  window.profile_id = profile_id_;
  window.node = node_;
  window.accounting += refused_;
  Accounting own = window.accounting;
  last_setup_ = window.setup;
  auto sequence = output_->OnWindow(std::move(window));
  if (sequence.ok()) {
    last_sequence_ = *sequence;
    refused_ = {};
    return;
  }
  LogWarning("{}: a window is lost: {}", profile_id_, Text(sequence.status()));
  own.Drop(DropReason::kSpoolFull, own.kept);
  own.kept = 0;
  refused_ = own;
  if (noted_.insert("spool").second) {
    notices_.push_back({.severity = Notice::Severity::kWarning,
                        .code = absl::StatusCode::kDataLoss,
                        .node = node_,
                        .text = absl::StrCat("windows are lost: ", sequence.status().message())});
  }
}

bool WindowDelivery::AwaitAll(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(this, &WindowDelivery::AllDelivered), timeout);
}

uint64_t WindowDelivery::last_sequence() const {
  MutexLock lock(&mutex_);
  return last_sequence_;
}

bool WindowDelivery::HasNotices() const {
  MutexLock lock(&mutex_);
  return !notices_.empty();
}

std::vector<Notice> WindowDelivery::DrainNotices() {
  MutexLock lock(&mutex_);
  return std::exchange(notices_, {});
}

}  // namespace perfd::agent
