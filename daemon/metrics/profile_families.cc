#include "daemon/metrics/profile_families.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/metrics/families.h"

namespace perfd::daemon {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;
constexpr MetricType kGauge = MetricType::Gauge;
constexpr MetricType kCounter = MetricType::Counter;

using ProfileValue = std::function<std::optional<double>(const ProfileFigure&)>;

// A family with one series of each profile that has the value.
void PerProfile(const std::vector<ProfileFigure>& profiles, MetricFamily family,
                const ProfileValue& value, std::vector<MetricFamily>& out) {
  for (const ProfileFigure& profile : profiles) {
    const std::optional<double> v = value(profile);
    if (v.has_value()) AddSeries(family, *v, {{"profile", profile.id}});
  }
  out.push_back(std::move(family));
}

// A value that only the report knows.
ProfileValue Outcome(double OutcomeFigure::*member) {
  return [member](const ProfileFigure& p) -> std::optional<double> {
    return p.outcome.has_value() ? std::optional(p.outcome.value().*member) : std::nullopt;
  };
}

ProfileValue Count(uint64_t ProgressFigure::*member) {
  return [member](const ProfileFigure& p) -> std::optional<double> {
    return static_cast<double>(p.progress.*member);
  };
}

// 0: there is none yet.
ProfileValue Figure(double ProgressFigure::*member) {
  return [member](const ProfileFigure& p) -> std::optional<double> { return p.progress.*member; };
}

ProfileValue Time(double ProgressFigure::*member) {
  return [member](const ProfileFigure& p) -> std::optional<double> {
    return p.progress.*member > 0 ? std::optional(p.progress.*member) : std::nullopt;
  };
}

// One series of a *_info family: what it is joined by, and what it is called.
void AddInfo(MetricFamily& family, MetricLabels key, MetricNames names, MetricLabels called) {
  if (names == MetricNames::kShown) key.insert(key.end(), called.begin(), called.end());
  AddSeries(family, 1, std::move(key));
}

void ExposeInfo(const std::vector<ProfileFigure>& profiles, MetricNames names,
                std::vector<MetricFamily>& out) {
  MetricFamily infos =
      NewFamily("perfd_profile_info", "Active and recent profiles; always 1.", kGauge);
  MetricFamily states =
      NewFamily("perfd_profile_state", "The state the profile is in; always 1.", kGauge);
  for (const ProfileFigure& profile : profiles) {
    AddInfo(infos, {{"profile", profile.id}}, names,
            {{"name", profile.name},
             {"user", profile.user},
             {"command", profile.command},
             {"slurm_job", profile.slurm_job}});
    AddSeries(states, 1, {{"profile", profile.id}, {"state", profile.progress.state}});
  }
  out.push_back(std::move(infos));
  out.push_back(std::move(states));
}

void ExposeProgress(const std::vector<ProfileFigure>& profiles, std::vector<MetricFamily>& out) {
  const auto add = [&](const char* name, const char* help, MetricType type,
                       const ProfileValue& value) {
    PerProfile(profiles, NewFamily(name, help, type), value, out);
  };
  add("perfd_profile_samples_total", "Samples stored of the profile.", kCounter,
      Count(&ProgressFigure::samples));
  add("perfd_profile_nodes", "Nodes that take part in the profile.", kGauge,
      Count(&ProgressFigure::nodes));
  add("perfd_profile_ranks", "Ranks under measurement.", kGauge, Count(&ProgressFigure::ranks));
  add("perfd_profile_threads", "Threads under measurement.", kGauge,
      Count(&ProgressFigure::threads));
  add("perfd_profile_progress_ratio", "Share of the sampling time that is done.", kGauge,
      Figure(&ProgressFigure::progress_ratio));
  add("perfd_profile_budget_ratio", "Wall time that the profile may add, over elapsed time.",
      kGauge, Figure(&ProgressFigure::budget_ratio));
  add("perfd_profile_submitted_timestamp_seconds", "When the profile was accepted.", kGauge,
      Time(&ProgressFigure::submitted_seconds));
  add("perfd_profile_finished_timestamp_seconds", "When the profile ended.", kGauge,
      Time(&ProgressFigure::finished_seconds));
}

void ExposeOutcome(const std::vector<ProfileFigure>& profiles, std::vector<MetricFamily>& out) {
  const auto add = [&](const char* name, const char* help, double OutcomeFigure::*member) {
    PerProfile(profiles, NewFamily(name, help, kGauge), Outcome(member), out);
  };
  add("perfd_profile_missing_ratio", "Share of the samples that is missing.",
      &OutcomeFigure::missing_ratio);
  add("perfd_profile_sampling_overhead_ratio", "Cost of sampling over the job's CPU time.",
      &OutcomeFigure::sampling_overhead_ratio);
  add("perfd_profile_added_time_ratio", "Wall time that variants added, over elapsed time.",
      &OutcomeFigure::added_time_ratio);
  add("perfd_profile_imbalance_ratio", "Compute time of the slowest rank over the mean.",
      &OutcomeFigure::imbalance_ratio);
  MetricFamily shares = NewFamily("perfd_profile_category_share_ratio",
                                  "Share of the job's time by kind of place.", kGauge);
  for (const ProfileFigure& profile : profiles) {
    if (!profile.outcome.has_value()) continue;
    for (const auto& [category, share] : profile.outcome->category_shares)
      AddSeries(shares, share, {{"profile", profile.id}, {"category", category}});
  }
  out.push_back(std::move(shares));
}

// A figure of a loop that only the report knows, where it knows it.
struct LoopFamily {
  const char* name;
  const char* help;
  std::function<std::optional<double>(const LoopFigure&)> value;
};

std::function<std::optional<double>(const LoopFigure&)> Spread(double SpreadFigure::*member) {
  return [member](const LoopFigure& loop) -> std::optional<double> {
    return loop.spread.has_value() ? std::optional(loop.spread.value().*member) : std::nullopt;
  };
}

std::function<std::optional<double>(const LoopFigure&)> Memory(
    std::optional<double> MemoryFigure::*member) {
  return [member](const LoopFigure& loop) { return loop.memory.*member; };
}

void ExposeReported(const std::vector<ProfileFigure>& profiles, std::vector<MetricFamily>& out) {
  const LoopFamily families[] = {
      {"perfd_loop_rank_min_seconds", "CPU time in the loop of the rank with the least.",
       Spread(&SpreadFigure::rank_min_seconds)},
      {"perfd_loop_rank_median_seconds", "CPU time in the loop of the median rank.",
       Spread(&SpreadFigure::rank_median_seconds)},
      {"perfd_loop_rank_max_seconds", "CPU time in the loop of the rank with the most.",
       Spread(&SpreadFigure::rank_max_seconds)},
      {"perfd_loop_rank_imbalance_ratio", "CPU time in the loop of its slowest rank over the mean.",
       Spread(&SpreadFigure::rank_imbalance_ratio)},
      {"perfd_loop_thread_imbalance_ratio",
       "Samples of the busiest thread over the mean, in the rank with the most of the loop.",
       Spread(&SpreadFigure::thread_imbalance_ratio)},
      {"perfd_loop_memory_beyond_l2_ratio",
       "Share of the time of the loop's loads that was spent beyond L2, by sampled accesses.",
       Memory(&MemoryFigure::beyond_l2_ratio)},
      {"perfd_loop_dtlb_walks_ratio",
       "Share of the loop's sampled accesses whose page the DTLB did not have.",
       Memory(&MemoryFigure::walks_ratio)},
  };
  for (const LoopFamily& of : families) {
    MetricFamily family = NewFamily(of.name, of.help, kGauge);
    for (const ProfileFigure& profile : profiles) {
      for (const LoopFigure& loop : profile.loops) {
        const std::optional<double> value = of.value(loop);
        if (value.has_value())
          AddSeries(family, *value, {{"profile", profile.id}, {"loop", loop.loop}});
      }
    }
    out.push_back(std::move(family));
  }
}

}  // namespace

void ExposeProfiles(const std::vector<ProfileFigure>& profiles, MetricNames names,
                    std::vector<MetricFamily>& out) {
  ExposeInfo(profiles, names, out);
  ExposeProgress(profiles, out);
  ExposeOutcome(profiles, out);
}

void ExposeLoops(const std::vector<ProfileFigure>& profiles, MetricNames names,
                 std::vector<MetricFamily>& out) {
  MetricFamily loops =
      NewFamily("perfd_loop_info", "Heaviest loops of those profiles; always 1.", kGauge);
  MetricFamily shares =
      NewFamily("perfd_loop_share_ratio", "Share of the job's time spent in the loop.", kGauge);
  for (const ProfileFigure& profile : profiles) {
    for (const LoopFigure& loop : profile.loops) {
      AddInfo(loops, {{"profile", profile.id}, {"loop", loop.loop}}, names,
              {{"function", loop.function},
               {"file", loop.file},
               {"line", absl::StrCat(loop.line)},
               {"module", loop.module}});
      AddSeries(shares, loop.share_ratio, {{"profile", profile.id}, {"loop", loop.loop}});
    }
  }
  out.push_back(std::move(loops));
  out.push_back(std::move(shares));
  ExposeReported(profiles, out);
}

void ExposeMeasured(const std::vector<ProfileFigure>& profiles, std::vector<MetricFamily>& out) {
  MetricFamily saturations = NewFamily(
      "perfd_loop_saturation_ratio",
      "Time of a variant of the loop over the loop's own, in shadows, of the median rank.", kGauge);
  MetricFamily gains =
      NewFamily("perfd_loop_gain_ratio",
                "Share of the job's time that the best fix of the loop would save.", kGauge);
  MetricFamily gain_ranks = NewFamily(
      "perfd_loop_gain_ranks_ratio",
      "Part of the ranks that were asked on which the best fix of the loop was measured.", kGauge);
  MetricFamily verdicts =
      NewFamily("perfd_loop_verdict_info",
                "What the loop is bound by, and where its data are; always 1.", kGauge);
  MetricFamily states =
      NewFamily("perfd_profile_loops", "Loops that variants were to measure, by state.", kGauge);
  for (const ProfileFigure& profile : profiles) {
    for (const auto& [state, count] : profile.measure_states) {
      AddSeries(states, static_cast<double>(count), {{"profile", profile.id}, {"state", state}});
    }
    for (const MeasuredFigure& loop : profile.measured) {
      const MetricLabels labels = {{"profile", profile.id}, {"loop", loop.loop}};
      if (loop.gain_ratio.has_value()) {
        AddSeries(gains, *loop.gain_ratio, labels);
        AddSeries(gain_ranks, loop.gain_ranks_ratio, labels);
      }
      MetricLabels verdict = labels;
      verdict.push_back({"bound", loop.bound});
      verdict.push_back({"level", loop.level});
      AddSeries(verdicts, 1, std::move(verdict));
      for (const SaturationFigure& s : loop.saturations) {
        MetricLabels of_variant = labels;
        of_variant.push_back({"variant", s.variant});
        AddSeries(saturations, s.ratio, std::move(of_variant));
      }
    }
  }
  out.push_back(std::move(saturations));
  out.push_back(std::move(gains));
  out.push_back(std::move(gain_ranks));
  out.push_back(std::move(verdicts));
  out.push_back(std::move(states));
}

}  // namespace perfd::daemon
