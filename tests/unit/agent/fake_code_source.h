// tests/unit/agent/fake_code_source.h - a module whose functions are a table.
#ifndef TESTS_UNIT_AGENT_FAKE_CODE_SOURCE_H_
#define TESTS_UNIT_AGENT_FAKE_CODE_SOURCE_H_

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "agent/pipeline/code_index.h"

namespace perfd::agent {

class FakeClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return now_ns.load(); }
  int64_t UnixNs() const override { return now_ns.load(); }
  std::atomic<int64_t> now_ns = 1;  // also read by the resolver's thread
};

// Loaded at file offset 0 = address 0x400000.
class FakeCodeSource final : public CodeSource {
 public:
  FakeCodeSource(std::vector<FunctionFacts> functions, int* lookups, std::string build_id = "abcd")
      : functions_(std::move(functions)), lookups_(lookups) {
    facts_.build_id = std::move(build_id);
    facts_.segments = {{0, 0x400000, 0x100000, true}};
  }
  void LeaveLinesUnread() { facts_.lines_unread = true; }
  void SetLinesProblem(LinesProblem problem) { facts_.lines_problem = problem; }
  void SetCodeHash(const std::string& hash) {
    facts_.build_id.clear();
    facts_.code_hash = hash;
  }
  void SetFile(const FileVersion& file, bool has_symbols) {
    facts_.file = file;
    facts_.has_symbols = has_symbols;
  }
  // All of its code is of this byte.
  static constexpr char kByte = '\x90';
  absl::StatusOr<bool> HasBytes(ElfAddress, absl::string_view bytes, absl::Duration) override {
    return bytes.find_first_not_of(kByte) == absl::string_view::npos;
  }
  const ModuleFacts& facts() const override { return facts_; }
  absl::StatusOr<CodeFacts> Lookup(const std::vector<ElfAddress>& addresses,
                                   absl::Duration) override {
    ++*lookups_;
    CodeFacts facts;
    for (ElfAddress address : addresses) {
      bool found = false;
      for (const FunctionFacts& function : functions_) {
        const std::vector<CodeRange> parts = PartsOf(function);
        if (std::none_of(parts.begin(), parts.end(), [address](const CodeRange& part) {
              return part.Contains(address.value());
            }))
          continue;
        facts.functions.push_back(function);
        found = true;
      }
      if (!found) facts.unresolved.push_back(address);
    }
    return facts;
  }

 private:
  ModuleFacts facts_;
  std::vector<FunctionFacts> functions_;
  int* lookups_;
};

inline FunctionFacts LoopyFunction() {
  FunctionFacts function;
  function.name = "kernel";
  function.low = 0x400100;
  function.high = 0x400200;
  LoopFacts outer, inner;
  outer.header = 0x400120;
  outer.innermost = false;
  inner.header = 0x400140;
  inner.parent_header = 0x400120;
  inner.depth = 2;
  inner.source = {"kernel.c", 10, 12};
  function.loops = {outer, inner};
  function.spans = {{0x400120, 0x400140, 0}, {0x400140, 0x400160, 1}, {0x400160, 0x400170, 0}};
  return function;
}

// The same 0x2000 further up, after which the file goes on.
inline FunctionFacts FarFunction() {
  constexpr uint64_t kFurther = 0x2000;
  FunctionFacts function = LoopyFunction();
  function.low += kFurther;
  function.high += kFurther;
  for (LoopFacts& loop : function.loops) loop.header += kFurther;
  for (LoopSpan& span : function.spans) {
    span.low += kFurther;
    span.high += kFurther;
  }
  return function;
}

}  // namespace perfd::agent

#endif  // TESTS_UNIT_AGENT_FAKE_CODE_SOURCE_H_
