#include "agent/variant/edit_set.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/work.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

bool Untouchable(const LoopInstruction& i) {
  return i.Is(kX87 | kStringOp | kNopTrait) || i.flow != LoopFlow::kPlain;
}

absl::Status CheckName(const LoopCode& loop, const VariantName& name) {
  for (const VariantPart& part : name.parts) {
    const bool known =
        part.change != Change::kGroup || (part.parameter >= 0 && part.parameter < loop.groups);
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat(name.Text(), ": the loop has ", loop.groups, " groups of accesses"));
    }
  }
  return absl::OkStatus();
}

bool DeletesArithmetic(const LoopCode& loop, const VariantName& name, size_t n) {
  const LoopInstruction& i = loop.instructions[n];
  return (name.Has(Change::kLs) && i.Is(kArithmetic)) ||
         (name.Has(Change::kNoDiv) && i.Is(kDivides)) ||
         (name.Has(Change::kNoSqrt) && i.Is(kSquareRoots)) ||
         (name.Has(Change::kNoRed) && loop.roles[n].reduction);
}

bool InDeletedGroup(const LoopCode& loop, const VariantName& name, size_t n) {
  return std::any_of(name.parts.begin(), name.parts.end(), [&loop, n](const VariantPart& part) {
    return part.change == Change::kGroup && part.parameter == loop.roles[n].group;
  });
}

bool DeletesAccess(const LoopCode& loop, const VariantName& name, size_t n) {
  const LoopInstruction& i = loop.instructions[n];
  if (name.Has(Change::kFp) && (i.Accesses() || i.Is(kPrefetches))) return true;
  if (!i.Accesses()) return false;
  const bool only_stores = i.memory->writes && !i.memory->reads;
  return InDeletedGroup(loop, name, n) || (name.Has(Change::kNoStore) && only_stores);
}

bool LoadsOnly(const LoopCode& loop, const VariantName& name, size_t n) {
  const LoopInstruction& i = loop.instructions[n];
  if (!i.Accesses() || !i.memory->writes) return false;
  return name.Has(Change::kS2l) || (name.Has(Change::kNoStore) && i.memory->reads);
}

bool IsWork(const LoopInstruction& i) {
  return i.Accesses() || i.Is(kArithmetic | kVectorOp | kPrefetches | kDivides);
}

// CTRL keeps what decides branches, and what x87 instructions, which are never touched, take as addresses.
void KeepControlOnly(const LoopCode& loop, EditSet* edits) {
  const bool x87 = std::any_of(loop.instructions.begin(), loop.instructions.end(),
                               [](const LoopInstruction& i) { return i.Is(kX87); });
  for (size_t n = 0; n < loop.instructions.size(); ++n) {
    const LoopInstruction& i = loop.instructions[n];
    const bool kept = loop.roles[n].control || (x87 && loop.roles[n].address);
    if (IsWork(i) && !kept && !Untouchable(i)) edits->all[n] = true;
  }
}

}  // namespace

bool IsOfItsClass(const LoopCode& loop, const VariantName& name, size_t n) {
  return DeletesArithmetic(loop, name, n) || DeletesAccess(loop, name, n) ||
         LoadsOnly(loop, name, n) || (name.Has(Change::kCtrl) && IsWork(loop.instructions[n]));
}

absl::StatusOr<EditSet> MakeEditSet(const LoopCode& loop, const VariantName& name) {
  RETURN_IF_ERROR(CheckName(loop, name));
  const size_t count = loop.instructions.size();
  const std::vector<bool> none(count);
  EditSet edits{none, none, none, none, name.Has(Change::kDl1)};
  for (size_t n = 0; n < count; ++n) {
    if (loop.roles[n].fixed() || Untouchable(loop.instructions[n])) continue;
    edits.arithmetic[n] = DeletesArithmetic(loop, name, n);
    edits.access[n] = DeletesAccess(loop, name, n);
    edits.load_only[n] = LoadsOnly(loop, name, n);
  }
  if (name.Has(Change::kCtrl)) KeepControlOnly(loop, &edits);
  return edits;
}

std::vector<bool> TakenLoads(const LoopCode& loop, const EditSet& edits) {
  std::vector<bool> taken(loop.instructions.size());
  for (size_t n = 0; n < taken.size(); ++n) {
    const LoopInstruction& i = loop.instructions[n];
    const bool pinned = edits.pin && !loop.roles[n].control && !Untouchable(i);
    taken[n] = i.Accesses() && i.memory->reads && (edits.access[n] || edits.all[n] || pinned);
  }
  return taken;
}

std::vector<bool> ControlledOperations(const LoopCode& loop) {
  std::vector<bool> loads(loop.instructions.size());
  for (size_t n = 0; n < loads.size(); ++n) {
    const LoopInstruction& i = loop.instructions[n];
    loads[n] = i.Accesses() && i.memory->reads && !loop.roles[n].fixed() && !Untouchable(i);
  }
  std::vector<bool> operations = DivisionsFedBy(loop, loads);
  for (size_t n = 0; n < loads.size(); ++n) {
    const LoopInstruction& i = loop.instructions[n];
    operations[n] = operations[n] && i.Is(kFloating) && !loop.roles[n].fixed();
  }
  return operations;
}

}  // namespace perfd::agent
