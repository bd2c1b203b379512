#include "core/model/window.h"

namespace perfd {

const char* ProvenanceName(Provenance provenance) {
  switch (provenance) {
    case Provenance::kSampled:
      return "sampled";
    case Provenance::kHardware:
      return "hardware";
    case Provenance::kLive:
      return "live";
    case Provenance::kShadow:
      return "shadow";
    case Provenance::kSimulated:
      return "simulated";
    case Provenance::kReplayed:
      return "replayed";
    case Provenance::kEstimated:
      return "estimated";
  }
  return "unknown";
}

}  // namespace perfd
