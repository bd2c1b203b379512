#include "agent/variant/flow/nest.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/variant/flow/edges.h"

namespace perfd::agent {
namespace {

using Graph = std::vector<std::vector<uint32_t>>;

// Places in the forward order; instructions that are never reached have none.
std::vector<size_t> Places(const LoopCode& loop, const std::vector<uint32_t>& order) {
  std::vector<size_t> places(loop.next.size(), SIZE_MAX);
  for (size_t n = 0; n < order.size(); ++n) places[order[n]] = n;
  return places;
}

// All from where `ends` are reached without the header. Edges to the loop's own header begin another pass.
std::vector<bool> BodyOf(const LoopCode& loop, const Graph& previous, uint32_t header,
                         std::vector<uint32_t> ends) {
  std::vector<bool> in(loop.next.size());
  in[header] = true;
  while (!ends.empty()) {
    const uint32_t at = ends.back();
    ends.pop_back();
    if (in[at]) continue;
    in[at] = true;
    if (at == loop.entry) continue;
    for (const uint32_t before : previous[at]) ends.push_back(before);
  }
  return in;
}

}  // namespace

std::vector<InnerLoop> InnerLoops(const LoopCode& loop) {
  const std::vector<uint32_t> order = ForwardOrder(loop);
  const std::vector<size_t> places = Places(loop, order);
  Graph previous(loop.next.size());
  for (const uint32_t from : order)
    for (const uint32_t to : loop.next[from]) previous[to].push_back(from);
  std::vector<InnerLoop> inner;
  for (const uint32_t header : order) {
    if (header == loop.entry) continue;
    std::vector<uint32_t> ends;
    for (const uint32_t from : previous[header])
      if (places[from] >= places[header]) ends.push_back(from);
    if (ends.empty()) continue;
    inner.push_back({header, BodyOf(loop, previous, header, std::move(ends))});
  }
  return inner;
}

absl::Status CheckNest(const LoopCode& loop) {
  if (loop.inner.size() > static_cast<size_t>(kMaxInnerLoops))
    return absl::FailedPreconditionError(absl::StrCat("it holds ", loop.inner.size(),
                                                      " loops; at most ", kMaxInnerLoops,
                                                      " are copied with the one around them"));
  for (const InnerLoop& inner : loop.inner) {
    if (inner.in[loop.entry])
      return Refuse(loop.instructions[inner.header],
                    "heads an inner loop that is entered elsewhere as well");
  }
  return absl::OkStatus();
}

}  // namespace perfd::agent
