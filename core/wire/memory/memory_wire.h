// core/wire/memory/memory_wire.h - sampled accesses to memory to protobuf and back.
//
// Shape    ToProto, FromProto; counts without samples are not sent.
// Errors   FromProto: kInvalidArgument, naming the field. A window's sums stay below what many windows can be added up to.
// Threads  thread-safe (pure).
#ifndef CORE_WIRE_MEMORY_MEMORY_WIRE_H_
#define CORE_WIRE_MEMORY_MEMORY_WIRE_H_

#include <cstddef>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/memory/load_times.h"
#include "core/model/memory/memory_profile.h"
#include "core/model/memory/memory_report.h"
#include "core/model/memory/window_memory.h"
#include "perfd/v1/memory.pb.h"

namespace perfd::wire {

// Of one window; or of any number of them.
enum class SumsOf { kWindow, kProfile };

v1::WideSum ToProto(absl::uint128 sum);
absl::uint128 FromProto(const v1::WideSum& sum);

v1::MemoryProfile ToProto(const MemoryProfile& profile);
absl::StatusOr<MemoryProfile> FromProto(const v1::MemoryProfile& from, SumsOf of);

v1::LoadTimes ToProto(const LoadTimes& times);
absl::StatusOr<LoadTimes> FromProto(const v1::LoadTimes& from, SumsOf of);

v1::RankMemory ToProto(const RankMemory& rank);
absl::StatusOr<RankMemory> FromProto(const v1::RankMemory& from);

v1::MemoryLost ToProto(const MemoryLost& lost);
MemoryLost FromProto(const v1::MemoryLost& from);

using MemoryEventsProto = google::protobuf::RepeatedPtrField<v1::MemoryEvent>;
MemoryEventsProto ToProto(const std::vector<MemoryEvent>& events);
absl::StatusOr<std::vector<MemoryEvent>> FromProto(const MemoryEventsProto& events);

v1::WindowMemory ToProto(const WindowMemory& memory);
// Rows refer to that many locations.
absl::StatusOr<WindowMemory> FromProto(const v1::WindowMemory& from, size_t location_count);

v1::MemoryReport ToProto(const MemoryReport& report);
absl::StatusOr<MemoryReport> FromProto(const v1::MemoryReport& from);

}  // namespace perfd::wire

#endif  // CORE_WIRE_MEMORY_MEMORY_WIRE_H_
