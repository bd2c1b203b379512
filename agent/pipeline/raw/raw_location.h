// agent/pipeline/raw/raw_location.h - where an address is, before it is understood.
#ifndef AGENT_PIPELINE_RAW_RAW_LOCATION_H_
#define AGENT_PIPELINE_RAW_RAW_LOCATION_H_

#include <cstdint>
#include <utility>

#include "core/base/address.h"
#include "core/model/code.h"

namespace perfd::agent {

// Where an address is, as far as the maps tell.
struct RawLocation {
  enum class Kind : uint8_t {
    kModule,
    kKernel,
    kUnmapped,
    kTruncated,  // outermost in a stack
    kOther,      // of accesses to memory: there was no room to tell
  };
  Kind kind = Kind::kUnmapped;
  KernelCause cause = KernelCause::kUnknown;  // with kKernel
  bool has_caller = false;     // with kKernel: the next two are where the thread came from
  uint32_t module = 0;         // index, with kModule
  FileOffset file_offset = 0;  // with kModule; of an anonymous one the run-time address

  bool HasModule() const { return kind == Kind::kModule || (kind == Kind::kKernel && has_caller); }

  bool operator==(const RawLocation&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const RawLocation& p) {
    return H::combine(std::move(h), p.kind, p.cause, p.has_caller, p.module, p.file_offset);
  }
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_RAW_RAW_LOCATION_H_
