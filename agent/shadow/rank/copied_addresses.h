// agent/shadow/rank/copied_addresses.h - which original instruction an address in a rank's code caches stands for.
//
// Units    run-time addresses.
// Threads  thread-safe: samples are resolved while loops are installed and taken out.
#ifndef AGENT_SHADOW_RANK_COPIED_ADDRESSES_H_
#define AGENT_SHADOW_RANK_COPIED_ADDRESSES_H_

#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/attach/hold_request.h"
#include "agent/shadow/rank/injected_code.h"
#include "agent/variant/copy.h"
#include "core/base/address.h"
#include "core/base/mutex.h"

namespace perfd::agent {

class CopiedAddresses {
 public:
  // Instead of what was published before.
  void Publish(const InjectedCode& code);
  void Clear();
  // None: the address is not in a cache, or before its first copy.
  std::optional<RuntimeAddress> Original(RuntimeAddress address) const;

 private:
  mutable Mutex mutex_;
  std::vector<AddressPair> addresses_ ABSL_GUARDED_BY(mutex_);  // sorted by copy
  std::vector<PcRange> code_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RANK_COPIED_ADDRESSES_H_
