#include "client/render/history/csv.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/render/csv.h"

namespace perfd::client {
namespace {

// `loop` is the same for one loop in all profiles: its id in the newest; `id` is the one it had there.
constexpr char kHeader[] =
    "loop,profile,started_unix_ns,job,user,ranks,nodes,build,id,function,file,first_line,share,"
    "share_low,share_high,cycles_per_entry,iterations_per_entry,bound,sure,gain,wall_share,"
    "wall_share_low,wall_share_high,gain_ranks,gain_ranks_asked\n";

std::string Number(double value) {
  return absl::StrFormat("%.6g", value);
}

std::string RankCell(uint32_t count, const MeasuredRanks& told) {
  return told.asked > 0 ? absl::StrCat(count) : "";
}

std::string Line(const std::string& id, const HistoryProfile& profile, const HistoryLoop& loop) {
  const bool timed = loop.cycles > 0;
  const bool walled = loop.wall.has_value();
  const std::vector<std::string> fields = {CsvField(id),
                                           CsvField(profile.id),
                                           absl::StrCat(profile.started_unix_ns),
                                           CsvField(profile.job),
                                           CsvField(profile.user),
                                           absl::StrCat(profile.ranks),
                                           absl::StrCat(profile.nodes),
                                           CsvField(profile.build),
                                           CsvField(loop.id),
                                           CsvField(loop.function),
                                           CsvField(loop.file),
                                           absl::StrCat(loop.first_line),
                                           Number(loop.cpu.share),
                                           Number(loop.cpu.interval.low),
                                           Number(loop.cpu.interval.high),
                                           timed ? Number(loop.cycles) : "",
                                           timed ? Number(loop.iterations) : "",
                                           BoundName(loop.bound),
                                           loop.sure ? "1" : "0",
                                           Number(loop.gain.value),
                                           walled ? Number(loop.wall->share) : "",
                                           walled ? Number(loop.wall->interval.low) : "",
                                           walled ? Number(loop.wall->interval.high) : "",
                                           RankCell(loop.gain.ranks.measured, loop.gain.ranks),
                                           RankCell(loop.gain.ranks.asked, loop.gain.ranks)};
  return absl::StrCat(absl::StrJoin(fields, ","), "\n");
}

}  // namespace

std::string RenderHistoryCsv(const ProgramHistory& history, const std::vector<LoopSeries>& series) {
  std::string text = kHeader;
  for (const LoopSeries& one : series) {
    for (size_t i = 0; i < one.loops.size(); ++i) {
      if (one.loops[i] != nullptr) text += Line(one.newest->id, history.profiles[i], *one.loops[i]);
    }
  }
  return text;
}

}  // namespace perfd::client
