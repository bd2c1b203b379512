#include "daemon/http/byte_budget.h"

#include <utility>

namespace perfd::daemon {

ByteBudget::Body ByteBudget::Hold(std::string text) {
  const size_t bytes = text.size();
  size_t held = held_->load();
  do {
    if (!Fits(held, bytes)) return nullptr;
  } while (!held_->compare_exchange_weak(held, held + bytes));
  auto body = std::make_unique<const std::string>(std::move(text));
  return Body(body.release(), [count = held_, bytes](const std::string* gone) {
    std::default_delete<const std::string>()(gone);
    count->fetch_sub(bytes);
  });
}

}  // namespace perfd::daemon
