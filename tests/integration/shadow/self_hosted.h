// tests/integration/shadow/self_hosted.h - puts the payload into the test's own process, without another process and ptrace.
//
// Shape    SelfHosted injector; LoopUnderTest loop = injector.Install(...); injector.Shadow(loop, runs): arms and, once the loop was entered, the
//          outcome is in injector.site(loop). Copies are bytes of the body plus a jump; the loops have relative branches only.
#ifndef TESTS_INTEGRATION_SHADOW_SELF_HOSTED_H_
#define TESTS_INTEGRATION_SHADOW_SELF_HOSTED_H_

#include <cstdint>
#include <vector>

#include "agent/shadow/protocol.h"
#include "agent/shadow/region_layout.h"
#include "agent/shadow/shadow_plan.h"

extern "C" {
double loop_sum(const double* values, int64_t n);
extern char loop_sum_header[], loop_sum_exit[];
void loop_update(int64_t* values, int64_t n);
extern char loop_update_header[], loop_update_exit[];
void loop_state(void* in_out, int64_t n);
extern char loop_state_header[], loop_state_exit[];
}

namespace perfd::agent {

struct LoopText {
  uint64_t header = 0;
  uint64_t exit = 0;
};
inline LoopText TextOf(const char* header, const char* exit) {
  return {reinterpret_cast<uint64_t>(header), reinterpret_cast<uint64_t>(exit)};
}

class SelfHosted {
 public:
  explicit SelfHosted(uint32_t blocks = 8);
  ~SelfHosted();  // restores the text and unmaps
  SelfHosted(const SelfHosted&) = delete;
  SelfHosted& operator=(const SelfHosted&) = delete;

  uint32_t Install(LoopText text);  // index of the site
  // The same; each pass is a turn of its timed batch, which is left for the header in the text.
  uint32_t InstallBatches(LoopText text);
  // Copies for shadows; all leave through the payload's exit stub.
  uint64_t Ref(LoopText text);
  uint64_t Count(
      LoopText
          text);  // REF + a counter of passes in the thread block; the loop's flags are dead at its header
  uint64_t Raw(std::vector<uint8_t> bytes);  // anything, then a jump to the exit stub

  // From where the payload itself asks the kernel: copies may call it like a function.
  uint64_t kernel_door() const { return reinterpret_cast<uint64_t>(cache_) + kPayloadSystemCall; }

  void SetMode(uint32_t site, uint32_t mode);
  // Fills the plan with defaults; the caller may change it before Arm.
  ShadowPlan& Plan(uint32_t site, uint32_t team, const std::vector<RunEntry>& runs);
  void Arm(uint32_t site, int64_t countdown = 1);

  RegionHeader& region() { return *region_; }
  Site& site(uint32_t index) { return At<Site>(kSitesOffset)[index]; }
  ShadowPlan& plan() { return *At<ShadowPlan>(kPlanOffset); }
  ThreadRecord& record(uint32_t index) { return At<ThreadRecord>(kRecordsOffset)[index]; }
  LiveTurns& turns(uint32_t index) { return At<LiveTurns>(kTurnsOffset)[index]; }
  LiveRecord& live(uint32_t index) { return At<LiveRecord>(kLiveOffset)[index]; }
  ChildControl& child() { return *At<ChildControl>(ChildOffset(blocks_)); }
  RunResult& result(uint32_t run, uint32_t member) {
    return At<RunResult>(ResultsOffset(blocks_))[run * plan().team + member];
  }
  void ForgetThreads();  // threads that ended leave their records

 private:
  template <typename T>
  T* At(uint64_t offset) {
    return reinterpret_cast<T*>(reinterpret_cast<uint64_t>(region_) + offset);
  }
  uint32_t InstallSite(LoopText text, bool batches);
  uint64_t PlaceBatch(LoopText text, uint32_t index);
  uint64_t Place(const std::vector<uint8_t>& bytes, uint64_t align_like);

  uint32_t blocks_;
  RegionHeader* region_;
  uint8_t* cache_;
  uint64_t used_ = 0;
  std::vector<std::pair<uint64_t, std::vector<uint8_t>>> patched_;
};

uint64_t ReadTicks();

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_SHADOW_SELF_HOSTED_H_
