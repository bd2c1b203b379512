#include "daemon/store/profile_id.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace perfd::daemon {

std::string FormatProfileId(int64_t number) {
  return absl::StrFormat("p-%06d", number);
}

absl::StatusOr<int64_t> ParseProfileId(absl::string_view id) {
  absl::string_view digits = id;
  int64_t number = 0;
  if (id.size() > 24 || !absl::ConsumePrefix(&digits, "p-") || !absl::SimpleAtoi(digits, &number) ||
      number <= 0 || FormatProfileId(number) != id) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", id.substr(0, 32), "' is not a profile id such as p-000042"));
  }
  return number;
}

}  // namespace perfd::daemon
