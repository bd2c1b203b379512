#include "client/render/memory/memory_sections.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "client/render/text_table.h"
#include "core/analysis/memory/beyond_share.h"
#include "core/json/memory/memory_words.h"

namespace perfd::client {
namespace {

constexpr int kBarCells = 30;
constexpr uint64_t kOpenEnd = UINT64_MAX;

void AddLevels(const std::array<AccessCount, kMemoryLevels>& counts, const char* before,
               uint64_t all, const TextStyle& style, TextTable* table) {
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].samples == 0) continue;
    const double ratio = RatioOf(counts[i].weight, all);
    table->Add({absl::StrCat(before, LevelWords(static_cast<MemoryLevel>(i)).text),
                absl::StrCat(counts[i].samples), Percent(ratio), Bar(style, ratio, kBarCells)});
  }
}

std::string Levels(const MemoryProfile& profile, const TextStyle& style) {
  TextTable table({{"FOUND IN"}, {"SAMPLES", true}, {"SHARE", true}, {""}});
  AddLevels(profile.loads, "", profile.all.weight, style, &table);
  AddLevels(profile.missed, "not in ", profile.all.weight, style, &table);
  if (profile.stores.samples > 0) {
    const double ratio = RatioOf(profile.stores.weight, profile.all.weight);
    table.Add({"stores", absl::StrCat(profile.stores.samples), Percent(ratio),
               Bar(style, ratio, kBarCells)});
  }
  std::string out = table.Render();
  if (profile.kernel.samples > 0)
    absl::StrAppend(&out, "  ", profile.kernel.samples, " of ", profile.all.samples,
                    " samples are of the kernel\n");
  return out;
}

std::string Shares(const MemoryFigures& figures) {
  TextTable table({{"TIME OF LOADS"}, {"SHARE", true}, {"95 %", true}, {"SAMPLES", true}, {""}});
  for (size_t i = 0; i < kMemoryBorders; ++i) {
    const BeyondShare& share = figures.beyond[i];
    const char* what = BorderWords(static_cast<MemoryBorder>(i)).text;
    const std::string samples = absl::StrCat(share.samples);
    switch (share.why_not) {
      case NoShare::kNone:
        table.Add({what, Percent(share.share), Interval95(share.interval.low, share.interval.high),
                   samples, ""});
        break;
      case NoShare::kTooFew:
        table.Add(
            {what, "-", "", samples, absl::StrCat("too few: ", kFewestSamples, " tell something")});
        break;
      case NoShare::kNoLatency:
        table.Add({what, "-", "", samples,
                   absl::StrCat(share.without_latency,
                                " loads say where they were found, and not how long they took")});
        break;
      case NoShare::kNotTold:
        table.Add(
            {what, "-", "", samples,
             absl::StrCat("half of the time is of ", share.untold, " loads that do not tell")});
        break;
    }
  }
  return table.Render();
}

std::string Latencies(const LatencyHistogram& histogram, const TextStyle& style) {
  TextTable table({{"LATENCY (cycles)", true}, {"SAMPLES", true}, {"OF SAMPLES", true}, {""}});
  const uint64_t all = histogram.total();
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    if (histogram.at(i) == 0) continue;
    const double ratio = RatioOf(histogram.at(i), all);
    table.Add({LatencyText(LatencyHistogram::RangeOf(i)), absl::StrCat(histogram.at(i)), Percent(ratio),
               Bar(style, ratio, kBarCells)});
  }
  const LatencyRange most = histogram.Quantile(0.9);
  std::string out = table.Render();
  absl::StrAppend(&out, "  median ", LatencyText(histogram.Quantile(0.5)));
  if (most.high != kOpenEnd) absl::StrAppend(&out, ", 9 of 10 below ", most.high);
  return absl::StrCat(out, "\n");
}

std::string Tlb(const MemoryProfile& profile, const TextStyle& style) {
  TextTable table({{"DTLB"}, {"SAMPLES", true}, {"SHARE", true}, {""}});
  for (size_t i = 0; i < kTlbResults; ++i) {
    const AccessCount& count = profile.tlb[i];
    if (count.samples == 0) continue;
    const double ratio = RatioOf(count.weight, profile.all.weight);
    table.Add({TlbWords(static_cast<TlbResult>(i)).text, absl::StrCat(count.samples),
               Percent(ratio), Bar(style, ratio, kBarCells)});
  }
  return table.Render();
}

}  // namespace

std::string LatencyText(const LatencyRange& range) {
  if (range == LatencyRange{}) return "-";
  if (range.high == kOpenEnd) return absl::StrCat(range.low, " and more");
  return range.high == range.low + 1 ? absl::StrCat(range.low)
                                     : absl::StrCat(range.low, " to ", range.high - 1);
}

double RatioOf(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

std::string ShareText(const BeyondShare& share) {
  switch (share.why_not) {
    case NoShare::kNone:
      return absl::StrCat(Percent(share.share), " ",
                          Interval95(share.interval.low, share.interval.high));
    case NoShare::kTooFew:
      return "too few";
    case NoShare::kNotTold:
      return "not told";
    case NoShare::kNoLatency:
      return "no latency";
  }
  return "";
}

std::string RenderFigures(const MemoryFigures& figures, const TextStyle& style) {
  const MemoryProfile& profile = figures.profile;
  std::string out;
  if (profile.without_source < profile.all.samples)
    absl::StrAppend(&out, "\n", Levels(profile, style), "\n", Shares(figures), "\n",
                    Tlb(profile, style));
  if (profile.latency.total() > 0)
    absl::StrAppend(&out, "\n", Latencies(profile.latency, style));
  return out;
}

}  // namespace perfd::client
