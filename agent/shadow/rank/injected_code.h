// agent/shadow/rank/injected_code.h - what of ours is in a rank, or is about to be: code caches, patch sites, the journal's view of both.
//
// Units    run-time addresses, bytes.
#ifndef AGENT_SHADOW_RANK_INJECTED_CODE_H_
#define AGENT_SHADOW_RANK_INJECTED_CODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/attach/hold_request.h"
#include "agent/shadow/cache_builder.h"
#include "agent/shadow/gaps.h"
#include "agent/shadow/injection.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

// One loop, refused ones too: their numbers are those of InstalledLoop.
struct PatchSite {
  bool accepted() const { return index >= 0 && built.installed.status.ok(); }
  // Of the Site in the region; accepted ones only.
  uint32_t number() const { return static_cast<uint32_t>(index); }

  BuiltLoop built;
  std::string loop_id;
  uint64_t empty_copy = 0;
  int32_t index = -1;  // of the Site; -1: the loop was refused
  TextIdentity text;
  std::vector<CodeRange> body;
  std::vector<ExpectBytesOp> code;  // as it was decoded
  bool patched = false;
  bool released = false;              // it will not be patched again
  std::optional<int32_t> blocked_by;  // refused for the code that it shares with this one
  uint64_t charged_timeouts = 0;      // gatherings that did not complete and were charged
  uint64_t charged_cpu_us = 0;        // of its shadows
};

struct CodeCache {
  Reach reach;
  uint64_t address = 0;
  uint64_t bound = 0;
  int32_t places = 1;  // of a copy with branches
  std::vector<uint8_t> bytes;
};

// Where the loops that are put in together begin, among those that were there.
struct FirstNew {
  size_t site = 0;
  size_t cache = 0;
};

struct InjectedCode {
  Injection injection;  // as the journal has it
  std::vector<PatchSite> sites;
  std::vector<CodeCache> caches;
  bool installed = false;  // something of this may be in the rank
  bool uninstall_tried = false;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RANK_INJECTED_CODE_H_
