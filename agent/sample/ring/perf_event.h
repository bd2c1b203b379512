// agent/sample/ring/perf_event.h - the one door to perf_event_open(2): events and their rings as owned objects.
//
// Shape    OpenPerfEvent -> descriptor or errno; PerfRing::Create maps a ring over it and owns both.
// Errors   errno where the caller must decide by it; PerfOpenError turns it into a Status that names what to change.
//          PerfRing: kResourceExhausted (locked memory), after trying smaller rings down to one page.
// Threads  thread-compatible; a PerfRing has one reader.
// Source   perf_event_open(2); Documentation/admin-guide/perf-security.rst (perf_event_mlock_kb, CAP_PERFMON).
#ifndef AGENT_SAMPLE_RING_PERF_EVENT_H_
#define AGENT_SAMPLE_RING_PERF_EVENT_H_

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/sample/ring/ring_budget.h"
#include "agent/sample/ring/ring_buffer.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {

struct PerfTarget {
  int32_t id = 0;    // thread; 0: the caller; with cgroup: a descriptor of the cgroup's directory
  int32_t cpu = -1;  // -1: wherever the thread runs
  bool cgroup = false;
  int leader = -1;  // a descriptor: of whose group the event is
};

uint64_t PageBytes();

struct PerfOpenResult {
  UniqueFd fd;
  int error = 0;  // errno when fd is not valid
};

// Raises the soft limit of descriptors to the hard one when it is in the way.
PerfOpenResult OpenPerfEvent(const perf_event_attr& attr, const PerfTarget& target);

// 0 when the event opens on the calling thread, else errno.
int ProbePerfEvent(const perf_event_attr& attr);

// What one more event of a ring is opened with.
struct FurtherEvent {
  perf_event_attr attr{};
  std::optional<perf_event_attr> leader{};  // opened before it, and leads its group
};

absl::Status PerfOpenError(int error, absl::string_view event, absl::string_view subject);

class [[nodiscard]] PerfRing {
 public:
  // `bytes`: power of two of pages; less is taken when the kernel refuses so much locked memory.
  static absl::StatusOr<PerfRing> Create(UniqueFd fd, uint64_t bytes);
  ~PerfRing();
  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&& other) = delete;

  RingBuffer& buffer() { return buffer_; }
  // Of the node's memory, given back with the ring.
  void Charge(RingLease lease) { lease_ = std::move(lease); }
  uint64_t data_bytes() const { return mapped_bytes_ - PageBytes(); }
  void Disable();
  // The event rests, or goes on. Mappings, forks and execs are recorded all the time: while it rests by a second event that
  // counts nothing and writes into the same ring; Rest without one (AddSideband) does nothing and is false.
  bool Rest();
  void GoOn();
  bool has_sideband() const { return sideband_.valid(); }
  // ns that its thread (or cgroup) ran at rest, since this rest began or since the last call.
  uint64_t DrainRestedNs();
  // `attr`: what the ring's event was opened with.
  absl::Status AddSideband(const perf_event_attr& attr, const PerfTarget& target);
  // One more event that writes into the ring, and rests with its own: by which identifier its records are known. One that does
  // not open counts in the order all the same.
  absl::StatusOr<uint64_t> AddEvent(const FurtherEvent& event, const PerfTarget& target);
  // Of the ring's own event.
  absl::StatusOr<uint64_t> Id() const;
  // Records of its own event that found no room so far, reported by LOST records or not; 0 when the kernel does not say. Needs
  // attr.read_format == PERF_FORMAT_LOST.
  uint64_t LostRecords() const;
  // The same of its further ones, since the last call.
  uint64_t DrainLostFurther();
  // A frequency or a period, as RateValue gives it.
  absl::Status SetRate(uint64_t value);
  // The same of a further one, by the order in which they were added.
  absl::Status SetRateOf(size_t further, uint64_t value);

 private:
  PerfRing(UniqueFd fd, void* mapping, uint64_t mapped_bytes, uint64_t page_bytes);

  struct Further {
    UniqueFd leader;
    UniqueFd fd;
    uint64_t lost = 0;  // so far, told
  };
  void OrderFurther(unsigned long what) const;

  UniqueFd fd_;
  UniqueFd sideband_;
  std::vector<Further> further_;
  bool rests_ = false;
  uint64_t rested_before_ns_ = 0;
  void* mapping_;
  uint64_t mapped_bytes_;
  RingBuffer buffer_;
  RingLease lease_;
};

// The rings of one session: all of one size, and of its share of the node's memory. Outlives its rings; thread-bound.
class RingMaker {
 public:
  // `budget` may be null: no limit.
  RingMaker(uint64_t ring_bytes, RingBudget* budget) : ring_bytes_(ring_bytes), share_(budget) {}

  // Of rings to come, without their first page.
  uint64_t ring_bytes() const { return ring_bytes_; }
  // Rings to come share the memory that there is for so many (FairRingBytes): what may be locked, and what is left of the
  // session's share.
  void LimitRings(int rings, uint64_t lockable_bytes);
  // False: they have one page already.
  bool Halve();
  // As large as the share and the kernel allow, down to one page.
  absl::StatusOr<PerfRing> Make(UniqueFd fd);
  // PerfRing::AddEvent; 0 when it does not open: a ring without it is better than none.
  uint64_t AddEvent(const FurtherEvent& event, const PerfTarget& target, PerfRing& ring);
  // Exactly as large, or not at all; not while other rings are smaller than they ought to be.
  absl::StatusOr<PerfRing> MakeExactly(UniqueFd fd, uint64_t bytes);

 private:
  uint64_t ring_bytes_;
  RingShare share_;
  bool told_ = false;  // that an event does not open
};

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_RING_PERF_EVENT_H_
