// agent/variant/copy.h - a relocated, perhaps changed copy of a loop: the bytes of one variant.
//
// Shape    MakeCopy is pure. The copy's header keeps its offset within 64 bytes; where every change has the length of what it
//          replaces, so do all instructions (`same_layout`). Execution starts at `entry`.
// Units    run-time addresses; offsets into the thread block (thread_block.h).
// Errors   FailedPrecondition names instruction and reason; OutOfRange: exits or operands farther than 2 GiB;
//          InvalidArgument: the name asks for what the loop has not (a group), or parts that do not go together;
//          Unimplemented: an instruction has no encodable form of that kind.
// Source   design, section 7; Bendifallah 2015, 4.2 (variants), 4.3 (encodings), 6 (side effects and remedies).
#ifndef AGENT_VARIANT_COPY_H_
#define AGENT_VARIANT_COPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/variant/loop_code.h"
#include "core/model/loop_measurement.h"
#include "core/model/variant_name.h"

namespace perfd::agent {

enum class Exits {
  kOriginalText,  // exits continue in the loop's own function: live copies
  kStub,          // exits jump to exit_stub: shadow copies
};

struct CopyTarget {
  uint64_t address = 0;  // the copy is placed at the first fitting address at or above
  Exits exits = Exits::kOriginalText;
  uint64_t exit_stub = 0;
  // Of a batch: u64 that counts as kBlockInstancesLeft does, for copies that run in the rank, where GS is the program's. 0: the block.
  uint64_t counter = 0;
};

struct AddressPair {
  uint64_t original = 0;
  uint64_t copy = 0;

  bool operator==(const AddressPair&) const = default;
};

struct Changed {
  uint64_t address = 0;  // of the original instruction
  std::string original;
  std::string changed;  // "deleted", or the new instructions
};

// One memory access of the loop; its place in CodeCopy::references is its TraceRecord. Same order in every copy.
struct Reference {
  uint64_t instruction = 0;  // original address
  bool reads = false;
  bool writes = false;
  int32_t bytes = 0;
  int32_t group = -1;
  bool traced = true;  // false: TRACE cannot tell its addresses (string operation)
};

// Before the copy runs, the u64 at `word` of the thread block must be (linear address of the block) + value.
struct SelfPointer {
  uint32_t word = 0;
  int64_t value = 0;
};

// Where else it may be entered.
struct CopyPlaces {
  std::vector<uint64_t> shifts;  // the same code stands again so many bytes above (moved.h)
  uint64_t turn = 0;             // of a batch: where it counts the next instance; 0: none
};

struct CodeCopy {
  uint64_t address = 0;  // of bytes[0]
  uint64_t entry =
      0;  // where to jump to instead of the header; not always the header's copy (DL1 of pointer chases)
  std::vector<uint8_t> bytes;
  // Every instruction boundary, sorted by copy; a jump that only leaves the copy pairs with where it goes.
  // Code that only the copy has (counting, tracing, preparing) is not in it.
  std::vector<AddressPair> address_map;
  std::vector<Changed>
      changed;  // empty: nothing of what the name takes away is there, or all of it is black-listed
  std::vector<Reference> references;
  EditCounts edits;
  bool flush_denormals = false;  // to be run with FTZ and DAZ set in MXCSR
  bool same_layout = false;  // every instruction at the offset from the header that it has in REF
  std::vector<SelfPointer> self_pointers;
  AccessPairs pairs;
  VariantName base;  // REF, REF_FTZ or REF_CTL: what its time is compared with
  CopyPlaces places;
};

absl::StatusOr<CodeCopy> MakeCopy(const LoopCode& loop, const VariantName& name,
                                  const CopyTarget& target);

// The copy tells what the loop does, by counting or tracing; it is not timed.
bool Counts(const VariantName& name);

// It is the loop itself, and its time would tell nothing: the name prices something that this loop does not do. What verdicts
// compare (LS, FP, DL1, CTRL) answers also where it takes nothing away, and bases are meant to be the loop.
bool IsIdle(const VariantName& name, const CodeCopy& copy);

// Largest size a copy of this loop can have, preparation, exits and alignment included.
uint64_t CopyBound(const LoopCode& loop, const VariantName& name);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_COPY_H_
