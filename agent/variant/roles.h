// agent/variant/roles.h - what each instruction of a loop is for: control, addresses, reductions.
//
// Shape    slices run backwards through registers, flags and memory. A load in a slice brings in every store that may write
//          what it reads; floating-point results never reach integer loads (types do not alias). Where AliasingOf(loop) excludes it,
//          only those that code or untraceable addresses force, and the pairs left out are named.
// Source   Bendifallah 2015, 3.4, 4.1 (CTRL, RED) and digest 3.2-3.4; C17 6.5 paragraph 7 (aliasing of types).
#ifndef AGENT_VARIANT_ROLES_H_
#define AGENT_VARIANT_ROLES_H_

#include <cstdint>
#include <vector>

#include "agent/variant/flow/dataflow.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

// Fills control, address, reduction and taken_apart; groups must be assigned.
void AssignRoles(LoopCode* loop);

// Everything the values read by `seeds` are made of, the seeds included; and what that rests on.
struct Slice {
  std::vector<bool> in;
  std::vector<AccessPair> taken_apart;
};
// Whether one of the instructions `changed` may lie on a chain of dependences on which a value that an access gives comes back to an
// address, or through memory to an access.
bool CutsChain(const LoopCode& loop, const std::vector<bool>& changed);

// Stores and loads of one address in each pass, which need not be another in the next one, where what is loaded goes into what is stored
// and something of this is `changed`: the chain that may go from pass to pass is cut. Sorted.
std::vector<AccessPair> MemoryChainsCut(const LoopCode& loop, const std::vector<bool>& changed);

Slice BackwardSlice(const LoopCode& loop, const std::vector<uint32_t>& seeds);

// Sorted, each once.
void AddPairs(const std::vector<AccessPair>& from, std::vector<AccessPair>* to);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_ROLES_H_
