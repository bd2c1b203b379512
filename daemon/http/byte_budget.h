// daemon/http/byte_budget.h - how many bytes of answers are in memory at a time.
//
// Shape    Hold makes a body of a text; it counts until its last copy is gone, also after the budget's owner. Null: no room.
// Limits   `most` bytes together; a body that is larger is held alone, when nothing else is.
// Threads  thread-safe.
#ifndef DAEMON_HTTP_BYTE_BUDGET_H_
#define DAEMON_HTTP_BYTE_BUDGET_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

namespace perfd::daemon {

class ByteBudget {
 public:
  using Body =
      std::shared_ptr<const std::string>;  // shared with answers under way and with a cache

  explicit ByteBudget(size_t most) : most_(most), held_(std::make_shared<std::atomic<size_t>>(0)) {}

  // Whether so much would be held now: spares the work on what would be refused.
  bool Fits(size_t bytes) const { return Fits(held_->load(), bytes); }
  Body Hold(std::string text);
  size_t held() const { return held_->load(); }

 private:
  bool Fits(size_t held, size_t bytes) const {
    return held == 0 || (held <= most_ && bytes <= most_ - held);
  }

  const size_t most_;
  const std::shared_ptr<std::atomic<size_t>> held_;  // shared with the bodies
};

}  // namespace perfd::daemon

#endif  // DAEMON_HTTP_BYTE_BUDGET_H_
