// daemon/control/decisions.h - what the session table wants done, as values: it does nothing itself.
#ifndef DAEMON_CONTROL_DECISIONS_H_
#define DAEMON_CONTROL_DECISIONS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/model/measure_order.h"
#include "core/model/profile.h"

namespace perfd::daemon {

// Tell a node to begin, or to go on with, a profile.
struct StartNode {
  std::string node;
  std::string profile_id;
  ProfileSpec spec;
  Requester requester;
  int64_t remaining_ns = 0;
  int64_t wait_ns =
      0;  // the profile follows a job: ranks may appear within so long; 0: those that are there

  bool operator==(const StartNode&) const = default;
};

struct StopNode {
  std::string node;
  std::string profile_id;
  std::string reason;

  bool operator==(const StopNode&) const = default;
};

// Tell a node which loops to measure by variants.
struct MeasureNode {
  std::string node;
  MeasureOrder order;

  bool operator==(const MeasureNode&) const = default;
};

// Tell a node how the pauses of its lease have turned out (LeaseLedger::Charge).
struct ChargeNode {
  std::string node;
  std::string profile_id;
  double charge = 0;

  bool operator==(const ChargeNode&) const = default;
};

// Write the status to the store when convenient.
struct SaveProfile {
  ProfileStatus status;

  bool operator==(const SaveProfile&) const = default;
};

// Build the report, store it with this final status, and say so with SessionTable::Finalised.
struct FinaliseProfile {
  ProfileStatus status;

  bool operator==(const FinaliseProfile&) const = default;
};

using Decision =
    std::variant<StartNode, StopNode, MeasureNode, ChargeNode, SaveProfile, FinaliseProfile>;
using Decisions = std::vector<Decision>;

}  // namespace perfd::daemon

#endif  // DAEMON_CONTROL_DECISIONS_H_
