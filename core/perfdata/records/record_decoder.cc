#include "core/perfdata/records/record_decoder.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace perfd {
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

struct PlainMappingBody {  // PERF_RECORD_MMAP; the name follows
  uint32_t pid, tid;
  uint64_t start, length, file_offset;
};
static_assert(sizeof(PlainMappingBody) == 32);

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
  std::optional<std::string> name = ReadText(body);
  if (!body.ok() || !name.has_value()) return MalformedRecord{};
  TaskEvent event;
  event.kind =
      (misc & PERF_RECORD_MISC_COMM_EXEC) != 0 ? TaskEvent::Kind::kExec : TaskEvent::Kind::kRenamed;
  event.time_ns = time_ns;
  event.pid = static_cast<int32_t>(raw.pid);
  event.tid = static_cast<int32_t>(raw.tid);
  event.name = *std::move(name);
  return event;
}

PerfRecord DecodeLost(ByteReader body, uint16_t misc, bool samples_only, uint64_t time_ns) {
  // PERF_RECORD_MISC_LOST_SAMPLES_BPF: what the user's own filter left out is not lost.
  constexpr uint16_t kFiltered = 1u << 15;
  // LOST names the event first; LOST_SAMPLES does not.
  const uint64_t count = samples_only ? body.Read<uint64_t>() : body.Read<LostBody>().count;
  if (!body.ok()) return MalformedRecord{};
  if (samples_only && (misc & kFiltered) != 0) return IgnoredRecord{};
  return LostRecord{count, samples_only, time_ns};
}

PerfRecord Finish(MappingEvent event, ByteReader& body) {
  std::optional<std::string> path = ReadText(body);
  const bool wraps = event.length > UINT64_MAX - event.start.value();
  if (!path.has_value() || wraps) return MalformedRecord{};
  event.path = *std::move(path);
  return event;
}

// What both kinds of mapping begin with.
template <typename Body>
MappingEvent Mapped(const Body& raw, uint64_t time_ns) {
  MappingEvent event;
  event.time_ns = time_ns;
  event.pid = static_cast<int32_t>(raw.pid);
  event.start = raw.start;
  event.length = raw.length;
  event.file_offset = raw.file_offset;
  return event;
}

PerfRecord DecodePlainMapping(ByteReader body, uint16_t misc, uint64_t time_ns) {
  const auto raw = body.Read<PlainMappingBody>();
  if (!body.ok()) return MalformedRecord{};
  MappingEvent event = Mapped(raw, time_ns);
  event.executable = (misc & PERF_RECORD_MISC_MMAP_DATA) == 0;
  return Finish(std::move(event), body);
}

PerfRecord DecodeMapping(ByteReader body, uint16_t misc, uint64_t time_ns) {
  const auto raw = body.Read<MappingBody>();
  if (!body.ok()) return MalformedRecord{};
  MappingEvent event = Mapped(raw, time_ns);
  event.executable = (raw.protection & PROT_EXEC) != 0;
  event.shared = (raw.flags & MAP_SHARED) != 0;
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
  return Finish(std::move(event), body);
}

// `count` fields of 8 bytes each; more than there are make the reader fail.
void SkipFields(ByteReader& body, uint64_t count) {
  if (count > body.remaining() / sizeof(uint64_t)) {
    body.Skip(body.remaining() + 1);
    return;
  }
  body.Skip(count * sizeof(uint64_t));
}

void SkipRegisters(ByteReader& body, uint64_t mask) {
  const auto abi = body.Read<uint64_t>();
  if (abi != PERF_SAMPLE_REGS_ABI_NONE)
    SkipFields(body, static_cast<uint64_t>(std::popcount(mask)));
}

// Of a value among registers in the order of the bits of `mask`.
size_t IndexOf(uint64_t bit, uint64_t mask) {
  return static_cast<size_t>(std::popcount(mask & (bit - 1)));
}

}  // namespace

RecordDecoder::RecordDecoder(const EventLayout& layout, int64_t clock_offset_ns)
    : layout_(layout), clock_offset_ns_(clock_offset_ns), trailer_bytes_(layout.TrailerBytes()) {}

// Source: perf_event_open(2) "struct sample_id": pid and tid, then the time, then the rest.
uint64_t RecordDecoder::TrailerTime(std::span<const std::byte> trailer) const {
  if (!Has(PERF_SAMPLE_TIME) || !layout_.sample_id_all) return 0;
  ByteReader reader(trailer);
  if (Has(PERF_SAMPLE_TID)) reader.Skip(2 * sizeof(uint32_t));
  const auto time_ns = reader.Read<uint64_t>();
  return reader.ok() ? Here(time_ns) : 0;
}

uint64_t RecordDecoder::TimeOf(std::span<const std::byte> record) const {
  ByteReader reader(record);
  const auto header = reader.Read<perf_event_header>();
  if (!reader.ok() || !Has(PERF_SAMPLE_TIME)) return 0;
  if (header.type != PERF_RECORD_SAMPLE) {
    // Records of perf itself have no trailer.
    if (header.type >= kFirstUserRecord || reader.remaining() < trailer_bytes_) return 0;
    return TrailerTime(record.last(trailer_bytes_));
  }
  SkipFields(reader, static_cast<uint64_t>(
                         std::popcount(layout_.sample_type & (PERF_SAMPLE_IDENTIFIER |
                                                              PERF_SAMPLE_IP | PERF_SAMPLE_TID))));
  const auto time_ns = reader.Read<uint64_t>();
  return reader.ok() ? Here(time_ns) : 0;
}

bool RecordDecoder::ExplainsSamples(std::span<const std::byte> record) {
  ByteReader reader(record);
  const auto header = reader.Read<perf_event_header>();
  if (!reader.ok()) return false;
  switch (header.type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
      return true;
    default:
      return false;
  }
}

PerfRecord RecordDecoder::Decode(std::span<const std::byte> record) {
  ByteReader reader(record);
  const auto header = reader.Read<perf_event_header>();
  if (!reader.ok() || header.size != record.size()) return MalformedRecord{};
  if (header.type == PERF_RECORD_SAMPLE) return DecodeSample(reader, header.misc);
  switch (header.type) {
    case PERF_RECORD_MMAP:
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
  const uint64_t time_ns = TrailerTime(record.subspan(sizeof header + body_bytes));
  switch (header.type) {
    case PERF_RECORD_MMAP:
      return DecodePlainMapping(body, header.misc, time_ns);
    case PERF_RECORD_MMAP2:
      return DecodeMapping(body, header.misc, time_ns);
    case PERF_RECORD_COMM:
      return DecodeComm(body, header.misc, time_ns);
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
      return DecodeLost(body, header.misc, header.type == PERF_RECORD_LOST_SAMPLES, time_ns);
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
      return ThrottleRecord{header.type == PERF_RECORD_THROTTLE};
    default:
      return DecodeTask(body, header.type == PERF_RECORD_EXIT, time_ns);
  }
}

PerfRecord RecordDecoder::DecodeSample(ByteReader body, uint16_t misc) {
  if (!layout_.can_decode()) return MalformedRecord{};
  Sample sample;
  sample.kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
  sample.precise = (misc & PERF_RECORD_MISC_EXACT_IP) != 0;
  ReadFixedFields(body, &sample);
  SkipCounters(body);
  if (!ReadCallchain(body, &sample) || !SkipRaw(body) || !SkipBranches(body) ||
      !ReadRegisters(body, &sample) || !ReadStack(body, &sample) || !ReadAccess(body, &sample)) {
    return MalformedRecord{};
  }
  // Every field is accounted for by the layout: bytes left over mean that it is not the layout we think.
  if (!body.ok() || body.remaining() != 0) return MalformedRecord{};
  return sample;
}

// What is always as large, up to the period.
void RecordDecoder::ReadFixedFields(ByteReader& body, Sample* sample) const {
  if (Has(PERF_SAMPLE_IDENTIFIER)) body.Skip(sizeof(uint64_t));
  if (Has(PERF_SAMPLE_IP)) sample->ip = body.Read<uint64_t>();
  if (Has(PERF_SAMPLE_TID)) {
    sample->pid = body.Read<int32_t>();
    sample->tid = body.Read<int32_t>();
  }
  if (Has(PERF_SAMPLE_TIME)) sample->time_ns = Here(body.Read<uint64_t>());
  if (Has(PERF_SAMPLE_ADDR)) sample->access.emplace().address = body.Read<uint64_t>();
  if (Has(PERF_SAMPLE_ID)) body.Skip(sizeof(uint64_t));
  if (Has(PERF_SAMPLE_STREAM_ID)) body.Skip(sizeof(uint64_t));
  if (Has(PERF_SAMPLE_CPU)) {
    sample->cpu = body.Read<uint32_t>();
    body.Skip(sizeof(uint32_t));
  }
  sample->period = Has(PERF_SAMPLE_PERIOD) ? body.Read<uint64_t>() : layout_.fixed_period;
}

// Source: perf_event_open(2) "struct read_format".
void RecordDecoder::SkipCounters(ByteReader& body) const {
  if (!Has(PERF_SAMPLE_READ)) return;
  const uint64_t format = layout_.read_format;
  const auto times = static_cast<uint64_t>(
      std::popcount(format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)));
  const auto each =
      1 + static_cast<uint64_t>(std::popcount(format & (PERF_FORMAT_ID | PERF_FORMAT_LOST)));
  const uint64_t count = (format & PERF_FORMAT_GROUP) != 0 ? body.Read<uint64_t>() : 1;
  SkipFields(body, times);
  SkipFields(body, std::min<uint64_t>(count, body.remaining()) * each);
}

bool RecordDecoder::ReadCallchain(ByteReader& body, Sample* sample) {
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
  sample->callchain = callchain_;
  sample->entry.chain = kernel_chain_;
  return true;
}

// The size counts what fills it up to a multiple of eight with its own four bytes.
bool RecordDecoder::SkipRaw(ByteReader& body) const {
  if (!Has(PERF_SAMPLE_RAW)) return true;
  const auto size = body.Read<uint32_t>();
  if (!body.ok() || size > body.remaining()) return false;
  body.Skip(size);
  return true;
}

bool RecordDecoder::SkipBranches(ByteReader& body) const {
  if (!Has(PERF_SAMPLE_BRANCH_STACK)) return true;
  constexpr uint64_t kFieldsOfBranch = 3;
  const auto count = body.Read<uint64_t>();
  if ((layout_.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX) != 0) body.Skip(sizeof(uint64_t));
  if (!body.ok() || count > body.remaining() / sizeof(uint64_t)) return false;
  SkipFields(body, count * kFieldsOfBranch);
  return body.ok();
}

bool RecordDecoder::ReadRegisters(ByteReader& body, Sample* sample) {
  registers_.clear();
  if (!Has(PERF_SAMPLE_REGS_USER)) return true;
  const auto abi = body.Read<uint64_t>();
  if (abi == PERF_SAMPLE_REGS_ABI_NONE) return body.ok();  // a kernel thread, or no user state
  const uint64_t mask = layout_.user_registers;
  for (int i = 0; i < std::popcount(mask); ++i) registers_.push_back(body.Read<uint64_t>());
  const bool known = abi == PERF_SAMPLE_REGS_ABI_64 || abi == PERF_SAMPLE_REGS_ABI_32;
  if (!body.ok() || !known) return false;
  if (sample->kernel && (mask & kUserIpMask) != 0)
    sample->entry.user_ip = registers_[IndexOf(kUserIpMask, mask)];
  RetainUserRegisters(abi == PERF_SAMPLE_REGS_ABI_64);
  sample->user.registers = registers_;
  return true;
}

// Those of kUserRegisterMask in its order, or none.
void RecordDecoder::RetainUserRegisters(bool wide) {
  const uint64_t mask = layout_.user_registers;
  if (!wide || (mask & kUserRegisterMask) != kUserRegisterMask) {
    registers_.clear();
    return;
  }
  size_t kept = 0;
  for (uint64_t rest = kUserRegisterMask; rest != 0; rest &= rest - 1) {
    registers_[kept++] = registers_[IndexOf(rest & -rest, mask)];
  }
  registers_.resize(kept);
}

bool RecordDecoder::ReadStack(ByteReader& body, Sample* sample) const {
  if (!Has(PERF_SAMPLE_STACK_USER)) return true;
  const auto size = body.Read<uint64_t>();
  if (!body.ok() || size > body.remaining()) return false;
  if (size == 0) return true;  // then there is no dyn_size either
  const std::span<const std::byte> bytes = body.ReadSpan(size);
  const auto used = body.Read<uint64_t>();
  if (!body.ok() || used > size) return false;
  sample->user.stack = bytes.first(used);
  return true;
}

// Latency, source and page of the access, and what stands between and after them.
bool RecordDecoder::ReadAccess(ByteReader& body, Sample* sample) const {
  constexpr uint64_t kOfAccess = PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT_TYPE | PERF_SAMPLE_DATA_SRC |
                                 PERF_SAMPLE_DATA_PAGE_SIZE;
  MemoryAccess access = sample->access.value_or(MemoryAccess{});
  if (Has(PERF_SAMPLE_WEIGHT_STRUCT)) {
    access.latency_cycles = body.Read<uint32_t>();
    access.instruction_latency = body.Read<uint16_t>();
    body.Skip(sizeof(uint16_t));
  } else if (Has(PERF_SAMPLE_WEIGHT)) {
    access.latency_cycles = body.Read<uint64_t>();
  }
  if (Has(PERF_SAMPLE_DATA_SRC)) access.source = DecodeSource(body.Read<uint64_t>());
  if (Has(PERF_SAMPLE_TRANSACTION)) body.Skip(sizeof(uint64_t));
  if (Has(PERF_SAMPLE_REGS_INTR)) SkipRegisters(body, layout_.interrupt_registers);
  if (Has(PERF_SAMPLE_PHYS_ADDR)) body.Skip(sizeof(uint64_t));
  if (Has(PERF_SAMPLE_CGROUP)) body.Skip(sizeof(uint64_t));
  if (Has(PERF_SAMPLE_DATA_PAGE_SIZE)) access.page_bytes = body.Read<uint64_t>();
  if (Has(PERF_SAMPLE_CODE_PAGE_SIZE)) body.Skip(sizeof(uint64_t));
  if (Has(PERF_SAMPLE_AUX)) {
    const auto size = body.Read<uint64_t>();
    if (!body.ok() || size > body.remaining()) return false;
    body.Skip(size);
  }
  if ((layout_.sample_type & kOfAccess) != 0) sample->access = access;
  return true;
}

}  // namespace perfd
