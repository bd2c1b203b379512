// daemon/store/profile_id.h - the number of a profile in the store and the name people see: 42 <-> "p-000042".
#ifndef DAEMON_STORE_PROFILE_ID_H_
#define DAEMON_STORE_PROFILE_ID_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd::daemon {

std::string FormatProfileId(int64_t number);

// kInvalidArgument unless `id` is exactly what FormatProfileId makes of a positive number.
absl::StatusOr<int64_t> ParseProfileId(absl::string_view id);

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_PROFILE_ID_H_
