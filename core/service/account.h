// core/service/account.h - a user given by name or by number.
//
// Errors   kInvalidArgument: no such user. A number needs none.
// Threads  thread-safe; asks the system's databases, which may take a while.
#ifndef CORE_SERVICE_ACCOUNT_H_
#define CORE_SERVICE_ACCOUNT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace perfd {

absl::StatusOr<uint32_t> UidOf(const std::string& user);

}  // namespace perfd

#endif  // CORE_SERVICE_ACCOUNT_H_
