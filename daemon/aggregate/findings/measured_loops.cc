#include "daemon/aggregate/findings/measured_loops.h"

#include <algorithm>

#include "core/wire/variant_wire.h"

namespace perfd::daemon {
namespace {

// A total order: revisions are never used twice, but nothing may depend on that.
bool Later(const LoopMeasurement& a, const LoopMeasurement& b) {
  if (a.revision != b.revision) return a.revision > b.revision;
  return a != b && wire::ToProto(a).SerializeAsString() > wire::ToProto(b).SerializeAsString();
}

bool Longer(const VariantListing& a, const VariantListing& b) {
  if (a.lines.size() != b.lines.size()) return a.lines.size() > b.lines.size();
  return std::lexicographical_compare(b.lines.begin(), b.lines.end(), a.lines.begin(),
                                      a.lines.end(),
                                      [](const ListingLine& x, const ListingLine& y) {
                                        return std::tie(x.address, x.original, x.changed) <
                                               std::tie(y.address, y.original, y.changed);
                                      });
}

size_t FiguresIn(const LoopMeasurement& loop) {
  size_t count = loop.figures.size();
  for (const TripClass& trips : loop.trip_classes) count += trips.figures.size();
  return count;
}

// Of memory, about.
size_t BytesIn(const LoopMeasurement& loop) {
  size_t bytes = sizeof(loop) + FiguresIn(loop) * sizeof(VariantFigures) +
                 3 * (loop.node.size() + loop.loop_id.size()) + loop.location_key.size() +
                 loop.reason.size() + loop.references.size() * sizeof(TracedReference);
  for (const Refusal& refusal : loop.refusals) bytes += sizeof(refusal) + refusal.reason.size();
  for (const std::string& open : loop.open) bytes += sizeof(std::string) + open.size();
  return bytes;
}

// What is told of parts: single threads, and instances by length.
void DropDetail(LoopMeasurement& loop) {
  loop.trip_classes.clear();
  loop.figures.erase(std::remove_if(loop.figures.begin(), loop.figures.end(),
                                    [](const VariantFigures& f) { return f.thread != kTeam; }),
                     loop.figures.end());
}

int64_t Sum(int64_t a, int64_t b) {
  return b >= kMostCost - std::min(a, kMostCost) ? kMostCost : a + b;
}

}  // namespace

size_t MeasuredLoops::Bytes() const {
  size_t bytes = 0;
  for (const auto& [key, loop] : loops_) bytes += BytesIn(loop);
  for (const auto& [key, listing] : listings_) {
    for (const ListingLine& line : listing.lines)
      bytes += sizeof(line) + line.original.size() + line.changed.size();
  }
  return bytes;
}

void MeasuredLoops::Add(LoopMeasurement loop) {
  if (limits_.frozen) loop.listings.clear();
  for (VariantListing& listing : loop.listings) AddListing(loop.loop_id, std::move(listing));
  loop.listings.clear();
  const auto at = loops_.find({loop.node, loop.pid, loop.loop_id});
  if (at != loops_.end() && !Later(loop, at->second)) return;
  const bool is_new = at == loops_.end();
  const bool is_full = is_new && loops_.size() >= limits_.loops;
  if (is_full || (limits_.frozen && (is_new || BytesIn(loop) > BytesIn(at->second)))) {
    ++lost_;
    return;
  }
  if (at != loops_.end()) figures_ -= FiguresIn(at->second);
  if (figures_ + FiguresIn(loop) > limits_.figures) {
    DropDetail(loop);
    ++lost_;
  }
  figures_ += FiguresIn(loop);
  Key key{loop.node, loop.pid, loop.loop_id};
  loops_.insert_or_assign(std::move(key), std::move(loop));
}

void MeasuredLoops::AddListing(const std::string& loop_id, VariantListing listing) {
  const auto at = listings_.find({loop_id, listing.variant});
  if (at == listings_.end()) {
    if (listings_.size() >= limits_.listings) {
      ++lost_;
      return;
    }
    std::string variant = listing.variant;
    listings_.emplace(std::pair(loop_id, std::move(variant)), std::move(listing));
  } else if (Longer(listing, at->second)) {
    at->second = std::move(listing);
  }
}

void MeasuredLoops::AddAudit(const AuditEntry& entry) {
  ++audited_;
  if (entry.pause_ns <= 0) return;
  // It is told at its end.
  const int64_t begin_ns = entry.unix_ns > entry.pause_ns ? entry.unix_ns - entry.pause_ns : 0;
  pauses_.Add(entry.node, begin_ns, entry.unix_ns);
  audited_ns_ = Sum(audited_ns_, entry.pause_ns);
}

void MeasuredLoops::AddLeased(const std::string& node, const std::vector<LeasedPause>& pauses,
                              uint64_t dropped) {
  for (const LeasedPause& pause : pauses) pauses_.AddLeased(node, pause);
  pauses_.AddLost(dropped);
}

void MeasuredLoops::Absorb(const MeasuredState& other) {
  for (const LoopMeasurement& loop : other.loops) Add(loop);
  for (const LoopListing& l : other.listings) AddListing(l.loop_id, l.listing);
  pauses_.Merge(other.pauses);
  audited_ns_ = Sum(audited_ns_, other.audited_ns);
  audited_ += other.audited;
  lost_ += other.lost;
}

MeasuredState MeasuredLoops::State() const {
  MeasuredState state;
  for (const auto& [key, loop] : loops_) state.loops.push_back(loop);
  for (const auto& [key, listing] : listings_) state.listings.push_back({key.first, listing});
  state.pauses = pauses_;
  state.audited_ns = audited_ns_;
  state.audited = audited_;
  state.lost = lost_;
  return state;
}

}  // namespace perfd::daemon
