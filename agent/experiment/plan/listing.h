// agent/experiment/plan/listing.h - what the report shows of the variants: assembly side by side, and what is still missing.
//
// Units    ELF addresses.
// Bounds   kMaxListedLines per variant, kMaxListings variants.
// Threads  thread-safe (pure).
#ifndef AGENT_EXPERIMENT_PLAN_LISTING_H_
#define AGENT_EXPERIMENT_PLAN_LISTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/shadow/rank_injector.h"
#include "core/model/loop_measurement.h"

namespace perfd::agent {

inline constexpr size_t kMaxListedLines = 256;
inline constexpr size_t kMaxListings = 16;

// Of every variant that has figures.
std::vector<VariantListing> MakeListings(const InstalledLoop& loop,
                                         const std::vector<VariantFigures>& figures, LoadBias bias);

// Names of `asked` without a valid figure that were not refused either.
std::vector<std::string> OpenVariants(const std::vector<std::string>& asked,
                                      const LoopMeasurement& loop);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_PLAN_LISTING_H_
