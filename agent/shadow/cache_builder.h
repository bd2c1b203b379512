// agent/shadow/cache_builder.h - the bytes of one code cache: payload, then for each loop its trampoline and all copies. Pure.
//
// Shape    CacheBuilder at an address; Build per loop; bytes() is what is written there.
// Units    run-time addresses.
// Errors   Build never fails as a whole: InstalledLoop::status says why a loop is refused.
// Source   design section 6, steps 1 and 2.
#ifndef AGENT_SHADOW_CACHE_BUILDER_H_
#define AGENT_SHADOW_CACHE_BUILDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/shadow/rank_injector.h"
#include "agent/variant/copy.h"
#include "agent/variant/patch_plan.h"
#include "agent/variant/recovery/trip_count.h"

namespace perfd::agent {

// Of one loop in the shared region.
struct SiteAddresses {
  uint64_t site = 0;   // its Site
  uint64_t turns = 0;  // its LiveTurns; 0: none, and no timed batch
};

struct TimedBatch {
  CodeCopy copy;
  std::vector<CodeText> text;  // that it was made of
};

struct BuiltLoop {
  InstalledLoop installed;
  PatchPlan patch;
  std::array<uint8_t, kJumpBytes> jump{};
  uint64_t trampoline = 0;
  CodeCopy live;
  std::optional<CodeCopy> timed;          // none: this loop cannot be timed in the rank
  std::optional<TimedBatch> timed_batch;  // none: instances of it are timed one by one
  std::vector<AddressPair>
      pairs;            // of all three, where a thread in the copy may be sent to the original
  std::string untimed;  // why
  TripCount trips;      // where installed.in_situ is OK
};

// REF, COUNT and TRACE, then the wanted ones, each once.
std::vector<VariantName> NamesOf(const LoopToInject& loop);

// The copy of a variant that also traces.
VariantName Traced(VariantName name);

// Places where a copy stands, itself included, whose branches depend on what it computes: a run at a place where none of the
// shadow was yet finds them unlearnt (docs/adr/0026-branches-as-new.md).
inline constexpr int32_t kPlacements = 16;

// No cache of these loops, with so many places, is larger.
uint64_t CacheBound(const std::vector<const LoopToInject*>& loops, int32_t places = kPlacements);

// Leads every branch that leaves `copy` to where `places` says. Errors: a branch that cannot be led elsewhere.
struct ExitAddress {
  uint64_t target = 0;
  uint64_t place = 0;
};
absl::Status RedirectExits(CodeCopy* copy, const std::vector<ExitAddress>& places);

class CacheBuilder {
 public:
  CacheBuilder(uint64_t address, uint64_t bound, int32_t places = kPlacements);

  // recovery: find out which copies may run in the rank itself.
  BuiltLoop Build(LoopToInject loop, const SiteAddresses& site, bool recovery = false);

  uint64_t address() const { return address_; }
  uint64_t empty_copy() const { return empty_copy_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  absl::Status BuildPool(LoopToInject* loop);
  absl::Status BuildLive(const LoopToInject& loop, const SiteAddresses& site, BuiltLoop* built);
  absl::Status BuildTimed(const LoopToInject& loop, uint64_t site, BuiltLoop* built);
  absl::Status BuildTimedBatch(const LoopToInject& loop, const SiteAddresses& site,
                               BuiltLoop* built);
  absl::StatusOr<std::vector<ExitAddress>> TimedExits(const std::vector<uint64_t>& targets,
                                                      uint64_t site);
  absl::Status BuildVariants(const LoopToInject& loop, BuiltLoop* built);
  void BuildCounted(const LoopToInject& loop, size_t first, InstalledLoop* out);
  void BuildBatched(const LoopToInject& loop, size_t needed, InstalledLoop* out);
  void BuildApart(const LoopToInject& loop, size_t first, InstalledLoop* out);
  void BuildApartBatches(const LoopToInject& loop, size_t first, InstalledLoop* out);
  void AddBasesOfApart(const LoopToInject& loop, size_t first, InstalledLoop* out);
  void BuildSites(const LoopToInject& loop, InstalledLoop* out);
  void Repeat(CodeCopy* copy);
  void JudgeInSitu(const LoopToInject& loop, bool recovery, BuiltLoop* built) const;
  absl::StatusOr<CodeCopy> Copy(const LoopCode& loop, const VariantName& name, Exits exits);
  absl::StatusOr<CodeCopy> Batch(const BatchCode& batch, const VariantName& name);
  CopyTarget PlaceOfNext(Exits exits) const;
  uint64_t Reserve(uint64_t bytes);
  absl::Status Write(uint64_t address, const std::vector<uint8_t>& bytes);

  const uint64_t address_;
  const uint64_t bound_;
  const int32_t places_;
  uint64_t empty_copy_ = 0;
  std::vector<uint8_t> bytes_;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_CACHE_BUILDER_H_
