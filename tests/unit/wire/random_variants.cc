// Measurements by variants.
#include "tests/unit/wire/random_model.h"

namespace perfd {

Ratio RandomModel::RatioOfTimes() {
  const double value = Ratio();
  if (Below(4) == 0) return {value, 0, 0};  // without an interval
  return {value, value / 2, value * 2};
}

VariantFigures RandomModel::Figures() {
  VariantFigures figures;
  figures.variant = Text();
  figures.base = Text();
  figures.thread = Coin() ? kTeam : Positive();
  figures.saturation = RatioOfTimes();
  figures.cycles = Ratio() * 1e9;
  figures.cycles_min = Ratio() * 1e9;
  figures.iterations = Ratio() * 1e6;
  figures.stability = Ratio();
  figures.valid_runs = static_cast<uint32_t>(Positive());
  figures.invalid_runs = static_cast<uint32_t>(Positive());
  figures.shadows = static_cast<uint32_t>(Positive());
  figures.edits.changed = Positive();
  figures.edits.pinned = static_cast<int32_t>(Below(5));
  figures.edits.accesses = figures.edits.pinned + static_cast<int32_t>(Below(5));
  figures.edits.kept = static_cast<int32_t>(Below(9));
  figures.edits.unchained = Coin();
  figures.edits.cuts_memory_chain = Coin();
  return figures;
}

InjectionCost RandomModel::Cost() {
  const auto ns = [this] { return static_cast<int64_t>(Big()); };
  return {Big(), ns(), ns(), Big(), Big(), ns(), ns(), ns(), ns(), Big(), ns(), ns()};
}

PredictedCost RandomModel::Predicted() {
  const auto ns = [this] { return static_cast<int64_t>(Big()); };
  return {ns(), ns(), ns()};
}

VariantListing RandomModel::Listing() {
  VariantListing listing{Text(), {}};
  for (uint64_t n = Below(4); n > 0; --n) listing.lines.push_back({random_(), Text(), Text()});
  return listing;
}

MeasuredRanks RandomModel::Ranks() {
  return {static_cast<uint32_t>(Positive()), static_cast<uint32_t>(Positive())};
}

Fidelity RandomModel::FidelityOfTimes() {
  const auto ratio = RatioOfTimes();
  return {ratio.value,
          ratio.low,
          ratio.high,
          random_(),
          static_cast<uint32_t>(Positive()),
          static_cast<uint32_t>(Positive()),
          Enum(CachesBefore::kCold),
          Enum(FidelityReason::kSharedLines)};
}

TripClass RandomModel::Trips() {
  TripClass trips;
  trips.shortest = Big() >> 1;
  trips.longest = trips.shortest + Below(1000);
  trips.instances = static_cast<uint32_t>(Positive());
  for (uint64_t n = Below(3); n > 0; --n) trips.figures.push_back(Figures());
  return trips;
}

LoopMeasurement RandomModel::Measurement() {
  LoopMeasurement loop;
  loop.profile_id = Text();
  loop.node = Text();
  loop.pid = Positive();
  loop.rank = Positive();
  loop.loop_id = "l" + Text();
  loop.location_key = Text();
  loop.revision = random_();
  loop.state = Enum(MeasureState::kNeverEntered);
  loop.reason = Text();
  loop.team = Positive();
  loop.fidelity = FidelityOfTimes();
  loop.protocol = Text();
  loop.instances = random_();
  loop.trips.instances = Below(3);
  if (loop.trips.instances > 0) {
    for (double& value : loop.trips.decile) value = Ratio() * 1000;
  }
  for (uint64_t n = Below(4); n > 0; --n) {
    loop.trip_classes.push_back(Trips());
    loop.figures.push_back(Figures());
    loop.refusals.push_back({Text(), random_(), Text(), Big() >> 20, RefusalKind::kMachineChanged});
    loop.open.push_back(Text());
    loop.excluded_paths.push_back(Text());
    loop.references.push_back({random_(), Coin(), Coin(), Coin() ? -1 : Positive(), Positive(),
                               random_(), random_(), Coin()});
    loop.listings.push_back(Listing());
  }
  loop.cost = Cost();
  if (Coin()) loop.predicted = Predicted();
  loop.provenance = Enum(Provenance::kEstimated);
  return loop;
}

AuditEntry RandomModel::Audit() {
  return {static_cast<int64_t>(Big()),
          Text(),
          {Text(), Text()},
          Text(),
          Positive(),
          Text(),
          Text(),
          random_(),
          Hex(),
          Hex(),
          static_cast<int64_t>(Big()),
          Text()};
}

LoopVerdict RandomModel::Verdict() {
  LoopVerdict loop;
  loop.loop_id = Text();
  loop.location_key = Text();
  loop.state = Enum(MeasureState::kNeverEntered);
  loop.bound = Enum(Bound::kWithinL1);
  loop.sure = Coin();
  loop.why = Enum(Silence::kMemoryChain);
  loop.trips.rank = Text();
  loop.level = Enum(DataLevel::kBeyondL2);
  loop.agreement = Text();
  loop.share = Ratio();
  loop.slowest_share = Ratio();
  loop.slowest_rank = Text();
  loop.ranks_measured = static_cast<uint32_t>(Positive());
  loop.ranks_total = static_cast<uint32_t>(Positive());
  for (uint64_t n = Below(3); n > 0; --n) {
    loop.variants.push_back({Text(),
                             Text(),
                             RatioOfTimes(),
                             Ratio(),
                             Ratio(),
                             Text(),
                             Text(),
                             Ranks(),
                             Big(),
                             Big(),
                             Big(),
                             Ratio() * 1e6,
                             {Positive(), 3, 1, 2}});
    loop.gains.push_back({Text(), Text(), RatioOfTimes(), Ranks()});
    loop.remarks.push_back(Text());
    loop.refusals.push_back({Text(), random_(), Text(), Below(1000), RefusalKind::kMachineChanged});
    loop.open.push_back(Text());
    loop.listings.push_back(Listing());
    loop.trips.classes.push_back(Trips());
    loop.trips.verdicts.push_back({Enum(Bound::kWithinL1), Coin(), Enum(Silence::kMemoryChain)});
    loop.ranks.push_back(
        {Enum(Bound::kWithinL1), Text(), Enum(Silence::kMemoryChain), Measurement()});
  }
  loop.fidelity = FidelityOfTimes();
  loop.protocol = Text();
  loop.cost = Cost();
  if (Coin()) loop.predicted = Predicted();
  loop.ranks_left_out = random_();
  return loop;
}

MeasureOrder RandomModel::Order() {
  MeasureOrder order;
  order.profile_id = "p" + Text();
  for (uint64_t n = Below(4); n > 0; --n) {
    order.loops.push_back({Text(), Text(), Text(), Text(), random_(), random_()});
    order.variants.push_back(Text());
  }
  order.repetitions = 1 + static_cast<int32_t>(Below(1000));
  order.budget = {Ratio() / 2, Positive(), Positive()};
  order.dry_run = Coin();
  order.recovery = Coin();
  if (Coin())
    order.lease = {Positive() + 2'000'000,
                   1'000'000,
                   1 + static_cast<int32_t>(Below(9)),
                   {Positive(), Positive(), Positive()}};
  order.revision = Coin() ? random_() : 0;
  return order;
}

}  // namespace perfd
