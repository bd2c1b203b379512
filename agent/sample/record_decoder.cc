#include "agent/sample/record_decoder.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

namespace perfd::agent {
namespace {

// Fixed parts of the records, without header and sample_id. Source: enum perf_event_type in
// include/uapi/linux/perf_event.h, comments "struct { ... }" at each kind.
struct TaskBody {  // PERF_RECORD_FORK, PERF_RECORD_EXIT
  uint32_t pid, parent_pid, tid, parent_tid;
  uint64_t time_ns;
};
static_assert(sizeof(TaskBody) == 24);

struct MappingBody {  // PERF_RECORD_MMAP2; the union after file_offset is read by hand
  uint32_t pid, tid;
  uint64_t start, length, file_offset;
  std::byte identity[24];
  uint32_t protection, flags;
};
static_assert(sizeof(MappingBody) == 64);
static_assert(offsetof(MappingBody, identity) == 32);
static_assert(offsetof(MappingBody, protection) == 56);

struct FileIdentity {
  uint32_t device_major, device_minor;
  uint64_t inode, generation;
};
static_assert(sizeof(FileIdentity) == 24);

struct BuildIdIdentity {
  uint8_t size, reserved1;
  uint16_t reserved2;
  char bytes[20];
};
static_assert(sizeof(BuildIdIdentity) == 24);

struct LostBody {  // PERF_RECORD_LOST
  uint64_t id, count;
};
static_assert(sizeof(LostBody) == 16);

struct CommBody {  // PERF_RECORD_COMM; the name follows
  uint32_t pid, tid;
};
static_assert(sizeof(CommBody) == 8);

static_assert(std::popcount(kUserRegisterMask) == kUserRegisterCount);

// Bits that add a u64 (or two u32) to the sample_id trailer. Source: perf_event_open(2) "struct sample_id".
constexpr uint64_t kTrailerBits =
    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

PerfRecord DecodeTask(ByteReader body, bool exit, uint64_t time_ns) {
  const auto raw = body.Read<TaskBody>();
  if (!body.ok()) return MalformedRecord{};
  TaskEvent event;
  event.time_ns = time_ns;
  event.pid = static_cast<int32_t>(raw.pid);
  event.tid = static_cast<int32_t>(raw.tid);
  event.parent_pid = static_cast<int32_t>(raw.parent_pid);
  // A thread shares its creator's pid; anything else is a new process.
  event.kind = exit                        ? TaskEvent::Kind::kExited
               : raw.pid == raw.parent_pid ? TaskEvent::Kind::kThreadStarted
                                           : TaskEvent::Kind::kProcessForked;
  return event;
}

PerfRecord DecodeComm(ByteReader body, uint16_t misc, uint64_t time_ns) {
  const auto raw = body.Read<CommBody>();
  if (!body.ok()) return MalformedRecord{};
  if ((misc & PERF_RECORD_MISC_COMM_EXEC) == 0) return IgnoredRecord{};
  TaskEvent event;
  event.kind = TaskEvent::Kind::kExec;
  event.time_ns = time_ns;
  event.pid = static_cast<int32_t>(raw.pid);
  event.tid = static_cast<int32_t>(raw.tid);
  return event;
}

PerfRecord DecodeLost(ByteReader body, bool samples_only) {
  // LOST names the event first; LOST_SAMPLES does not.
  const uint64_t count = samples_only ? body.Read<uint64_t>() : body.Read<LostBody>().count;
  if (!body.ok()) return MalformedRecord{};
  return LostRecord{count};
}

// Text up to its NUL; nothing when there is no NUL.
std::optional<std::string> ReadText(ByteReader& body) {
  const std::span<const std::byte> rest = body.ReadSpan(body.remaining());
  const auto end = std::find(rest.begin(), rest.end(), std::byte{0});
  if (end == rest.end()) return std::nullopt;
  std::string text;
  std::transform(rest.begin(), end, std::back_inserter(text),
                 [](std::byte b) { return static_cast<char>(b); });
  return text;
}

}  // namespace

RecordDecoder::RecordDecoder(uint64_t sample_type, int64_t clock_offset_ns, uint64_t register_mask,
                             const KernelCauses* causes)
    : sample_type_(sample_type & kDecodableSampleType),
      clock_offset_ns_(clock_offset_ns),
      trailer_bytes_(8 * static_cast<size_t>(std::popcount(sample_type_ & kTrailerBits))),
      register_mask_(register_mask),
      causes_(causes) {}

// Source: perf_event_open(2) "struct sample_id": pid and tid, then the time, then the rest.
uint64_t RecordDecoder::TimeOf(std::span<const std::byte> trailer) const {
  if (!Has(PERF_SAMPLE_TIME)) return 0;
  ByteReader reader(trailer);
  if (Has(PERF_SAMPLE_TID)) reader.Skip(2 * sizeof(uint32_t));
  const auto time_ns = reader.Read<uint64_t>();
  return reader.ok() ? Here(time_ns) : 0;
}

bool RecordDecoder::ExplainsSamples(std::span<const std::byte> record) {
  ByteReader reader(record);
  const auto header = reader.Read<perf_event_header>();
  if (!reader.ok()) return false;
  return header.type == PERF_RECORD_MMAP2 || header.type == PERF_RECORD_COMM ||
         header.type == PERF_RECORD_FORK || header.type == PERF_RECORD_EXIT;
}

PerfRecord RecordDecoder::Decode(std::span<const std::byte> record) {
  ByteReader reader(record);
  const auto header = reader.Read<perf_event_header>();
  if (!reader.ok() || header.size != record.size()) return MalformedRecord{};
  if (header.type == PERF_RECORD_SAMPLE) return DecodeSample(reader, header.misc);
  switch (header.type) {
    case PERF_RECORD_MMAP2:
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
    case PERF_RECORD_COMM:
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
      break;
    default:
      return IgnoredRecord{};
  }
  if (reader.remaining() < trailer_bytes_) return MalformedRecord{};
  const size_t body_bytes = reader.remaining() - trailer_bytes_;
  ByteReader body(record.subspan(sizeof header, body_bytes));
  const uint64_t time_ns = TimeOf(record.subspan(sizeof header + body_bytes));
  switch (header.type) {
    case PERF_RECORD_MMAP2:
      return DecodeMapping(body, header.misc, time_ns);
    case PERF_RECORD_COMM:
      return DecodeComm(body, header.misc, time_ns);
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
      return DecodeLost(body, header.type == PERF_RECORD_LOST_SAMPLES);
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
      return ThrottleRecord{header.type == PERF_RECORD_THROTTLE};
    default:
      return DecodeTask(body, header.type == PERF_RECORD_EXIT, time_ns);
  }
}

PerfRecord RecordDecoder::DecodeSample(ByteReader body, uint16_t misc) {
  Sample sample;
  sample.kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
  if (Has(PERF_SAMPLE_IDENTIFIER)) body.Skip(8);
  if (Has(PERF_SAMPLE_IP)) sample.ip = body.Read<uint64_t>();
  if (Has(PERF_SAMPLE_TID)) {
    sample.pid = body.Read<int32_t>();
    sample.tid = body.Read<int32_t>();
  }
  if (Has(PERF_SAMPLE_TIME)) sample.time_ns = Here(body.Read<uint64_t>());
  if (Has(PERF_SAMPLE_CPU)) {
    sample.cpu = body.Read<uint32_t>();
    body.Skip(4);
  }
  if (Has(PERF_SAMPLE_PERIOD)) sample.period = body.Read<uint64_t>();
  if (!ReadCallchain(body) || !ReadRegisters(body, &sample) || !ReadStack(body, &sample)) {
    return MalformedRecord{};
  }
  // Every field is accounted for by the layout: bytes left over mean that it is not the layout we think.
  if (!body.ok() || body.remaining() != 0) return MalformedRecord{};
  sample.callchain = callchain_;
  if (sample.kernel && causes_ != nullptr) sample.kernel_cause = causes_->Of(kernel_chain_);
  sample.user_registers = registers_;
  return sample;
}

bool RecordDecoder::ReadCallchain(ByteReader& body) {
  callchain_.clear();
  kernel_chain_.clear();
  if (!Has(PERF_SAMPLE_CALLCHAIN)) return true;
  const auto count = body.Read<uint64_t>();
  if (!body.ok() || count > body.remaining() / sizeof(uint64_t)) return false;
  // What follows belongs to user space, until a marker says otherwise.
  std::vector<uint64_t>* chain = &callchain_;
  for (uint64_t i = 0; i < count; ++i) {
    const auto frame = body.Read<uint64_t>();
    // PERF_CONTEXT_* markers are the small negative numbers down to PERF_CONTEXT_MAX.
    if (frame >= static_cast<uint64_t>(PERF_CONTEXT_MAX)) {
      chain = frame == static_cast<uint64_t>(PERF_CONTEXT_USER)     ? &callchain_
              : frame == static_cast<uint64_t>(PERF_CONTEXT_KERNEL) ? &kernel_chain_
                                                                    : nullptr;
    } else if (chain != nullptr) {
      chain->push_back(frame);
    }
  }
  return true;
}

bool RecordDecoder::ReadRegisters(ByteReader& body, Sample* sample) {
  registers_.clear();
  if (!Has(PERF_SAMPLE_REGS_USER)) return true;
  const auto abi = body.Read<uint64_t>();
  if (abi == PERF_SAMPLE_REGS_ABI_NONE) return body.ok();  // a kernel thread, or no user state
  const int count = std::popcount(register_mask_);
  for (int i = 0; i < count; ++i) registers_.push_back(body.Read<uint64_t>());
  const bool known = abi == PERF_SAMPLE_REGS_ABI_64 || abi == PERF_SAMPLE_REGS_ABI_32;
  if (!body.ok() || !known) return false;
  if (sample->kernel)
    sample->user_ip =
        registers_[static_cast<size_t>(std::popcount(register_mask_ & (kUserIpMask - 1)))];
  if (register_mask_ != kUserRegisterMask || abi != PERF_SAMPLE_REGS_ABI_64) registers_.clear();
  return true;
}

bool RecordDecoder::ReadStack(ByteReader& body, Sample* sample) const {
  if (!Has(PERF_SAMPLE_STACK_USER)) return true;
  const auto size = body.Read<uint64_t>();
  if (!body.ok() || size > body.remaining()) return false;
  if (size == 0) return true;  // then there is no dyn_size either
  const std::span<const std::byte> bytes = body.ReadSpan(size);
  const auto used = body.Read<uint64_t>();
  if (!body.ok() || used > size) return false;
  sample->user_stack = bytes.first(used);
  return true;
}

PerfRecord RecordDecoder::DecodeMapping(ByteReader body, uint16_t misc, uint64_t time_ns) const {
  const auto raw = body.Read<MappingBody>();
  if (!body.ok()) return MalformedRecord{};
  MappingEvent event;
  event.time_ns = time_ns;
  event.pid = static_cast<int32_t>(raw.pid);
  event.start = raw.start;
  event.length = raw.length;
  event.file_offset = raw.file_offset;
  if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
    const auto id = std::bit_cast<BuildIdIdentity>(raw.identity);
    if (id.size > sizeof id.bytes) return MalformedRecord{};
    event.build_id.assign(id.bytes, id.size);
  } else {
    const auto file = std::bit_cast<FileIdentity>(raw.identity);
    event.device_major = file.device_major;
    event.device_minor = file.device_minor;
    event.inode = file.inode;
  }
  std::optional<std::string> path = ReadText(body);
  if (!path.has_value() || raw.length > UINT64_MAX - raw.start) return MalformedRecord{};
  event.path = *std::move(path);
  return event;
}

}  // namespace perfd::agent
