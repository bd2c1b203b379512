#include "agent/sample/ring/perf_event.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

int OpenOnce(const perf_event_attr& attr, const PerfTarget& target) {
  const unsigned long flags =
      PERF_FLAG_FD_CLOEXEC |
      (target.cgroup ? static_cast<unsigned long>(PERF_FLAG_PID_CGROUP) : 0ul);
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &attr, target.id, target.cpu, target.leader, flags));
}

// False when there was nothing left to raise.
bool RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// An event that is gone needs no order.
bool Order(const UniqueFd& event, unsigned long what) {
  return event.valid() && ::ioctl(event.get(), what, 0) == 0;
}

absl::StatusOr<uint64_t> IdOf(const UniqueFd& event) {
  uint64_t id = 0;
  if (::ioctl(event.get(), PERF_EVENT_IOC_ID, &id) == 0) return id;
  return absl::FailedPreconditionError(
      absl::StrCat("ask an event for its identifier: ", std::strerror(errno)));
}

absl::Status ChangeRate(const UniqueFd& event, uint64_t value) {
  if (::ioctl(event.get(), PERF_EVENT_IOC_PERIOD, &value) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("change the sampling rate: ", std::strerror(errno)));
}

// Source: perf_event_open(2) "Reading results": value, then lost.
uint64_t LostBy(const UniqueFd& event) {
  uint64_t result[2] = {0, 0};
  return ::read(event.get(), result, sizeof result) == sizeof result ? result[1] : 0;
}

// The others are for what comes first: events of time, and what reads of processes. The kernel gives the lowest number that is free.
bool LeavesDescriptors(const UniqueFd& event) {
  constexpr rlim_t kPart = 4;
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         static_cast<rlim_t>(event.get()) < limit.rlim_max / kPart;
}

absl::StatusOr<UniqueFd> OpenFurther(const perf_event_attr& attr, const PerfTarget& target) {
  PerfOpenResult opened = OpenPerfEvent(attr, target);
  if (!opened.fd.valid())
    return PerfOpenError(opened.error, "further event", absl::StrCat("target ", target.id));
  if (!LeavesDescriptors(opened.fd))
    return absl::ResourceExhaustedError(
        "a quarter of the descriptors is in use (LimitNOFILE= of the service)");
  return std::move(opened.fd);
}

absl::Status WriteInto(const UniqueFd& event, const UniqueFd& ring) {
  if (::ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, ring.get()) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("let a second event write into a perf ring: ", std::strerror(errno)));
}

std::span<const std::byte> DataArea(void* mapping, uint64_t mapped_bytes, uint64_t page_bytes) {
  return {static_cast<const std::byte*>(mapping) + page_bytes, mapped_bytes - page_bytes};
}

}  // namespace

uint64_t PageBytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

PerfOpenResult OpenPerfEvent(const perf_event_attr& attr, const PerfTarget& target) {
  int fd = OpenOnce(attr, target);
  if (fd < 0 && errno == EMFILE && RaiseDescriptorLimit()) fd = OpenOnce(attr, target);
  return {UniqueFd(fd), fd < 0 ? errno : 0};
}

int ProbePerfEvent(const perf_event_attr& attr) {
  return OpenPerfEvent(attr, {}).error;
}

absl::Status PerfOpenError(int error, absl::string_view event, absl::string_view subject) {
  const std::string text =
      absl::StrCat("perf_event_open(", event, ") for ", subject, ": ", std::strerror(error));
  switch (error) {
    case ESRCH:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(
          text,
          "; lower it with `sysctl -w kernel.perf_event_paranoid=1`, or give the agent "
          "CAP_PERFMON (and CAP_SYS_PTRACE for processes of other users)"));
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(absl::StrCat(
          text, "; raise the hard limit of RLIMIT_NOFILE (LimitNOFILE= of the service)"));
    case ENOMEM:
    case ENOSPC:
      return absl::ResourceExhaustedError(text);
    case EBUSY:
      return absl::UnavailableError(absl::StrCat(text, "; another profiler holds the counters"));
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
    case ENOSYS:
      return absl::UnimplementedError(
          absl::StrCat(text,
                       "; this machine has no such event (a virtual machine without a PMU?): "
                       "use event auto or cpu-clock"));
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(text, "; see kernel.perf_event_max_sample_rate for the highest frequency"));
  }
}

absl::StatusOr<PerfRing> PerfRing::Create(UniqueFd fd, uint64_t bytes) {
  const uint64_t page = PageBytes();
  int error = 0;
  for (uint64_t size = bytes; size >= page; size /= 2) {
    void* mapping = ::mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (mapping != MAP_FAILED) return PerfRing(std::move(fd), mapping, size + page, page);
    error = errno;
    if (error != EPERM && error != ENOMEM && error != EAGAIN) break;
  }
  const std::string text =
      absl::StrCat("map a perf ring of ", bytes, " bytes: ", std::strerror(error));
  if (error == EINVAL) return absl::InvalidArgumentError(text);
  return absl::ResourceExhaustedError(
      absl::StrCat(text,
                   "; raise `sysctl -w kernel.perf_event_mlock_kb=2048` or RLIMIT_MEMLOCK "
                   "(LimitMEMLOCK= of the service), or give the agent CAP_IPC_LOCK"));
}

PerfRing::PerfRing(UniqueFd fd, void* mapping, uint64_t mapped_bytes, uint64_t page_bytes)
    : fd_(std::move(fd)),
      mapping_(mapping),
      mapped_bytes_(mapped_bytes),
      buffer_(static_cast<perf_event_mmap_page*>(mapping),
              DataArea(mapping, mapped_bytes, page_bytes)) {}

PerfRing::PerfRing(PerfRing&& other) noexcept
    : fd_(std::move(other.fd_)),
      sideband_(std::move(other.sideband_)),
      further_(std::move(other.further_)),
      rests_(other.rests_),
      rested_before_ns_(other.rested_before_ns_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_bytes_(other.mapped_bytes_),
      buffer_(std::move(other.buffer_)),
      lease_(std::move(other.lease_)) {}

PerfRing::~PerfRing() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_bytes_);
}

void PerfRing::Disable() {
  Order(fd_, PERF_EVENT_IOC_DISABLE);
  Order(sideband_, PERF_EVENT_IOC_DISABLE);
  OrderFurther(PERF_EVENT_IOC_DISABLE);
}

void PerfRing::OrderFurther(unsigned long what) const {
  for (const Further& event : further_) {
    Order(event.leader, what);
    Order(event.fd, what);
  }
}

// One is on before the other is off: a record may be there twice, none is missing.
bool PerfRing::Rest() {
  if (rests_) return true;
  DrainRestedNs();
  if (!Order(sideband_, PERF_EVENT_IOC_ENABLE)) return false;
  rests_ = Order(fd_, PERF_EVENT_IOC_DISABLE);
  if (rests_) OrderFurther(PERF_EVENT_IOC_DISABLE);
  return rests_;
}

void PerfRing::GoOn() {
  if (!std::exchange(rests_, false)) return;
  Order(fd_, PERF_EVENT_IOC_ENABLE);
  OrderFurther(PERF_EVENT_IOC_ENABLE);
  Order(sideband_, PERF_EVENT_IOC_DISABLE);
}

// Source: perf_event_open(2) "Reading results": value, then time enabled, which for the event of a thread goes on while the thread
// runs (kernel/events/core.c: the time of its context). Reading an event that is off interrupts no CPU.
uint64_t PerfRing::DrainRestedNs() {
  uint64_t result[2] = {0, 0};
  if (!sideband_.valid() || ::read(sideband_.get(), result, sizeof result) != sizeof result)
    return 0;
  const uint64_t before = std::exchange(rested_before_ns_, result[1]);
  return result[1] > before ? result[1] - before : 0;
}

// Source: perf_event_open(2) PERF_EVENT_IOC_SET_OUTPUT, PERF_COUNT_SW_DUMMY. The bits of sample_type that decide how a record
// other than a sample ends must be those of the ring's event; those of samples alone cost nothing here.
absl::Status PerfRing::AddSideband(const perf_event_attr& attr, const PerfTarget& target) {
  perf_event_attr dummy = attr;
  dummy.type = PERF_TYPE_SOFTWARE;
  dummy.config = PERF_COUNT_SW_DUMMY;
  dummy.config1 = dummy.config2 = 0;
  dummy.freq = 0;
  dummy.sample_period = 0;
  dummy.precise_ip = 0;
  dummy.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
  dummy.disabled = 1;
  PerfOpenResult opened = OpenPerfEvent(dummy, target);
  if (!opened.fd.valid()) {
    return PerfOpenError(opened.error, "dummy", absl::StrCat("target ", target.id));
  }
  RETURN_IF_ERROR(WriteInto(opened.fd, fd_));
  sideband_ = std::move(opened.fd);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> PerfRing::AddEvent(const FurtherEvent& event, const PerfTarget& target) {
  further_.emplace_back();  // stays empty unless all of it succeeds
  Further further;
  perf_event_attr attr = event.attr;
  PerfTarget led = target;
  attr.disabled = rests_ ? 1 : 0;
  if (event.leader.has_value()) {
    ASSIGN_OR_RETURN(further.leader, OpenFurther(*event.leader, target));
    led.leader = further.leader.get();
  }
  ASSIGN_OR_RETURN(further.fd, OpenFurther(attr, led));
  RETURN_IF_ERROR(WriteInto(further.fd, fd_));
  ASSIGN_OR_RETURN(const uint64_t id, IdOf(further.fd));
  further_.back() = std::move(further);
  return id;
}

absl::StatusOr<uint64_t> PerfRing::Id() const {
  return IdOf(fd_);
}

uint64_t PerfRing::LostRecords() const {
  return LostBy(fd_);
}

uint64_t PerfRing::DrainLostFurther() {
  uint64_t lost = 0;
  for (Further& event : further_) {
    if (!event.fd.valid()) continue;
    const uint64_t now = LostBy(event.fd);
    lost += now - std::exchange(event.lost, now);
  }
  return lost;
}

absl::Status PerfRing::SetRate(uint64_t value) {
  return ChangeRate(fd_, value);
}

absl::Status PerfRing::SetRateOf(size_t further, uint64_t value) {
  const UniqueFd& event = further_[further].fd;
  return event.valid() ? ChangeRate(event, value) : absl::OkStatus();
}

uint64_t RingMaker::AddEvent(const FurtherEvent& event, const PerfTarget& target, PerfRing& ring) {
  const absl::StatusOr<uint64_t> id = ring.AddEvent(event, target);
  if (!id.ok() && !absl::IsNotFound(id.status()) && !std::exchange(told_, true))
    LogWarning("a thread is sampled without one of its events: {}", Text(id.status()));
  return id.value_or(0);
}

void RingMaker::LimitRings(int rings, uint64_t lockable_bytes) {
  ring_bytes_ =
      FairRingBytes(ring_bytes_, rings, std::min(lockable_bytes, share_.room()), PageBytes());
}

bool RingMaker::Halve() {
  if (ring_bytes_ <= PageBytes()) return false;
  ring_bytes_ /= 2;
  return true;
}

absl::StatusOr<PerfRing> RingMaker::MakeExactly(UniqueFd fd, uint64_t bytes) {
  if (ring_bytes_ < kPlainRingBytes) return absl::ResourceExhaustedError("rings are small");
  const uint64_t page = PageBytes();
  ASSIGN_OR_RETURN(RingLease lease, share_.Acquire(bytes + page));
  ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Create(std::move(fd), bytes));
  if (ring.data_bytes() < bytes) return absl::ResourceExhaustedError("little may be locked");
  ring.Charge(std::move(lease));
  return ring;
}

absl::StatusOr<PerfRing> RingMaker::Make(UniqueFd fd) {
  const uint64_t page = PageBytes();
  uint64_t bytes = ring_bytes_;
  absl::StatusOr<RingLease> lease = share_.Acquire(bytes + page);
  while (!lease.ok() && bytes > page) {
    bytes /= 2;
    lease = share_.Acquire(bytes + page);
  }
  RETURN_IF_ERROR(lease.status());
  ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Create(std::move(fd), bytes));
  lease->ShrinkTo(ring.data_bytes() + page);
  ring.Charge(*std::move(lease));
  return ring;
}

}  // namespace perfd::agent
