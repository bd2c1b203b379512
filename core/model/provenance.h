// core/model/provenance.h - where a figure came from; no figure is shown without it.
#ifndef CORE_MODEL_PROVENANCE_H_
#define CORE_MODEL_PROVENANCE_H_

namespace perfd {

enum class Provenance { kSampled, kHardware, kLive, kShadow, kSimulated, kReplayed, kEstimated };

const char* ProvenanceName(Provenance provenance);

}  // namespace perfd

#endif  // CORE_MODEL_PROVENANCE_H_
