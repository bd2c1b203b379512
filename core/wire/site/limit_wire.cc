#include "core/wire/site/limit_wire.h"

#include <cstdint>
#include <utility>

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"

namespace perfd::wire {
namespace {

constexpr int kMaxLimits = 256;
constexpr int kMaxHoldings = 64;
constexpr size_t kMaxLimitText = 1024;

void Fill(const LimitUse& limit, v1::LimitUse& out) {
  out.set_key(CleanText(limit.key, kMaxLimitText));
  out.set_what(CleanText(limit.what, kMaxLimitText));
  out.set_per(WireEnum<v1::LimitPer>(limit.per));
  out.set_unit(CleanText(limit.unit, kMaxLimitText));
  out.set_period_ns(limit.period_ns);
  out.set_value(limit.value);
  out.set_kept(limit.kept);
  out.set_bound(limit.bound);
  if (limit.used.has_value()) out.set_used(*limit.used);
  out.set_refusals(limit.refusals);
  out.set_instead(CleanText(limit.instead, kMaxLimitText));
  for (const LimitHolding& holding : limit.most) {
    v1::LimitHolding& one = *out.add_most();
    one.set_uid(holding.uid);
    one.set_used(holding.used);
  }
}

absl::StatusOr<LimitUse> LimitFrom(const v1::LimitUse& limit) {
  RETURN_IF_ERROR(CheckText(limit.key(), "limits.key", kMaxLimitText));
  RETURN_IF_ERROR(CheckText(limit.what(), "limits.what", kMaxLimitText));
  RETURN_IF_ERROR(CheckText(limit.unit(), "limits.unit", kMaxLimitText));
  RETURN_IF_ERROR(CheckText(limit.instead(), "limits.instead", kMaxLimitText));
  RETURN_IF_ERROR(CheckRange(limit.period_ns(), 0, INT64_MAX, "limits.period_ns"));
  RETURN_IF_ERROR(CheckRange(limit.value(), 0, INT64_MAX, "limits.value"));
  RETURN_IF_ERROR(CheckRange(limit.kept(), 0, limit.value(), "limits.kept"));
  RETURN_IF_ERROR(CheckRange(limit.used(), 0, INT64_MAX, "limits.used"));
  RETURN_IF_ERROR(CheckCount(limit.most_size(), kMaxHoldings, "limits.most"));
  LimitUse out;
  ASSIGN_OR_RETURN(out.per, ModelEnum(limit.per(), LimitPer::kStream, "limits.per"));
  out.key = limit.key();
  out.what = limit.what();
  out.unit = limit.unit();
  out.period_ns = limit.period_ns();
  out.value = limit.value();
  out.kept = limit.kept();
  out.bound = limit.bound();
  if (limit.has_used()) out.used = limit.used();
  out.refusals = limit.refusals();
  out.instead = limit.instead();
  for (const v1::LimitHolding& holding : limit.most()) {
    RETURN_IF_ERROR(CheckRange(holding.used(), 0, INT64_MAX, "limits.most.used"));
    out.most.push_back({.uid = holding.uid(), .used = holding.used()});
  }
  return out;
}

}  // namespace

v1::ListLimitsResponse ToProto(const std::vector<LimitUse>& limits) {
  v1::ListLimitsResponse response;
  for (const LimitUse& limit : limits) Fill(limit, *response.add_limits());
  return response;
}

absl::StatusOr<std::vector<LimitUse>> FromProto(const v1::ListLimitsResponse& response) {
  RETURN_IF_ERROR(CheckCount(response.limits_size(), kMaxLimits, "limits"));
  std::vector<LimitUse> limits;
  for (const v1::LimitUse& from : response.limits()) {
    ASSIGN_OR_RETURN(LimitUse limit, LimitFrom(from));
    limits.push_back(std::move(limit));
  }
  return limits;
}

}  // namespace perfd::wire
