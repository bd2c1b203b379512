#include "agent/sample/sampling_event.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <ctime>

#include "agent/sample/ring/ring_budget.h"
#include "core/perfdata/records/event_layout.h"

namespace perfd::agent {
namespace {

constexpr double kNsPerS = 1e9;
constexpr uint32_t kMaxStackBytes = 32u << 10;  // the whole record must stay below 64 KiB
constexpr uint64_t kStackRingBytes = 512u << 10;
constexpr uint32_t kPieceBytes = 1024;  // a few frames: up to the loop that called
constexpr int kMostStackRings = 16;     // 4 MiB a session
constexpr double kMostStackedHz = 400;  // 1.3 KiB each: half a second without a Drain
constexpr uint64_t kLockedPart = 8;     // of what may be locked
constexpr uint64_t kMaxRingBytes = 64u << 20;

// How a thread came into the kernel: its chain there, and where it came from. Of a sample of user code, next to nothing.
void AddKernelEntry(perf_event_attr* attr) {
  attr->sample_type |= PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER;
  attr->exclude_callchain_user = 1;
  attr->sample_regs_user = kUserIpMask;
}

void AddCallPaths(const SamplingOptions& options, perf_event_attr* attr) {
  if (options.callpaths == CallPaths::kFramePointer) {
    attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
    attr->exclude_callchain_user = 0;
    attr->exclude_callchain_kernel = attr->exclude_kernel;
  } else if (options.callpaths == CallPaths::kDwarf) {
    attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attr->sample_regs_user = kUserRegisterMask;
    attr->sample_stack_user = std::clamp<uint32_t>(options.stack_bytes & ~7u, 8, kMaxStackBytes);
  }
}

}  // namespace

bool CopiesStacks(CallPaths callpaths) {
  return callpaths == CallPaths::kDwarf || callpaths == CallPaths::kAuto;
}

int StackRings(const SamplingOptions& options, uint64_t lockable_bytes) {
  if (options.callpaths != CallPaths::kAuto || options.frequency_hz > kMostStackedHz) return 0;
  const uint64_t fit = lockable_bytes / kLockedPart / kPieceRingBytes;
  return static_cast<int>(std::min<uint64_t>(fit, kMostStackRings));
}

perf_event_attr WithPieceOfStack(perf_event_attr attr) {
  attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = kUserRegisterMask;
  attr.sample_stack_user = kPieceBytes;
  return attr;
}

bool IsClockEvent(const perf_event_attr& attr) {
  return attr.type == PERF_TYPE_SOFTWARE &&
         (attr.config == PERF_COUNT_SW_CPU_CLOCK || attr.config == PERF_COUNT_SW_TASK_CLOCK);
}

uint64_t RateValue(const perf_event_attr& attr, double hz) {
  const double rate =
      std::clamp(std::isfinite(hz) ? hz : kMinFrequencyHz, kMinFrequencyHz, kMaxFrequencyHz);
  return static_cast<uint64_t>(std::llround(IsClockEvent(attr) ? kNsPerS / rate : rate));
}

// Multiples of the golden ratio: numbers that follow each other are far apart.
uint64_t StaggeredRate(const perf_event_attr& attr, uint64_t rate, int32_t id) {
  if (!IsClockEvent(attr)) return rate;
  constexpr double kGolden = 0.6180339887498949;
  constexpr double kMostOff = 0.01;
  const double turn = static_cast<double>(id) * kGolden;
  const double off = kMostOff * (2 * (turn - std::floor(turn)) - 1);
  return static_cast<uint64_t>(std::llround(static_cast<double>(rate) * (1 + off)));
}

perf_event_attr AttrOf(const EventEncoding& encoding) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = encoding.type;
  attr.config = encoding.config;
  attr.config1 = encoding.config1;
  attr.config2 = encoding.config2;
  attr.exclude_user = encoding.exclude_user;
  attr.exclude_kernel = encoding.exclude_kernel;
  attr.precise_ip = encoding.precise & 3;
  attr.sample_type = kBaseSampleType;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

perf_event_attr MakeSamplingAttr(const EventEncoding& encoding, const SamplingOptions& options) {
  perf_event_attr attr = AttrOf(encoding);
  attr.exclude_hv = 1;
  attr.freq = IsClockEvent(attr) ? 0 : 1;
  attr.sample_freq = RateValue(attr, options.frequency_hz);  // one union with sample_period
  attr.read_format = PERF_FORMAT_LOST;  // since Linux 6.0: ChooseEvent does without where it must
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  if (attr.exclude_kernel == 0) AddKernelEntry(&attr);
  AddCallPaths(options, &attr);
  return attr;
}

perf_event_attr MakeAccessAttr(const EventEncoding& encoding, uint64_t period) {
  perf_event_attr attr = AttrOf(encoding);
  attr.sample_period = period;
  // A software event with a fixed period that tells it samples everything: kernel/events/core.c perf_swevent_event.
  if (attr.type == PERF_TYPE_SOFTWARE) attr.sample_type &= ~uint64_t{PERF_SAMPLE_PERIOD};
  attr.sample_type |= PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC;
  attr.exclude_hv = attr.exclude_kernel;
  return attr;
}

perf_event_attr MakeLeaderAttr(const EventEncoding& encoding) {
  perf_event_attr attr = AttrOf(encoding);
  attr.exclude_hv = attr.exclude_kernel;
  return attr;
}

void LeaveKernelOut(const SamplingOptions& options, perf_event_attr* attr) {
  attr->exclude_kernel = 1;
  attr->sample_type &= ~static_cast<uint64_t>(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER);
  attr->exclude_callchain_user = 0;
  attr->sample_regs_user = 0;
  AddCallPaths(options, attr);
}

uint64_t RingBytes(const SamplingOptions& options, uint64_t page_bytes) {
  uint64_t bytes = options.ring_bytes;
  if (bytes == 0) {
    bytes = options.callpaths == CallPaths::kDwarf ? kStackRingBytes : kPlainRingBytes;
  }
  return std::clamp(std::bit_ceil(std::min(bytes, kMaxRingBytes)), page_bytes, kMaxRingBytes);
}

}  // namespace perfd::agent
