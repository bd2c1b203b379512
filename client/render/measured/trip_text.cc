#include "client/render/measured/trip_text.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/render/saturation_text.h"
#include "client/render/text_table.h"
#include "core/analysis/trip_classes.h"

namespace perfd::client {
namespace {

bool IsShown(const VariantFigures& figures) {
  return figures.variant != figures.base && figures.thread == kTeam;
}

// In the order of the catalogue, as every class lists them; some classes may lack some.
std::vector<std::string> VariantsOf(const std::vector<TripClass>& classes) {
  std::vector<std::string> variants;
  std::set<std::string> known;
  for (const TripClass& trips : classes) {
    for (const VariantFigures& figures : trips.figures) {
      if (IsShown(figures) && known.insert(figures.variant).second)
        variants.push_back(figures.variant);
    }
  }
  return variants;
}

std::string SaturationOf(const TripClass& trips, const std::string& variant,
                         const TextStyle& style) {
  for (const VariantFigures& figures : trips.figures) {
    if (figures.variant == variant && IsShown(figures) && figures.valid_runs > 0)
      return SaturationText(ShownRatio(figures), style);
  }
  return "-";
}

std::string RangeText(const TripClass& trips) {
  if (trips.shortest == trips.longest) return absl::StrCat(trips.shortest);
  return absl::StrCat(trips.shortest, "-", trips.longest);
}

}  // namespace

std::string RenderTripClasses(const std::vector<TripClass>& classes,
                              const std::vector<ClassVerdict>& verdicts, const TextStyle& style) {
  if (classes.empty()) return "";
  const std::vector<std::string> variants = VariantsOf(classes);
  std::vector<TextTable::Column> columns = {
      {"TRIPS", true}, {"INSTANCES", true}, {"TIME", true}, {"VERDICT"}};
  for (const std::string& variant : variants) columns.push_back({variant, true});
  TextTable table(columns);
  const std::vector<double> times = TimeOfClasses(classes);
  for (size_t i = 0; i < classes.size(); ++i) {
    const ClassVerdict verdict = i < verdicts.size() ? verdicts[i] : ClassVerdict{};
    std::vector<std::string> cells = {RangeText(classes[i]), absl::StrCat(classes[i].instances),
                                      Percent(times[i]),
                                      BoundText(verdict.bound, verdict.sure, verdict.why)};
    for (const std::string& variant : variants)
      cells.push_back(SaturationOf(classes[i], variant, style));
    table.Add(std::move(cells));
  }
  return table.Render();
}

}  // namespace perfd::client
