#include "tests/integration/shadow/self_hosted.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "agent/shadow/payload_blob.h"
#include "agent/shadow/trampoline.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kCacheBytes = 1 << 20;

uint64_t XsaveMask() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr uint64_t kTiles = uint64_t{3} << 17;
  return (uint64_t{high} << 32 | low) & ~kTiles;
}

void Writable(uint64_t address, bool writable) {
  uint64_t page = address & ~uint64_t{4095};
  if (mprotect(reinterpret_cast<void*>(page), 8192,
               PROT_READ | PROT_EXEC | (writable ? PROT_WRITE : 0)) != 0)
    abort();
}

void Poke(uint64_t address, const std::vector<uint8_t>& bytes) {
  Writable(address, true);
  memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
  Writable(address, false);
}

std::vector<uint8_t> Peek(uint64_t low, uint64_t high) {
  return {reinterpret_cast<uint8_t*>(low), reinterpret_cast<uint8_t*>(high)};
}

}  // namespace

uint64_t ReadTicks() {
  uint32_t low, high;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  return uint64_t{high} << 32 | low;
}

SelfHosted::SelfHosted(uint32_t blocks) : blocks_(blocks) {
  uint64_t near = (reinterpret_cast<uint64_t>(&loop_sum) & ~uint64_t{4095}) - (32 << 20);
  cache_ = static_cast<uint8_t*>(mmap(reinterpret_cast<void*>(near), kCacheBytes,
                                      PROT_READ | PROT_WRITE | PROT_EXEC,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
  void* shared =
      mmap(nullptr, RegionBytes(blocks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (cache_ == MAP_FAILED || shared == MAP_FAILED) abort();
  region_ = static_cast<RegionHeader*>(shared);
  std::span<const uint8_t> blob = PayloadBlob();
  memcpy(cache_, blob.data(), blob.size());
  used_ = RoundToPage(blob.size());
  *region_ = {};
  region_->magic = kShadowMagic;
  region_->version = kShadowLayoutVersion;
  region_->pid = static_cast<uint32_t>(getpid());
  region_->block_count = blocks;
  region_->cache_address[0] = reinterpret_cast<uint64_t>(cache_);
  region_->cache_bytes[0] = kCacheBytes;
  if (getauxval(AT_HWCAP2) & 2) region_->flags = kRegionHasFsgsbase;
  region_->xsave_mask = XsaveMask();
  region_->heartbeat_ticks = ReadTicks();
  region_->stale_ticks = uint64_t{1} << 50;
  region_->live_limit = 100;
}

SelfHosted::~SelfHosted() {
  for (auto& [address, bytes] : patched_) Poke(address, bytes);
  munmap(cache_, kCacheBytes);
  munmap(region_, RegionBytes(blocks_));
}

uint64_t SelfHosted::Place(const std::vector<uint8_t>& bytes, uint64_t align_like) {
  uint64_t address =
      reinterpret_cast<uint64_t>(cache_) + ((used_ + 63) & ~uint64_t{63}) + (align_like & 63);
  memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
  used_ = address + bytes.size() - reinterpret_cast<uint64_t>(cache_);
  if (used_ > kCacheBytes) abort();
  return address;
}

uint32_t SelfHosted::Install(LoopText text) {
  return InstallSite(text, false);
}

uint32_t SelfHosted::InstallBatches(LoopText text) {
  return InstallSite(text, true);
}

uint32_t SelfHosted::InstallSite(LoopText text, bool batches) {
  uint32_t index = region_->site_count++;
  Site& s = site(index);
  uint64_t blob = reinterpret_cast<uint64_t>(cache_);
  uint64_t slow = blob + kPayloadSlowEntry, site_address = reinterpret_cast<uint64_t>(&s);
  std::vector<uint8_t> body = Peek(text.header, text.exit), live = body, timed = body;
  for (int i = 0; i < 5; ++i) live.push_back(0x90), timed.push_back(0x90);
  uint64_t live_at = Place(live, text.header),
           exit_at = Place(std::vector<uint8_t>(kTrampolineBytes), 0);
  uint64_t timed_at = Place(timed, text.header),
           entry_at = Place(std::vector<uint8_t>(kTrampolineBytes), 0);
  auto put = [](uint64_t at, const absl::StatusOr<std::vector<uint8_t>>& code) {
    if (!code.ok()) abort();
    memcpy(reinterpret_cast<void*>(at), code->data(), code->size());
  };
  put(live_at + body.size(), EmitJump(live_at + body.size(), text.exit));
  put(timed_at + body.size(), EmitJump(timed_at + body.size(), exit_at));
  put(exit_at, EmitTimedExit({exit_at, site_address, slow, text.exit}));
  const uint64_t batch_at = batches ? PlaceBatch(text, index) : live_at;
  put(entry_at, EmitTrampoline({entry_at, site_address, slow, live_at, timed_at, batch_at}));
  s.index = index;
  s.region = reinterpret_cast<uint64_t>(region_);
  s.live_copy = live_at;
  patched_.emplace_back(text.header, Peek(text.header, text.header + 5));
  Poke(text.header, *EmitJump(text.header, entry_at));
  return index;
}

// movabs $LiveTurns::left,%r10; decq (%r10), for the region is out of reach; js to the header in the text; from here on: the body, whose last instruction is a short `jne header`; the end of the loop.
uint64_t SelfHosted::PlaceBatch(LoopText text, uint32_t index) {
  const uint64_t site_address = reinterpret_cast<uint64_t>(&site(index));
  const uint64_t slow = reinterpret_cast<uint64_t>(cache_) + kPayloadSlowEntry;
  const std::vector<uint8_t> body = Peek(text.header, text.exit);
  constexpr uint32_t kCount = 13, kBranch = 6;
  uint64_t ways_out[2];
  for (int i = 0; i < 2; ++i) {
    ways_out[i] = Place(std::vector<uint8_t>(kTrampolineBytes), 0);
    const auto code =
        EmitTimedExit({ways_out[i], site_address, slow, i == 0 ? text.header : text.exit});
    memcpy(reinterpret_cast<void*>(ways_out[i]), code->data(), code->size());
  }
  const uint64_t at = Place(std::vector<uint8_t>(kCount + kBranch + body.size() + 5), 0);
  std::vector<uint8_t> code = {0x49, 0xba};
  const uint64_t left = reinterpret_cast<uint64_t>(&turns(index).left);
  for (int i = 0; i < 8; ++i) code.push_back(static_cast<uint8_t>(left >> 8 * i));
  code.insert(code.end(), {0x49, 0xff, 0x0a});
  const auto word = [&](uint64_t target) {
    const auto distance = static_cast<uint32_t>(target - (at + code.size() + 4));
    for (int i = 0; i < 4; ++i) code.push_back(static_cast<uint8_t>(distance >> 8 * i));
  };
  code.insert(code.end(), {0x0f, 0x88});
  word(ways_out[0]);
  code.insert(code.end(), body.begin(), body.end());
  code.back() = static_cast<uint8_t>(code.back() - kCount - kBranch);
  code.push_back(0xe9);
  word(ways_out[1]);
  memcpy(reinterpret_cast<void*>(at), code.data(), code.size());
  return at + kCount + kBranch;
}

uint64_t SelfHosted::Raw(std::vector<uint8_t> bytes) {
  uint64_t jump = bytes.size();
  bytes.resize(jump + 5);
  uint64_t at = Place(bytes, 0);
  memcpy(reinterpret_cast<void*>(at + jump),
         EmitJump(at + jump, reinterpret_cast<uint64_t>(cache_) + kPayloadExitStub)->data(), 5);
  return at;
}

uint64_t SelfHosted::Ref(LoopText text) {
  for (auto& [address, bytes] : patched_) {
    if (address != text.header) continue;
    std::vector<uint8_t> body = Peek(text.header, text.exit);
    std::copy(bytes.begin(), bytes.end(), body.begin());
    return Raw(body);
  }
  return Raw(Peek(text.header, text.exit));
}

uint64_t SelfHosted::Count(LoopText text) {
  uint64_t ref = Ref(text);
  // The last instruction of each loop is `jne header` with a short displacement.
  std::vector<uint8_t> code = {0x65, 0x48, 0xff, 0x04, 0x25, 0, 0, 0, 0};  // incq %gs:0
  std::vector<uint8_t> body = Peek(ref, ref + (text.exit - text.header));
  code.insert(code.end(), body.begin(), body.end());
  code.back() = static_cast<uint8_t>(code.back() - 9);
  return Raw(code);
}

void SelfHosted::SetMode(uint32_t index, uint32_t mode) {
  __atomic_store_n(&site(index).mode, mode, __ATOMIC_SEQ_CST);
}

ShadowPlan& SelfHosted::Plan(uint32_t index, uint32_t team, const std::vector<RunEntry>& runs) {
  ShadowPlan& p = plan();
  uint32_t generation = p.generation + 1;
  p = {};
  p.site = index;
  p.generation = generation;
  p.team = team;
  p.retries = 20;
  p.gather_ns = 1000000;
  p.shadow_ns = 2000000000;
  p.soft_ticks = uint64_t{1} << 40;
  p.run_count = static_cast<uint32_t>(runs.size());
  std::copy(runs.begin(), runs.end(), p.runs);
  return p;
}

void SelfHosted::Arm(uint32_t index, int64_t countdown) {
  Site& s = site(index);
  s.countdown = countdown;
  s.failures = 0;
  s.state = SiteState(SiteRound(s.state) + 1, 0, kPhaseArmed);
  SetMode(index, kModeArmed);
}

void SelfHosted::ForgetThreads() {
  for (uint32_t i = 0; i < blocks_; ++i) record(i) = {};
}

}  // namespace perfd::agent
