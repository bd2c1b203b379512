// core/wire/parts.h - conversions of values that occur inside several messages; used within
// core/wire and by the codec of the stored aggregate.
//
// Errors   kInvalidArgument, naming the field.
// Threads  thread-safe (pure).
#ifndef CORE_WIRE_PARTS_H_
#define CORE_WIRE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/accounting.h"
#include "core/model/code.h"
#include "core/model/profile_spec.h"
#include "core/model/window.h"
#include "perfd/v1/profile.pb.h"
#include "perfd/v1/sample.pb.h"

namespace perfd::wire {

v1::SourceRange ToProto(const SourceRange& source);
absl::StatusOr<SourceRange> FromProto(const v1::SourceRange& source);

using CodeRangesProto = google::protobuf::RepeatedPtrField<v1::CodeRange>;
CodeRangesProto ToProto(const std::vector<CodeRange>& ranges);
// Sorted, disjoint, none of them empty or within `first`.
absl::StatusOr<std::vector<CodeRange>> FromProto(const CodeRangesProto& ranges,
                                                 const CodeRange& first, absl::string_view field);

v1::LoopFacts ToProto(const LoopFacts& loop);
absl::StatusOr<LoopFacts> FromProto(const v1::LoopFacts& loop);

v1::SamplingSetup ToProto(const SamplingSetup& setup);
absl::StatusOr<SamplingSetup> FromProto(const v1::SamplingSetup& setup);

v1::WindowCalls ToProto(const std::vector<WindowCall>& calls);
// Indices below `location_count`.
absl::StatusOr<std::vector<WindowCall>> FromProto(const v1::WindowCalls& calls,
                                                  size_t location_count);

v1::Accounting ToProto(const Accounting& accounting);
// Each count up to `limit`.
absl::StatusOr<Accounting> FromProto(const v1::Accounting& accounting, uint64_t limit = UINT64_MAX);

v1::Overhead ToProto(const OverheadFigures& overhead);
absl::StatusOr<OverheadFigures> FromProto(const v1::Overhead& overhead,
                                          uint64_t limit = UINT64_MAX);

// A status shows specs of its own making, whose target may be missing.
absl::StatusOr<ProfileSpec> SpecFromProto(const v1::ProfileSpec& spec, bool need_target);

}  // namespace perfd::wire

#endif  // CORE_WIRE_PARTS_H_
