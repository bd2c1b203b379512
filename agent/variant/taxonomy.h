// agent/variant/taxonomy.h - what a mnemonic does, by the way Intel builds names.
//
// Source   Intel SDM vol. 1, 10.4, 11.4, 14 and 15 (instruction groups of SSE to AVX-512).
#ifndef AGENT_VARIANT_TAXONOMY_H_
#define AGENT_VARIANT_TAXONOMY_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace perfd::agent {

// Traits (instruction.h) of a vector instruction; `mnemonic` without the V of VEX and EVEX forms.
uint32_t VectorTraits(absl::string_view mnemonic);

// A legacy SSE form that keeps part of its destination although its operand list says "written".
bool MergesDestination(absl::string_view mnemonic, bool loads);

// An operation whose result does not depend on its source when both are the same register.
bool IsZeroIdiom(absl::string_view mnemonic);

// Why no copy may hold an instruction of this name; empty: it may.
absl::string_view MnemonicRefusal(absl::string_view mnemonic);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_TAXONOMY_H_
