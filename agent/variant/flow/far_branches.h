// agent/variant/flow/far_branches.h - direct branches anywhere in a module's text that lead into a few bytes of it.
//
// Shape    looks at every byte as the possible start of a branch, so nothing that decodes is missed, whatever the alignment;
//          what is found may be data by chance (4 targets among 2^32 for a near branch), which costs a refusal only.
// Units    run-time addresses.
// Threads  pure.
// Source   Intel SDM vol. 2: JMP E9/EB, Jcc 0F 80-8F / 70-7F, LOOPcc and JCXZ E0-E3, CALL E8.
#ifndef AGENT_VARIANT_FLOW_FAR_BRANCHES_H_
#define AGENT_VARIANT_FLOW_FAR_BRANCHES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "agent/variant/loop_code.h"

namespace perfd::agent {

// Longest encoding looked for: chunks of a longer text must overlap by one less.
inline constexpr uint64_t kLongestBranch = 6;

// Addresses in `text` (which begins at `address`), outside of `skip`, of branches to an address within `target`.
std::vector<uint64_t> BranchesInto(std::span<const uint8_t> text, uint64_t address,
                                   const CodeRange& target, std::span<const CodeRange> skip);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_FLOW_FAR_BRANCHES_H_
