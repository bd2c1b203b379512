#include "daemon/metrics/exposition.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/version.h"

namespace perfd {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

ClientMetric Sample(MetricType type, double value, Labels labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return metric;
}

MetricFamily Family(const char* name, const char* help, MetricType type) {
  return {.name = name, .help = help, .type = type, .metric = {}};
}

MetricFamily One(const char* name, const char* help, MetricType type, double value) {
  MetricFamily family = Family(name, help, type);
  family.metric.push_back(Sample(type, value, {}));
  return family;
}

MetricFamily Labelled(const char* name, const char* help, MetricType type, const char* label,
                      const std::vector<LabelledCount>& counts) {
  MetricFamily family = Family(name, help, type);
  for (const auto& [value, count] : counts) {
    family.metric.push_back(Sample(type, static_cast<double>(count), {{label, value}}));
  }
  return family;
}

void ExposeOwn(const DaemonFigures& figures, std::vector<MetricFamily>& out) {
  constexpr MetricType kCounter = MetricType::Counter;
  constexpr MetricType kGauge = MetricType::Gauge;
  MetricFamily build = Family("perfd_build_info", "Version of this perfd; always 1.", kGauge);
  build.metric.push_back(
      Sample(kGauge, 1, {{"version", kVersion}, {"protocol", absl::StrCat(kProtocolVersion)}}));
  out.push_back(std::move(build));
  out.push_back(
      Labelled("perfd_profiles", "Stored profiles by state.", kGauge, "state", figures.profiles));
  out.push_back(One("perfd_agents_connected", "Agents with a live stream.", kGauge,
                    static_cast<double>(figures.agents_connected)));
  out.push_back(One("perfd_windows_stored_total", "Windows committed to the store.", kCounter,
                    static_cast<double>(figures.windows_stored)));
  out.push_back(One("perfd_windows_duplicate_total",
                    "Windows that arrived again and were stored before.", kCounter,
                    static_cast<double>(figures.windows_duplicate)));
  out.push_back(Labelled("perfd_windows_dropped_total", "Windows that were not stored.", kCounter,
                         "reason", figures.windows_dropped));
  out.push_back(Labelled("perfd_samples_total", "Samples in stored windows by kind of place.",
                         kCounter, "category", figures.samples));
  out.push_back(Labelled("perfd_samples_dropped_total", "Samples that agents read and dropped.",
                         kCounter, "reason", figures.samples_dropped));
  out.push_back(One("perfd_samples_lost_total",
                    "Samples overwritten in the kernel before agents read them.", kCounter,
                    static_cast<double>(figures.samples_lost)));
  out.push_back(One("perfd_streams_malformed_total",
                    "Agent streams ended for a message that made no sense or was too large.",
                    kCounter, static_cast<double>(figures.streams_malformed)));
  out.push_back(One("perfd_ingest_queue_windows", "Windows between arrival and merge.", kGauge,
                    static_cast<double>(figures.ingest_queue_windows)));
  out.push_back(One("perfd_store_bytes", "Size of the database and its log.", kGauge,
                    static_cast<double>(figures.store_bytes)));
  out.push_back(One("perfd_store_healthy", "1 when the last write of the store succeeded.", kGauge,
                    figures.store_healthy ? 1 : 0));
}

void ExposeLoops(const DaemonFigures& figures, std::vector<MetricFamily>& out) {
  constexpr MetricType kGauge = MetricType::Gauge;
  MetricFamily profiles =
      Family("perfd_profile_info", "Active and recent profiles; always 1.", kGauge);
  MetricFamily loops =
      Family("perfd_loop_info", "Heaviest loops of those profiles; always 1.", kGauge);
  MetricFamily shares =
      Family("perfd_loop_share_ratio", "Share of the job's time spent in the loop.", kGauge);
  for (const ProfileFigure& profile : figures.hot) {
    profiles.metric.push_back(Sample(
        kGauge, 1, {{"profile", profile.id}, {"name", profile.name}, {"user", profile.user}}));
    for (const LoopFigure& loop : profile.loops) {
      loops.metric.push_back(Sample(kGauge, 1,
                                    {{"profile", profile.id},
                                     {"loop", loop.loop},
                                     {"function", loop.function},
                                     {"file", loop.file},
                                     {"line", absl::StrCat(loop.line)},
                                     {"module", loop.module}}));
      shares.metric.push_back(
          Sample(kGauge, loop.share_ratio, {{"profile", profile.id}, {"loop", loop.loop}}));
    }
  }
  out.push_back(std::move(profiles));
  out.push_back(std::move(loops));
  out.push_back(std::move(shares));
}

void ExposeMeasured(const DaemonFigures& figures, std::vector<MetricFamily>& out) {
  constexpr MetricType kGauge = MetricType::Gauge;
  MetricFamily saturations = Family(
      "perfd_loop_saturation_ratio",
      "Time of a variant of the loop over the loop's own, in shadows, of the median rank.", kGauge);
  MetricFamily gains =
      Family("perfd_loop_gain_ratio",
             "Share of the job's time that the best fix of the loop would save.", kGauge);
  MetricFamily states =
      Family("perfd_profile_loops", "Loops that variants were to measure, by state.", kGauge);
  for (const ProfileFigure& profile : figures.hot) {
    for (const auto& [state, count] : profile.measure_states) {
      states.metric.push_back(
          Sample(kGauge, static_cast<double>(count), {{"profile", profile.id}, {"state", state}}));
    }
    for (const MeasuredFigure& loop : profile.measured) {
      gains.metric.push_back(
          Sample(kGauge, loop.gain_ratio, {{"profile", profile.id}, {"loop", loop.loop}}));
      for (const SaturationFigure& s : loop.saturations) {
        saturations.metric.push_back(
            Sample(kGauge, s.ratio,
                   {{"profile", profile.id}, {"loop", loop.loop}, {"variant", s.variant}}));
      }
    }
  }
  out.push_back(std::move(saturations));
  out.push_back(std::move(gains));
  out.push_back(std::move(states));
  out.push_back(Labelled("perfd_injections_total", "Audited injections into ranks by action.",
                         MetricType::Counter, "action", figures.injections));
  out.push_back(One("perfd_injection_pause_seconds_total",
                    "Time ranks stood still or waited for shadows, summed over ranks.",
                    MetricType::Counter, figures.injection_pause_seconds));
}

void ExposeAgents(const DaemonFigures& figures, std::vector<MetricFamily>& out) {
  MetricFamily resident = Family("perfd_agent_resident_bytes",
                                 "Resident memory of the node's agent.", MetricType::Gauge);
  MetricFamily cpu = Family("perfd_agent_cpu_seconds_total",
                            "CPU time of the node's agent since its start.", MetricType::Counter);
  MetricFamily spool =
      Family("perfd_agent_spool_bytes", "Measurements on the node that are not yet stored.",
             MetricType::Gauge);
  MetricFamily set_aside =
      Family("perfd_agent_windows_set_aside_total",
             "Windows the agent set aside since its start: damaged or unsendable, in no profile.",
             MetricType::Counter);
  for (const AgentFigure& agent : figures.agents) {
    const Labels labels = {{"node", agent.node}};
    resident.metric.push_back(
        Sample(MetricType::Gauge, static_cast<double>(agent.resident_bytes), labels));
    cpu.metric.push_back(Sample(MetricType::Counter, agent.cpu_seconds, labels));
    spool.metric.push_back(
        Sample(MetricType::Gauge, static_cast<double>(agent.spool_bytes), labels));
    set_aside.metric.push_back(
        Sample(MetricType::Counter, static_cast<double>(agent.set_aside_windows), labels));
  }
  out.push_back(std::move(resident));
  out.push_back(std::move(cpu));
  out.push_back(std::move(spool));
  out.push_back(std::move(set_aside));
}

void ExposeProcess(const ProcessFigures& process, std::vector<MetricFamily>& out) {
  out.push_back(One("process_cpu_seconds_total", "CPU time of perfd.", MetricType::Counter,
                    process.cpu_seconds));
  out.push_back(One("process_resident_memory_bytes", "Resident memory of perfd.", MetricType::Gauge,
                    static_cast<double>(process.resident_bytes)));
  out.push_back(One("process_open_fds", "Open file descriptors of perfd.", MetricType::Gauge,
                    static_cast<double>(process.open_fds)));
  out.push_back(One("process_start_time_seconds", "Start of perfd since the epoch.",
                    MetricType::Gauge, process.start_time_seconds));
}

}  // namespace

std::vector<MetricFamily> Expose(const DaemonFigures& figures, const ProcessFigures& process) {
  std::vector<MetricFamily> families;
  ExposeOwn(figures, families);
  ExposeLoops(figures, families);
  ExposeMeasured(figures, families);
  ExposeAgents(figures, families);
  ExposeProcess(process, families);
  return families;
}

}  // namespace perfd
