#include "agent/attach/hold_codec.h"

#include <cstddef>
#include <span>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/base/byte_reader.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

class Writer {
 public:
  template <typename T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    const size_t at = out_.size();
    out_.resize(at + sizeof(T));
    std::memcpy(out_.data() + at, &value, sizeof(T));
  }
  void Count(size_t count) { Number(static_cast<uint32_t>(count)); }
  template <typename Bytes>
  void Block(const Bytes& bytes) {
    Count(bytes.size());
    out_.append(bytes.begin(), bytes.end());
  }
  std::string Release() { return std::move(out_); }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(absl::string_view bytes)
      : reader_(std::as_bytes(std::span<const char>(bytes.data(), bytes.size()))) {}

  template <typename T>
  void Number(T& value) {
    value = reader_.Read<T>();
  }
  void Flag(bool& value) { value = reader_.Read<uint8_t>() != 0; }
  // How many elements of at least `element_bytes` follow; 0 and not ok when they cannot.
  size_t Count(size_t element_bytes) {
    const auto count = reader_.Read<uint32_t>();
    if (count <= reader_.remaining() / element_bytes) return count;
    Fail();
    return 0;
  }
  void Block(std::vector<uint8_t>& bytes) {
    const auto span = reader_.ReadSpan(Count(1));
    bytes.resize(span.size());
    if (!span.empty()) std::memcpy(bytes.data(), span.data(), span.size());
  }
  std::string Text() {
    std::vector<uint8_t> bytes;
    Block(bytes);
    return std::string(bytes.begin(), bytes.end());
  }
  void Fail() { failed_ = true; }
  bool Complete() const { return !failed_ && reader_.ok() && reader_.remaining() == 0; }
  bool ok() const { return !failed_ && reader_.ok(); }

 private:
  ByteReader reader_;
  bool failed_ = false;
};

// No pid there ever was: an older tracer does not take it for one, an older agent's pid is not taken for it.
constexpr uint32_t kHoldFormat = 0x68640004;
constexpr size_t kPairBytes = 16;
constexpr size_t kMoveBytes = 24;
constexpr size_t kGiveBackBytes = 32;
constexpr size_t kThreadBytes = 45;  // with an empty list of CPUs

// One overload of Encode and Get per type; the order of the members is the format.
void Encode(Writer& w, const OpValue& v) {
  w.Number(v.number);
  w.Number(v.from_op);
}
void Get(Reader& r, OpValue& v) {
  r.Number(v.number);
  r.Number(v.from_op);
}
void Encode(Writer& w, const PcRange& v) {
  w.Number(v.start);
  w.Number(v.end);
}
void Get(Reader& r, PcRange& v) {
  r.Number(v.start);
  r.Number(v.end);
}
void Encode(Writer& w, const std::vector<PcRange>& list) {
  w.Count(list.size());
  for (const PcRange& range : list) Encode(w, range);
}
void Get(Reader& r, std::vector<PcRange>& list) {
  list.resize(r.Count(kPairBytes));
  for (PcRange& range : list) Get(r, range);
}

void Encode(Writer& w, const Admission& v) {
  w.Number(v.start_ticks);
  w.Number(v.stack_start);
  w.Number(v.executable_device);
  w.Number(v.executable_inode);
  w.Number(v.user_namespace);
  w.Number(v.namespace_owner.has_value());
  w.Number(v.namespace_owner.value_or(0));
  for (const uint32_t uid : v.rights.uids) w.Number(uid);
  for (const uint32_t gid : v.rights.gids) w.Number(gid);
  w.Number(v.rights.capabilities);
  w.Number(v.dumpable);
}
void Get(Reader& r, Admission& v) {
  r.Number(v.start_ticks);
  r.Number(v.stack_start);
  r.Number(v.executable_device);
  r.Number(v.executable_inode);
  r.Number(v.user_namespace);
  bool has_owner = false;
  uint32_t owner = 0;
  r.Flag(has_owner);
  r.Number(owner);
  if (has_owner) v.namespace_owner = owner;
  for (uint32_t& uid : v.rights.uids) r.Number(uid);
  for (uint32_t& gid : v.rights.gids) r.Number(gid);
  r.Number(v.rights.capabilities);
  r.Flag(v.dumpable);
}

void Encode(Writer& w, const CallOp& op) {
  w.Number(op.call);
  for (const OpValue& argument : op.arguments) Encode(w, argument);
  w.Number(op.expect);
  w.Number(op.expected);
}
void Get(Reader& r, CallOp& op) {
  r.Number(op.call);
  for (OpValue& argument : op.arguments) Get(r, argument);
  r.Number(op.expect);
  if (op.expect > CallOp::Expect::kEqual) r.Fail();
  r.Number(op.expected);
}

void Encode(Writer& w, const WriteOp& op) {
  Encode(w, op.address);
  w.Block(op.bytes);
  w.Number(op.indivisible);
}
void Get(Reader& r, WriteOp& op) {
  Get(r, op.address);
  r.Block(op.bytes);
  r.Flag(op.indivisible);
}

void Encode(Writer& w, const ExpectBytesOp& op) {
  Encode(w, op.address);
  w.Block(op.bytes);
}
void Get(Reader& r, ExpectBytesOp& op) {
  Get(r, op.address);
  r.Block(op.bytes);
}

void Encode(Writer& w, const ReadOp& op) {
  Encode(w, op.address);
  w.Number(op.size);
}
void Get(Reader& r, ReadOp& op) {
  Get(r, op.address);
  r.Number(op.size);
}

void Encode(Writer& w, const MoveThreadsOp& op) {
  w.Count(op.pairs.size());
  for (const auto& [from, to] : op.pairs) Encode(w, PcRange{from, to});
  w.Count(op.ranges.size());
  for (const MoveThreadsOp::Range& range : op.ranges) {
    Encode(w, range.from);
    w.Number(range.to);
  }
  Encode(w, op.pairs_only);
}
void Get(Reader& r, MoveThreadsOp& op) {
  op.pairs.resize(r.Count(kPairBytes));
  for (auto& [from, to] : op.pairs) {
    r.Number(from);
    r.Number(to);
  }
  op.ranges.resize(r.Count(kMoveBytes));
  for (MoveThreadsOp::Range& range : op.ranges) {
    Get(r, range.from);
    r.Number(range.to);
  }
  Get(r, op.pairs_only);
}

void Encode(Writer& w, const RequireOutsideOp& op) {
  Encode(w, op.ranges);
}
void Get(Reader& r, RequireOutsideOp& op) {
  Get(r, op.ranges);
}
void Encode(Writer& w, const ScanStacksOp& op) {
  Encode(w, op.range);
}
void Get(Reader& r, ScanStacksOp& op) {
  Get(r, op.range);
}
void Encode(Writer&, const RequireOwnStacksOp&) {}
void Get(Reader&, RequireOwnStacksOp&) {}
void Encode(Writer&, const ReadThreadsOp&) {}
void Get(Reader&, ReadThreadsOp&) {}

void Encode(Writer& w, const GiveBackOp& op) {
  w.Count(op.entries.size());
  for (const GiveBackOp::Entry& entry : op.entries) {
    w.Number(entry.gs_base);
    w.Number(entry.own_gs_base);
    w.Number(entry.mask);
    w.Number(entry.own_mask);
  }
  w.Number(op.either);
  w.Number(op.loose);
  Encode(w, op.ranges);
}
void Get(Reader& r, GiveBackOp& op) {
  op.entries.resize(r.Count(kGiveBackBytes));
  for (GiveBackOp::Entry& entry : op.entries) {
    r.Number(entry.gs_base);
    r.Number(entry.own_gs_base);
    r.Number(entry.mask);
    r.Number(entry.own_mask);
  }
  r.Number(op.either);
  r.Number(op.loose);
  Get(r, op.ranges);
}

template <typename Op>
HoldOp GetOp(Reader& r) {
  Op op;
  Get(r, op);
  return op;
}

// The number of an op is its place in the variant.
template <size_t... kIndex>
HoldOp GetAnyOp(Reader& r, size_t kind, std::index_sequence<kIndex...>) {
  using Getter = HoldOp (*)(Reader&);
  constexpr std::array<Getter, sizeof...(kIndex)> kGetters = {
      GetOp<std::variant_alternative_t<kIndex, HoldOp>>...};
  if (kind < kGetters.size()) return kGetters[kind](r);
  r.Fail();
  return ReadThreadsOp{};
}

void Encode(Writer& w, const ThreadFacts& thread) {
  w.Number(thread.tid);
  w.Number(thread.pc);
  w.Number(thread.stack_pointer);
  w.Number(thread.fs_base);
  w.Number(thread.gs_base);
  w.Number(thread.xsave_bytes);
  w.Number(thread.in_call);
  w.Count(thread.cpus.size());
  for (const uint64_t word : thread.cpus) w.Number(word);
}
void Get(Reader& r, ThreadFacts& thread) {
  r.Number(thread.tid);
  r.Number(thread.pc);
  r.Number(thread.stack_pointer);
  r.Number(thread.fs_base);
  r.Number(thread.gs_base);
  r.Number(thread.xsave_bytes);
  r.Flag(thread.in_call);
  thread.cpus.resize(r.Count(sizeof(uint64_t)));
  for (uint64_t& word : thread.cpus) r.Number(word);
}

void Encode(Writer& w, const OpResult& result) {
  w.Number(result.value);
  w.Block(result.bytes);
  w.Count(result.threads.size());
  for (const ThreadFacts& thread : result.threads) Encode(w, thread);
}
void Get(Reader& r, OpResult& result) {
  r.Number(result.value);
  r.Block(result.bytes);
  result.threads.resize(r.Count(kThreadBytes));
  for (ThreadFacts& thread : result.threads) Get(r, thread);
}

absl::Status CheckValue(const OpValue& value, size_t at) {
  const bool absolute = value.from_op == kNoOp;
  if (absolute || (value.from_op >= 0 && static_cast<size_t>(value.from_op) < at))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("hold request: op ", at, " refers to op ", value.from_op));
}

absl::Status CheckReferences(const HoldOp& op, size_t at) {
  if (const auto* call = std::get_if<CallOp>(&op))
    for (const OpValue& argument : call->arguments) RETURN_IF_ERROR(CheckValue(argument, at));
  if (const auto* write = std::get_if<WriteOp>(&op)) return CheckValue(write->address, at);
  if (const auto* expect = std::get_if<ExpectBytesOp>(&op)) return CheckValue(expect->address, at);
  if (const auto* read = std::get_if<ReadOp>(&op)) return CheckValue(read->address, at);
  return absl::OkStatus();
}

}  // namespace

std::string EncodeRequest(const HoldRequest& request) {
  Writer w;
  w.Number(kHoldFormat);
  w.Number(request.pid);
  w.Number(request.start_ticks);
  w.Number(request.max_stop_ns);
  w.Number(request.admitted.has_value());
  if (request.admitted.has_value()) Encode(w, *request.admitted);
  w.Count(request.ops.size());
  for (const HoldOp& op : request.ops) {
    w.Number(static_cast<uint8_t>(op.index()));
    std::visit([&w](const auto& alternative) { Encode(w, alternative); }, op);
  }
  return w.Release();
}

absl::StatusOr<HoldRequest> DecodeRequest(absl::string_view bytes) {
  Reader r(bytes);
  HoldRequest request;
  uint32_t format = 0;
  r.Number(format);
  if (r.ok() && format != kHoldFormat)
    return absl::InvalidArgumentError("hold request: of another version of perf-agent; restart it");
  r.Number(request.pid);
  r.Number(request.start_ticks);
  r.Number(request.max_stop_ns);
  bool admitted = false;
  r.Flag(admitted);
  if (admitted) Get(r, request.admitted.emplace());
  const size_t count = r.Count(1);
  if (count > kMaxHoldOps || request.pid <= 0 || request.max_stop_ns <= 0 ||
      request.max_stop_ns > kMaxStopNs)
    return absl::InvalidArgumentError("hold request: pid, stop time or number of ops out of range");
  for (size_t i = 0; i < count && r.ok(); ++i) {
    uint8_t kind = 0;
    r.Number(kind);
    request.ops.push_back(
        GetAnyOp(r, kind, std::make_index_sequence<std::variant_size_v<HoldOp>>()));
    RETURN_IF_ERROR(CheckReferences(request.ops.back(), i));
  }
  if (!r.Complete()) return absl::InvalidArgumentError("hold request: malformed");
  return request;
}

std::string EncodeReply(const HoldReply& reply) {
  Writer w;
  w.Number(static_cast<int32_t>(reply.status.code()));
  w.Block(reply.status.message());
  w.Number(reply.threads);
  w.Number(reply.repaired);
  w.Number(reply.stop_ns);
  w.Number(reply.tracer_ends);
  w.Number(reply.call_lost);
  w.Count(reply.results.size());
  for (const OpResult& result : reply.results) Encode(w, result);
  return w.Release();
}

absl::StatusOr<HoldReply> DecodeReply(absl::string_view bytes) {
  constexpr size_t kResultBytes = 16;
  Reader r(bytes);
  HoldReply reply;
  int32_t code = 0;
  r.Number(code);
  const std::string message = r.Text();
  r.Number(reply.threads);
  r.Number(reply.repaired);
  r.Number(reply.stop_ns);
  r.Flag(reply.tracer_ends);
  r.Flag(reply.call_lost);
  reply.results.resize(r.Count(kResultBytes));
  for (OpResult& result : reply.results) Get(r, result);
  const auto highest = static_cast<int32_t>(absl::StatusCode::kUnauthenticated);
  if (!r.Complete() || code < 0 || code > highest || reply.results.size() > kMaxHoldOps)
    return absl::InvalidArgumentError("hold reply: malformed");
  reply.status = absl::Status(static_cast<absl::StatusCode>(code), message);
  return reply;
}

}  // namespace perfd::agent
