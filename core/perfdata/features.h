// core/perfdata/features.h - the header features of a recording: foreign bytes -> RecordingFacts. Pure.
//
// Errors   a feature that is cut off or contradicts itself is false, and nothing of it is kept; one that is not needed is true.
// Source   tools/perf/Documentation/perf.data-file-format.txt, "HEADER_*".
#ifndef CORE_PERFDATA_FEATURES_H_
#define CORE_PERFDATA_FEATURES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/byte_reader.h"
#include "core/perfdata/recording_facts.h"

namespace perfd {

inline constexpr int kFeatureBits = 256;

enum class Feature : uint32_t {
  kBuildId = 2,
  kHostName = 3,
  kArchitecture = 6,
  kCpuCount = 7,
  kCpuDescription = 8,
  kTotalMemory = 10,
  kCommandLine = 11,
  kEventDescription = 12,
  kNumaTopology = 14,
  kCache = 20,
  kSampleTime = 21,
  kDirectory = 24,
};

// `events`: get the names that an event description has for them, by identifier or else in order.
bool ReadFeature(uint32_t feature, std::span<const std::byte> bytes, RecordingFacts* facts,
                 std::vector<RecordedEvent>* events);

// The attribute that begins here; what is newer than ours is left out. Nothing: not one.
std::optional<perf_event_attr> ReadAttr(ByteReader& reader);

}  // namespace perfd

#endif  // CORE_PERFDATA_FEATURES_H_
