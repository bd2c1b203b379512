// core/wire/check/limits.h - the largest messages that FromProto accepts; senders stay below them.
//
// Units    entries, bytes or counts, as named.
// Source   design: 64,000 ranks x 12 loops in 5 s windows; each limit leaves a factor of ten.
#ifndef CORE_WIRE_CHECK_LIMITS_H_
#define CORE_WIRE_CHECK_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace perfd::wire {

inline constexpr size_t kMaxTextBytes = 64 * 1024;  // any string; longer ones are cut when sent
inline constexpr int kMaxRows = 1'000'000;          // rows of one window
inline constexpr int kMaxThreads = 65'536;          // threads of one window
inline constexpr int kMaxLocations = 65'536;        // locations of one window
inline constexpr int kMaxRanks = 65'536;            // ranks of one window
inline constexpr int kMaxFrameNames = 262'144;      // frame names of one window
inline constexpr int kMaxStacks = 262'144;          // call paths of one window or report
inline constexpr int kMaxStackFrames = 1'024;       // frames of one call path
inline constexpr int kMaxNodes = 65'536;            // nodes of one status or report
inline constexpr int kMaxNotices = 65'536;          // notices of one status
inline constexpr int kMaxReportRows = 262'144;      // rows of one table of a report
inline constexpr int kMaxReportRanks = 1'048'576;  // ranks of a report; rank, thread lines of a row
inline constexpr int kMaxSegments = 4'096;         // program headers of one module
inline constexpr int kMaxFunctions = 65'536;       // functions, or addresses, of one reader reply
inline constexpr int kMaxLoops = 65'536;           // loops of one function
inline constexpr int kMaxCodeParts = 256;          // further parts of one function or loop
inline constexpr int kMaxMappings = 65'536;        // executable mappings of one process
inline constexpr int kMaxDoctorChecks = 256;       // checks of one place
inline constexpr size_t kMaxDoctorTextBytes = 4096;  // of one check; longer ones are cut when sent
inline constexpr int kMaxSpans = 262'144;            // spans of one function
inline constexpr int kMaxMeasurements = 65'536;      // loops x ranks measured in one window
inline constexpr int kMaxAuditEntries = 262'144;     // injections of one window or answer
inline constexpr size_t kMaxAuditTextBytes =
    4096;  // of an entry of a window; longer ones are cut when sent
inline constexpr int kMaxLeasedPauses = 65'536;  // pauses of one window
inline constexpr int kMaxMemoryEvents = 64;      // events of one window or report
inline constexpr int kMaxMemoryRows = 65'536;    // processes x instructions of one window
inline constexpr int kMaxVariants = 256;         // variants of one loop
inline constexpr int kMaxExcludedPaths = 16;     // of one loop
inline constexpr int kMaxTripClasses = 10;       // of one loop
inline constexpr int kMaxFigures = 65'536;       // variants x threads of one loop on one rank
inline constexpr int kMaxRefusals = 4'096;       // reasons of one loop on one rank
inline constexpr int kMaxReferences = 4'096;     // memory accesses of one loop
inline constexpr int kMaxListingLines = 16'384;  // instructions of one loop
inline constexpr int kMaxMeasureLoops = 4'096;   // loops of one order

// A sum of samples of one window, and a sum of anything else (ns, events). Both leave 64-bit sums
// over millions of windows (samples) or hundreds of the largest windows (ns, events) without
// overflow.
inline constexpr uint64_t kMaxSampleTotal = uint64_t{1} << 40;
inline constexpr uint64_t kMaxTotal = uint64_t{1} << 56;
// Elapsed time of all ranks of one window: 13 days, as what its samples stand for (daemon/aggregate/row_time.h).
inline constexpr uint64_t kMaxWallTotal = uint64_t{1} << 50;

}  // namespace perfd::wire

#endif  // CORE_WIRE_CHECK_LIMITS_H_
