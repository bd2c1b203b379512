#include "agent/experiment/plan/listing.h"

#include <algorithm>
#include <map>
#include <set>

namespace perfd::agent {
namespace {

VariantListing MakeListing(const InstalledLoop& loop, const CodeCopy& copy, std::string variant,
                           LoadBias bias) {
  std::map<uint64_t, std::string> changed;
  for (const Changed& change : copy.changed) changed[change.address] = change.changed;
  VariantListing listing;
  listing.variant = std::move(variant);
  for (const auto& [address, text] : loop.texts) {
    if (listing.lines.size() == kMaxListedLines) break;
    ListingLine line{
        .address = (RuntimeAddress(address) - bias).value(), .original = text, .changed = ""};
    if (const auto it = changed.find(address); it != changed.end()) line.changed = it->second;
    listing.lines.push_back(std::move(line));
  }
  return listing;
}

}  // namespace

std::vector<VariantListing> MakeListings(const InstalledLoop& loop,
                                         const std::vector<VariantFigures>& figures,
                                         LoadBias bias) {
  std::set<std::string> measured;
  for (const VariantFigures& figure : figures) measured.insert(figure.variant);
  std::vector<VariantListing> listings;
  for (size_t i = 0; i < loop.names.size() && listings.size() < kMaxListings; ++i) {
    const std::string name = loop.names[i].Text();
    if (measured.contains(name)) listings.push_back(MakeListing(loop, loop.copies[i], name, bias));
  }
  return listings;
}

std::vector<std::string> OpenVariants(const std::vector<std::string>& asked,
                                      const LoopMeasurement& loop) {
  std::vector<std::string> open;
  for (const std::string& name : asked) {
    const bool measured =
        std::any_of(loop.figures.begin(), loop.figures.end(),
                    [&](const VariantFigures& f) { return f.variant == name && f.valid_runs > 0; });
    const bool refused =
        std::any_of(loop.refusals.begin(), loop.refusals.end(),
                    [&](const Refusal& refusal) { return refusal.variant == name; });
    if (!measured && !refused) open.push_back(name);
  }
  return open;
}

}  // namespace perfd::agent
