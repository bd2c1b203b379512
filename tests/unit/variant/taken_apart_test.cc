// Copies whose roles rest on accesses being apart. Oracle: the loop as it runs natively - the exit it takes, its index and
// counter - against copies that are wrong wherever a store was taken for apart that was not.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "tests/unit/variant/generated_run.h"

namespace perfd::agent {
namespace {

constexpr int kLoops = 10'000;

struct Traces {
  std::vector<TraceRecord> records;
  uint64_t passes = 0;
  uint64_t path = 0;
};

class TakenApartTest : public GeneratedRun {
 protected:
  Traces Trace(const CodeCopy& copy, uint64_t limit = kNoLimit) {
    Traces traces;
    traces.passes = RunCopy(copy, limit).passes;
    traces.path = arena_.At<uint64_t>(arena_.block() + kBlockPath);
    const auto* records = &arena_.At<TraceRecord>(arena_.block() + kBlockTrace);
    traces.records.assign(records, records + copy.references.size());
    return traces;
  }

  // As shadows hold them against each other: accesses that the copy has kept, passes, and the way through the blocks.
  static bool Agree(const Traces& loop, const CodeCopy& copy, const Traces& variant) {
    for (size_t n = 0; n < copy.references.size(); ++n) {
      if (copy.references[n].traced &&
          TraceDigest(loop.records[n]) != TraceDigest(variant.records[n]))
        return false;
    }
    return loop.passes == variant.passes && loop.path == variant.path;
  }

  // Whether what was seen shows that no pair touches the same bytes.
  static bool ShownApart(const CodeCopy& copy, const std::vector<Reference>& references,
                         const Traces& loop) {
    const auto at = [&](uint64_t instruction) {
      return static_cast<size_t>(
          std::find_if(references.begin(), references.end(),
                       [&](const Reference& r) { return r.instruction == instruction; }) -
          references.begin());
    };
    return std::all_of(
        copy.pairs.taken_apart.begin(), copy.pairs.taken_apart.end(), [&](const AccessPair& pair) {
          const size_t s = at(pair.store), l = at(pair.load);
          const TraceRecord &store = loop.records[s], &load = loop.records[l];
          if (store.count == 0 || load.count == 0) return false;
          const auto bytes = [&](size_t n) { return static_cast<uint64_t>(references[n].bytes); };
          return store.highest + bytes(s) <= load.lowest || load.highest + bytes(l) <= store.lowest;
        });
  }
};

TEST_F(TakenApartTest, EveryWrongAssumptionIsCaughtByTheTracedRun) {
  std::map<std::string, int> count;
  for (int n = 0; n < kLoops; ++n) {
    ASSERT_NO_FATAL_FAILURE(
        Next(n % 4 == 0 ? Floats::kVex : Floats::kNone, n % 3 == 0 ? Nest::kLoops : Nest::kNone));
    const std::optional<LoopCode> apart = TakeApart(code_);
    if (!apart) continue;
    ++count["loops"];
    const auto trace = StubCopy(SingleVariant(Change::kTrace));
    ASSERT_TRUE(trace.ok()) << trace.status();
    const Traces loop = Trace(*trace);
    const auto plain = Copy(SingleVariant(Change::kCount));
    ASSERT_TRUE(plain.ok());
    const Outcome original = RunCopy(*plain);
    for (const Change change : {Change::kLs, Change::kFp, Change::kDl1, Change::kCtrl}) {
      const VariantName traced{{{Change::kTrace}, {change}}};
      const auto check = MakeCopy(*apart, traced, {arena_.copy(), Exits::kStub, loop_.stub});
      if (!check.ok()) continue;
      // A copy that is wrong may run for ever: as shadows do, it leaves soon.
      const Traces variant = Trace(*check, 4 * original.passes + 16);
      const bool agrees = Agree(loop, *check, variant);
      const bool shown = ShownApart(*check, trace->references, loop);
      ++count[agrees ? "agree" : "differ"];
      if (shown) {
        ++count["shown"];
        EXPECT_TRUE(agrees) << ChangeName(change) << " of loop " << n;
      }
      if (!agrees) continue;
      const auto copy =
          MakeCopy(*apart, SingleVariant(change), {arena_.copy(), Exits::kOriginalText, 0});
      ASSERT_TRUE(copy.ok()) << copy.status();
      EXPECT_TRUE(RunCopy(*copy).SamePath(original)) << ChangeName(change) << " of loop " << n;
    }
  }
  for (const auto& [what, number] : count) RecordProperty(what, number);
  EXPECT_GT(count["loops"], kLoops / 20);
  EXPECT_GT(count["agree"], 1000);
  EXPECT_GT(count["differ"], 100) << "nothing was wrong: the test shows nothing";
  EXPECT_GT(count["shown"], 100);
}

TEST_F(TakenApartTest, ADigestDiffersWhereverARecordDoes) {
  const TraceRecord record{100, 200, 100, 3, 450};
  for (uint64_t TraceRecord::*part :
       {&TraceRecord::lowest, &TraceRecord::highest, &TraceRecord::first, &TraceRecord::count,
        &TraceRecord::sum}) {
    TraceRecord other = record;
    other.*part += 8;
    EXPECT_NE(TraceDigest(other), TraceDigest(record));
  }
  EXPECT_NE(TraceDigest({100, 200, 100, 3, 450}), TraceDigest({200, 100, 100, 3, 450}));
}

}  // namespace
}  // namespace perfd::agent
