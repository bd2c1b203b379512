#include "core/model/memory/memory_report.h"

#include "core/model/memory/sum.h"

namespace perfd {

void MemoryLost::Merge(const MemoryLost& other) {
  accesses = Sum(accesses, other.accesses);
  without_place = Sum(without_place, other.without_place);
  without_instruction = Sum(without_instruction, other.without_instruction);
  without_rank = Sum(without_rank, other.without_rank);
}

}  // namespace perfd
