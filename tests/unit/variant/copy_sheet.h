// tests/unit/variant/copy_sheet.h - many copies of loops, checked against what objdump reads, in one run of it.
//
// Shape    AddLoop makes every variant of a loop, with exits to the original text, and counted with exits to a stub, as shadows
//          have them. Check: every instruction of each copy is the one that was meant, every deleted one is NOPs of its
//          length, branches lead where they led, the map names boundaries, and what a variant takes away is gone.
// Errors   failures of the running test; Check ends after the first few wrong copies.
#ifndef TESTS_UNIT_VARIANT_COPY_SHEET_H_
#define TESTS_UNIT_VARIANT_COPY_SHEET_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "agent/variant/batch.h"
#include "agent/variant/copy.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

struct MadeCopy {
  const LoopCode* loop = nullptr;    // that is changed
  const BatchCode* batch = nullptr;  // whose copy it is; null: of the loop alone
  VariantName name;
  CopyTarget target;
  CodeCopy copy;
  std::string what;
};

class CopySheet {
 public:
  // The copies lie from here on, INT3 between them; nothing is run.
  explicit CopySheet(uint64_t address) : address_(address) {}

  void AddLoop(const LoopCode& loop, const std::string& what);
  // Every variant in chains, whose instances are counted.
  void AddBatch(const BatchCode& batch, const std::string& what);
  // `loop` must outlive the sheet.
  void Add(const LoopCode& loop, const VariantName& name, Exits exits, const std::string& what);
  void Check() const;

  const std::map<std::string, int>& made_by_name() const { return made_by_name_; }
  const std::map<std::string, int>& refused_by_name() const { return refused_by_name_; }
  size_t loops() const { return loops_.size(); }
  size_t batches() const { return batches_.size(); }

 private:
  CopyTarget Next(Exits exits) const;
  void Record(absl::StatusOr<CodeCopy> copy, MadeCopy made);

  const uint64_t address_;
  std::vector<uint8_t> bytes_;
  std::deque<LoopCode> loops_;
  std::deque<BatchCode> batches_;
  std::vector<MadeCopy> made_;
  std::map<std::string, int> made_by_name_, refused_by_name_;
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_VARIANT_COPY_SHEET_H_
