// tests/unit/wire/random_model.h - random valid values of every type that crosses the wire.
//
// Shape    RandomModel random(seed); random.Window(); the same seed gives the same values.
#ifndef TESTS_UNIT_WIRE_RANDOM_MODEL_H_
#define TESTS_UNIT_WIRE_RANDOM_MODEL_H_

#include <random>
#include <string>
#include <vector>

#include "core/model/measure_order.h"
#include "core/model/module.h"
#include "core/model/profile.h"
#include "core/model/report.h"
#include "core/model/stack.h"
#include "core/model/window.h"

namespace perfd {

class RandomModel {
 public:
  explicit RandomModel(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool Coin() { return Below(2) == 0; }
  std::string Text();
  double Ratio() { return static_cast<double>(Below(1001)) / 1000; }

  ProfileSpec Spec();
  Requester Who() { return {static_cast<uint32_t>(random_()), Text(), Coin()}; }
  Notice News();
  ProfileStatus Status();
  RankInfo Rank();
  SourceRange Source() { return {Text(), Positive(), Positive()}; }
  std::vector<CodeRange> Parts(uint64_t low);
  LoopFacts Loop();
  CodeLocation Location();
  SamplingSetup Setup();
  Accounting Counts();
  OverheadFigures Overhead();
  SampledAccess Access();
  MemoryRow AccessesOf(uint32_t location);
  MemoryFigures Accesses();
  MemoryReport MemoryOfJob();
  Window OneWindow();
  ReportRow Row();
  Report OneReport();
  ModuleFacts Module();
  CodeFacts Code();
  std::vector<CodeMapping> Mappings();
  StackCopy Stack();
  CallPath Path();
  ::perfd::Ratio RatioOfTimes();
  std::string Hex() { return Coin() ? "0f1f4000" : ""; }
  VariantFigures Figures();
  TripClass Trips();
  MeasuredRanks Ranks();
  Fidelity FidelityOfTimes();
  InjectionCost Cost();
  PredictedCost Predicted();
  VariantListing Listing();
  LoopMeasurement Measurement();
  AuditEntry Audit();
  LoopVerdict Verdict();
  MeasureOrder Order();

 private:
  int32_t Positive() { return static_cast<int32_t>(Below(1u << 20)); }
  uint64_t Big() { return Below(uint64_t{1} << 50); }
  template <typename E>
  E Enum(E last) {
    return static_cast<E>(Below(static_cast<uint64_t>(last) + 1));
  }

  std::mt19937_64 random_;
};

}  // namespace perfd

#endif  // TESTS_UNIT_WIRE_RANDOM_MODEL_H_
