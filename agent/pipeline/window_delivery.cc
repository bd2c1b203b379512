#include "agent/pipeline/window_delivery.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/mutex.h"

namespace perfd::agent {
namespace {

const char* WhyNoLines(LinesProblem problem) {
  switch (problem) {
    case LinesProblem::kCompression:
      return "its debug sections are compressed in a way that perf-agent cannot read (it knows "
             "zlib and zstd); objcopy --decompress-debug-sections makes them readable";
    case LinesProblem::kTooLarge:
      return "its debug sections are larger than 1 GiB when decompressed, or than the reader's "
             "memory; link it without --compress-debug-sections";
    case LinesProblem::kDamaged:
      return "its debug information is damaged, or of a version of DWARF other than 2 to 5; "
             "build it again with -gdwarf-5";
    case LinesProblem::kNone:
      break;
  }
  return "unknown";
}

}  // namespace

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
  for (const UnreadableModule& module : unreadable) {
    const bool code = !module.status.ok();
    if (!noted_.insert(absl::StrCat(code ? "code of " : "lines of ", module.path)).second) continue;
    notices_.push_back(
        {.severity = Notice::Severity::kWarning,
         .code = code ? module.status.code() : absl::StatusCode::kUnimplemented,
         .node = node_,
         .text = code ? absl::StrCat("the code of ", module.path,
                                     " cannot be read, its samples count as unknown: ",
                                     module.status.message())
                      : absl::StrCat("no source lines of ", module.path, ": ",
                                     WhyNoLines(module.lines))});
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
