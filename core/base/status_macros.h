// core/base/status_macros.h - RETURN_IF_ERROR and ASSIGN_OR_RETURN for absl::Status.
//
// Source   The packaged Abseil (20220623) has no status macros; names follow later Abseil so that this file can go.
#ifndef CORE_BASE_STATUS_MACROS_H_
#define CORE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define PERFD_CONCAT_INNER_(a, b) a##b
#define PERFD_CONCAT_(a, b) PERFD_CONCAT_INNER_(a, b)

#define RETURN_IF_ERROR(expr)                                                           \
  do {                                                                                  \
    if (absl::Status perfd_status_ = (expr); !perfd_status_.ok()) return perfd_status_; \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) \
  PERFD_ASSIGN_OR_RETURN_(PERFD_CONCAT_(perfd_statusor_, __LINE__), lhs, expr)

#define PERFD_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return tmp.status();           \
  lhs = std::move(tmp).value()

#endif  // CORE_BASE_STATUS_MACROS_H_
