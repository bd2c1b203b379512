#include "agent/variant/counting.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/variant/encode.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/gs_code.h"
#include "agent/variant/thread_block.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint32_t kSavedRax = kBlockScratch;
constexpr uint32_t kSavedFlags = kBlockScratch + 8;

// lahf; seto %al; keep them. RAX must be saved.
void SaveFlags(GsCode* code) {
  code->Raw({0x9f, 0x0f, 0x90, 0xc0}).Store(kRax, kSavedFlags);
}

// add $0x7f, %al sets OF exactly when AL is 1; sahf brings back the other five.
void RestoreFlags(GsCode* code) {
  code->Load(kRax, kSavedFlags).Raw({0x04, 0x7f, 0x9e});
}

Piece LeaveWhenAboveOrEqual(const CopyTarget& target) {
  Piece piece;
  piece.jump = Jump::kConditional;
  piece.condition = 0x3;  // jae
  piece.outside = true;
  piece.to = target.exit_stub;
  return piece;
}

// movq $value, gs:kBlockExcludedPath; no flag changes.
void StoreExcludedPath(uint32_t value, GsCode* code) {
  code->Raw({0x65, 0x48, 0xc7, 0x04, 0x25}).Word(kBlockExcludedPath).Word(value);
}

std::vector<Piece> LeaveByExcludedPath(const CopyTarget& target) {
  GsCode note;
  StoreExcludedPath(1, &note);
  Piece leave;
  leave.jump = Jump::kAlways;
  leave.outside = true;
  leave.to = target.exit_stub;
  return {PieceOf(note.Release()), leave};
}

constexpr uint32_t kSavedRcx = kBlockScratch + 16;

// path = 3 * path + mark, without touching a flag.
Piece MarkPath(uint32_t mark) {
  GsCode code;
  code.Store(kRcx, kSavedRcx).Load(kRcx, kBlockPath);
  code.Raw({0x48, 0x8d, 0x8c, 0x49}).Word(mark);  // lea mark(%rcx,%rcx,2), %rcx
  code.Store(kRcx, kBlockPath).Load(kRcx, kSavedRcx);
  return PieceOf(code.Release());
}

// One more in the word, without touching a flag.
Piece CountInnerPass() {
  GsCode code;
  code.Store(kRcx, kSavedRcx).Load(kRcx, kBlockInnerPasses);
  code.Raw({0x48, 0x8d, 0x49, 0x01});  // lea 1(%rcx), %rcx
  code.Store(kRcx, kBlockInnerPasses).Load(kRcx, kSavedRcx);
  return PieceOf(code.Release());
}

// Where the way through the loop may part or meet.
std::vector<bool> BlockHeads(const LoopCode& loop) {
  std::vector<bool> heads(loop.instructions.size());
  for (uint32_t at = 0; at < loop.next.size(); ++at) {
    const bool parts = loop.instructions[at].flow == LoopFlow::kBranch;
    for (const uint32_t to : loop.next[at]) heads[to] = heads[to] || parts || to != at + 1;
  }
  return heads;
}

constexpr uint8_t kMoveBytes = 9;  // of a move between a register and gs:[offset]

// Updates the record at `record` with the address in RCX; RAX and flags are free.
void Record(uint32_t record, GsCode* code) {
  code->Compare(kRcx, record).Raw({0x73, kMoveBytes}).Store(kRcx, record);          // jae
  code->Compare(kRcx, record + 8).Raw({0x76, kMoveBytes}).Store(kRcx, record + 8);  // jbe
  code->Load(kRax, record + 24);
  code->Raw({0x48, 0x85, 0xc0, 0x75, kMoveBytes}).Store(kRcx, record + 16);  // test; jne
  code->Raw({0x48, 0xff, 0xc0}).Store(kRax, record + 24);                    // inc
  code->Raw({0x65, 0x48, 0x01, 0x0c, 0x25}).Word(record + 32);               // addq %rcx, gs:sum
}

static_assert(sizeof(TraceRecord) == 40);

// The address goes through RCX before RAX is touched: the operand may use both.
absl::Status TraceAccess(const LoopInstruction& i, uint32_t record, std::vector<Piece>* before) {
  GsCode head;
  head.Store(kRcx, kSavedRcx);
  ASSIGN_OR_RETURN(Encoded lea, EncodeLea(i, kRcx));
  Piece address;
  address.code = std::move(lea);
  GsCode tail;
  tail.Store(kRax, kSavedRax);
  SaveFlags(&tail);
  // FS base: the word at fs:0 holds its own address. Source: System V ABI AMD64, 3.4.6 (thread control block).
  if (i.memory->thread_local_segment)
    tail.Raw({0x64, 0x48, 0x03, 0x0c, 0x25, 0x00, 0x00, 0x00, 0x00});  // add %fs:0, %rcx
  Record(record, &tail);
  RestoreFlags(&tail);
  tail.Load(kRax, kSavedRax).Load(kRcx, kSavedRcx);
  before->push_back(PieceOf(head.Release()));
  before->push_back(std::move(address));
  before->push_back(PieceOf(tail.Release()));
  return absl::OkStatus();
}

// Bytes of one index. The last but one letter pair of the mnemonic tells: vgatherDps, vpscatterQq.
int IndexBytes(const LoopInstruction& i) {
  const size_t stem = i.mnemonic.find(i.Is(kGathers) ? "gather" : "scatter");
  const size_t letter = stem + (i.Is(kGathers) ? 6 : 7);
  return stem != std::string::npos && letter < i.mnemonic.size() && i.mnemonic[letter] == 'q' ? 8
                                                                                              : 4;
}

// RCX = base + index * scale + displacement of one lane; RAX is free, saved copies hold what the program had.
void LaneAddress(const MemoryOperand& m, int index_bytes, int lane, GsCode* code) {
  const uint32_t target = kBlockIndices + static_cast<uint32_t>(lane * index_bytes);
  if (index_bytes == 8) code->Load(kRcx, target);
  if (index_bytes == 4) code->LoadSigned32(kRcx, target);
  // lea displacement(,%rcx,scale), %rcx
  const int scale = m.scale == 8 ? 3 : m.scale == 4 ? 2 : m.scale == 2 ? 1 : 0;
  code->Raw({0x48, 0x8d, 0x0c, static_cast<uint8_t>(scale << 6 | 0x0d)});
  code->Word(static_cast<uint32_t>(m.displacement));
  if (m.base == kRax) code->Add(kRcx, kSavedRax);
  if (m.base == kRcx) code->Add(kRcx, kSavedRcx);
  if (m.base > kRcx) {  // add %base, %rcx
    code->Raw({static_cast<uint8_t>(m.base < 8 ? 0x48 : 0x4c), 0x01,
               static_cast<uint8_t>(0xc1 | (m.base & 7) << 3)});
  }
  if (m.thread_local_segment)
    code->Raw({0x64, 0x48, 0x03, 0x0c, 0x25, 0x00, 0x00, 0x00, 0x00});  // add %fs:0, %rcx
}

// Jumps over the next `bytes` when the lane is masked off.
void SkipMaskedLane(const LoopInstruction& i, int lane, uint8_t bytes, GsCode* code) {
  if (i.mask > 0) {
    code->Load(kRax, kBlockLaneMask);
    code->Raw({0x48, 0x0f, 0xba, 0xe0, static_cast<uint8_t>(lane), 0x73, bytes});  // bt; jnc
    return;
  }
  // cmpl $0, gs:sign word; jge
  const auto end = static_cast<uint32_t>((lane + 1) * i.memory->bytes);
  code->Raw({0x65, 0x83, 0x3c, 0x25}).Word(kBlockLaneMask + end - 4).Raw({0x00, 0x7d, bytes});
}

absl::Status SpillVectors(const LoopInstruction& i, std::vector<Piece>* before) {
  const MemoryOperand& m = *i.memory;
  Piece indices;
  ASSIGN_OR_RETURN(indices.code, EncodeSpill(i, m.index, m.index_bytes, kBlockIndices));
  before->push_back(std::move(indices));
  if (m.lane_mask == kNoRegister) return absl::OkStatus();
  Piece mask;
  ASSIGN_OR_RETURN(mask.code, EncodeSpill(i, m.lane_mask, m.data_bytes, kBlockLaneMask));
  before->push_back(std::move(mask));
  return absl::OkStatus();
}

absl::Status TraceVector(const LoopInstruction& i, uint32_t record, std::vector<Piece>* before) {
  const MemoryOperand& m = *i.memory;
  const int index_bytes = IndexBytes(i);
  const int lanes = std::min(m.index_bytes / index_bytes, m.data_bytes / std::max<int>(1, m.bytes));
  RETURN_IF_ERROR(SpillVectors(i, before));
  GsCode code;
  code.Store(kRcx, kSavedRcx).Store(kRax, kSavedRax);
  SaveFlags(&code);
  if (i.mask > 0) {  // kmovw %mask, %eax
    code.Raw({0xc5, 0xf8, 0x93, static_cast<uint8_t>(0xc0 | i.mask)}).Store(kRax, kBlockLaneMask);
  }
  for (int lane = 0; lane < lanes; ++lane) {
    GsCode one;
    LaneAddress(m, index_bytes, lane, &one);
    Record(record, &one);
    const std::vector<uint8_t> bytes = one.Release();
    SkipMaskedLane(i, lane, static_cast<uint8_t>(bytes.size()), &code);
    code.Append(bytes);
  }
  RestoreFlags(&code);
  code.Load(kRax, kSavedRax).Load(kRcx, kSavedRcx);
  before->push_back(PieceOf(code.Release()));
  return absl::OkStatus();
}

// A changed instruction that still reads or writes where it did.
bool AccessesAsBefore(const LoopInstruction& i, const Slot& slot) {
  if (!slot.replacement) return true;
  const std::vector<LoopInstruction>& now = slot.replacement->effects;
  return i.memory && std::any_of(now.begin(), now.end(), [&](const LoopInstruction& n) {
           const bool named = i.memory->base == kInstructionPointer;
           return n.Accesses() && n.memory->base == i.memory->base &&
                  n.memory->index == i.memory->index && n.memory->scale == i.memory->scale &&
                  (named || n.memory->displacement == i.memory->displacement) &&
                  n.memory->vector_index == i.memory->vector_index &&
                  n.memory->thread_local_segment == i.memory->thread_local_segment;
         });
}

// Index and data are known, and the mask, where there is one, is one that can be read.
bool CanTrace(const LoopInstruction& i) {
  if (i.Is(kStringOp)) return false;
  if (!i.memory->vector_index) return true;
  return i.Is(kGathers | kScatters) && (i.mask > 0 || i.memory->lane_mask != kNoRegister);
}

}  // namespace

namespace {

// Another turn than at the last pass: je over the two; incq gs:kBlockInstancesEntered. RAX and flags are free.
void CountEntered(GsCode* code) {
  code->Load(kRax, kBlockInstancesLeft).Compare(kRax, kBlockInstanceSeen);
  code->Raw({0x74, 2 * kMoveBytes}).Store(kRax, kBlockInstanceSeen);
  code->Raw({0x65, 0x48, 0xff, 0x04, 0x25}).Word(kBlockInstancesEntered);
}

}  // namespace

void AddCounting(const LoopCode& loop, const CopyTarget& target, bool batch, Draft* draft) {
  const bool flags = (loop.live.at_entry & kStatusFlags) != 0;
  std::vector<Piece> pieces;
  GsCode head;
  head.Store(kRax, kSavedRax);
  if (flags) SaveFlags(&head);
  head.Load(kRax, kBlockIterations);
  if (target.exits == Exits::kStub) {
    head.Compare(kRax, kBlockIterationLimit);
    pieces.push_back(PieceOf(head.Release()));
    pieces.push_back(LeaveWhenAboveOrEqual(target));
  } else {
    pieces.push_back(PieceOf(head.Release()));
  }
  GsCode tail;
  const bool cut = !loop.excluded.ranges.empty() || !loop.leaves.exits.empty();
  if (target.exits == Exits::kStub && cut) {
    StoreExcludedPath(0, &tail);
    draft->excluded_path = LeaveByExcludedPath(target);
  }
  tail.Raw({0x48, 0xff, 0xc0}).Store(kRax, kBlockIterations);  // inc %rax
  if (batch) CountEntered(&tail);
  if (flags) RestoreFlags(&tail);
  tail.Load(kRax, kSavedRax);
  pieces.push_back(PieceOf(tail.Release()));
  std::vector<Piece>& before = draft->slots[loop.entry].before;
  before.insert(before.begin(), pieces.begin(), pieces.end());
  for (const InnerLoop& inner : loop.inner) {
    std::vector<Piece>& header = draft->slots[inner.header].before;
    header.insert(header.begin(), CountInnerPass());
  }
}

// decq gs:kBlockInstancesLeft; js
void CountInstances(uint32_t at, uint64_t original, const CopyTarget& target, Draft* draft) {
  Piece count;
  if (target.counter != 0) {
    count.code = {{0x48, 0xff, 0x0d, 0, 0, 0, 0}, 3, target.counter};  // decq counter(%rip)
  } else {
    GsCode in_block;
    in_block.Raw({0x65, 0x48, 0xff, 0x0c, 0x25}).Word(kBlockInstancesLeft);
    count = PieceOf(in_block.Release());
  }
  Piece leave;
  leave.jump = Jump::kConditional;
  leave.condition = 0x8;
  leave.outside = true;
  leave.to = target.exits == Exits::kStub ? target.exit_stub : original;
  std::vector<Piece>& before = draft->slots[at].before;
  before.insert(before.begin(), {count, leave});
}

std::vector<Reference> References(const LoopCode& loop) {
  std::vector<Reference> references;
  for (size_t i = 0; i < loop.instructions.size(); ++i) {
    const LoopInstruction& instruction = loop.instructions[i];
    if (!instruction.Accesses() && !instruction.Is(kStringOp)) continue;
    Reference r;
    r.instruction = instruction.address;
    const bool hidden = instruction.Is(kStringOp);
    r.traced = CanTrace(instruction);
    r.reads = hidden || instruction.memory->reads;
    r.writes = hidden || instruction.memory->writes;
    r.bytes = hidden ? 0 : instruction.memory->bytes;
    r.group = loop.roles[i].group;
    references.push_back(r);
  }
  return references;
}

std::vector<Reference> References(const LoopCode& loop, const Draft& draft) {
  std::vector<Reference> references = References(loop);
  for (Reference& reference : references) {
    const auto at = static_cast<size_t>(InstructionAt(loop, reference.instruction));
    reference.traced = reference.traced && AccessesAsBefore(loop.instructions[at], draft.slots[at]);
  }
  return references;
}

absl::Status AddTracing(const LoopCode& loop, Draft* draft) {
  const std::vector<Reference> references = References(loop, *draft);
  if (references.size() > kTraceCount) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the loop has ", references.size(), " memory accesses, TRACE holds ", kTraceCount));
  }
  for (uint32_t n = 0; n < references.size(); ++n) {
    if (!references[n].traced) continue;
    const auto at = static_cast<size_t>(InstructionAt(loop, references[n].instruction));
    const auto record = static_cast<uint32_t>(kBlockTrace + n * sizeof(TraceRecord));
    const LoopInstruction& i = loop.instructions[at];
    std::vector<Piece>* before = &draft->slots[at].before;
    RETURN_IF_ERROR(i.memory->vector_index ? TraceVector(i, record, before)
                                           : TraceAccess(i, record, before));
  }
  const std::vector<bool> heads = BlockHeads(loop);
  for (uint32_t at = 0; at < heads.size(); ++at) {
    std::vector<Piece>& before = draft->slots[at].before;
    if (heads[at]) before.insert(before.begin(), MarkPath(at + 1));
  }
  return absl::OkStatus();
}

}  // namespace perfd::agent
