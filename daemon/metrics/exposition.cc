#include "daemon/metrics/exposition.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/version.h"
#include "daemon/metrics/families.h"
#include "daemon/metrics/profile_families.h"

namespace perfd::daemon {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

void ExposeOwn(const DaemonFigures& figures, std::vector<MetricFamily>& out) {
  constexpr MetricType kCounter = MetricType::Counter;
  constexpr MetricType kGauge = MetricType::Gauge;
  MetricFamily build = NewFamily("perfd_build_info", "Version of this perfd; always 1.", kGauge);
  AddSeries(build, 1, {{"version", kVersion}, {"protocol", absl::StrCat(kProtocolVersion)}});
  out.push_back(std::move(build));
  out.push_back(LabelledSeries("perfd_profiles", "Stored profiles by state.", kGauge, "state",
                               figures.profiles));
  out.push_back(OneSeries("perfd_agents_connected", "Agents with a live stream.", kGauge,
                          static_cast<double>(figures.agents_connected)));
  out.push_back(LabelledSeries("perfd_agent_versions", "Connected agents by their version.", kGauge,
                               "version", figures.agent_versions));
  out.push_back(OneSeries("perfd_agents_known", "Agents heard of within a day.", kGauge,
                          static_cast<double>(figures.agents_known)));
  out.push_back(OneSeries("perfd_agents_can_inject",
                          "Connected agents on whose nodes loops of ranks can be altered.", kGauge,
                          static_cast<double>(figures.agents_can_inject)));
  out.push_back(OneSeries("perfd_windows_stored_total", "Windows committed to the store.", kCounter,
                          static_cast<double>(figures.windows_stored)));
  out.push_back(OneSeries("perfd_windows_duplicate_total",
                          "Windows that arrived again and were stored before.", kCounter,
                          static_cast<double>(figures.windows_duplicate)));
  out.push_back(LabelledSeries("perfd_windows_dropped_total", "Windows that were not stored.",
                               kCounter, "reason", figures.windows_dropped));
  out.push_back(LabelledSeries("perfd_samples_total", "Samples in stored windows by kind of place.",
                               kCounter, "category", figures.samples));
  out.push_back(LabelledSeries("perfd_samples_dropped_total",
                               "Samples that agents read and dropped.", kCounter, "reason",
                               figures.samples_dropped));
  out.push_back(OneSeries("perfd_samples_lost_total",
                          "Samples overwritten in the kernel before agents read them.", kCounter,
                          static_cast<double>(figures.samples_lost)));
  out.push_back(OneSeries("perfd_sampling_throttled_total",
                          "Times the kernel throttled the sampling of a CPU or thread.", kCounter,
                          static_cast<double>(figures.sampling_throttled)));
  out.push_back(OneSeries("perfd_streams_malformed_total",
                          "Agent streams ended for a message that made no sense or was too large.",
                          kCounter, static_cast<double>(figures.streams_malformed)));
  out.push_back(OneSeries("perfd_http_refused_total",
                          "HTTP requests answered with a status of 400 and above, or cut off to "
                          "make room for others.",
                          kCounter, static_cast<double>(figures.refused.http)));
  out.push_back(LabelledSeries("perfd_limit_hits_total",
                               "Times that a limit on what peers may hold refused somebody.",
                               kCounter, "limit", figures.refused.limits));
  out.push_back(OneSeries("perfd_ingest_queue_windows", "Windows between arrival and merge.",
                          kGauge, static_cast<double>(figures.ingest_queue_windows)));
  out.push_back(OneSeries("perfd_store_bytes", "Size of the database and its log.", kGauge,
                          static_cast<double>(figures.store.bytes)));
  out.push_back(OneSeries("perfd_store_healthy", "1 when the last write of the store succeeded.",
                          kGauge, figures.store.healthy ? 1 : 0));
  out.push_back(OneSeries("perfd_store_readable", "1 when the store could be read for this page.",
                          kGauge, figures.store.readable ? 1 : 0));
}

void ExposeAudit(const AuditFigure& audit, std::vector<MetricFamily>& out) {
  out.push_back(OneSeries("perfd_audit_bytes", "Room that the audit log takes in the database.",
                          MetricType::Gauge, static_cast<double>(audit.bytes)));
  out.push_back(LabelledSeries("perfd_audit_trimmed_total",
                               "Entries of the audit log that retention deleted.",
                               MetricType::Counter, "reason",
                               {{"age", audit.trimmed_for_age}, {"size", audit.trimmed_for_size}}));
}

void ExposeInjections(const DaemonFigures& figures, std::vector<MetricFamily>& out) {
  out.push_back(LabelledSeries("perfd_injections_total", "Audited injections into ranks by action.",
                               MetricType::Counter, "action", figures.injections));
  out.push_back(OneSeries("perfd_injection_pause_seconds_total",
                          "Time ranks stood still or waited for shadows, summed over ranks.",
                          MetricType::Counter, figures.injection_pause_seconds));
}

void ExposeHook(const DaemonFigures& figures, std::vector<MetricFamily>& out) {
  out.push_back(LabelledSeries("perfd_hook_jobs_total",
                               "Jobs of schedulers that were decided about, by decision.",
                               MetricType::Counter, "decision", figures.hook.jobs));
  out.push_back(LabelledSeries("perfd_hook_calls_total",
                               "Calls of schedulers' prologs and epilogs by result.",
                               MetricType::Counter, "result", figures.hook.calls));
  if (!figures.hook.policy_read.has_value()) return;
  out.push_back(OneSeries("perfd_policy_healthy",
                          "1 when the policy file was taken when it was last read.",
                          MetricType::Gauge, *figures.hook.policy_read ? 1 : 0));
}

// Of all agents the one that ends first: a series for each node would leave the bound.
std::optional<int64_t> FirstExpiry(const std::vector<AgentFigure>& agents) {
  std::optional<int64_t> first;
  for (const AgentFigure& agent : agents) {
    const std::optional<int64_t> ends = agent.certificate_expiry_seconds;
    if (ends.has_value()) first = std::min(*ends, first.value_or(*ends));
  }
  return first;
}

void ExposeTls(const DaemonFigures& figures, std::vector<MetricFamily>& out) {
  const TlsFigure& tls = figures.tls;
  out.push_back(LabelledSeries("perfd_certificates_refused_total",
                               "Calls and streams that ended because the certificate of the peer "
                               "does not hold any more, by reason.",
                               MetricType::Counter, "reason", tls.refused));
  MetricFamily expiry =
      NewFamily("perfd_certificate_expiry_timestamp_seconds",
                "When the first certificate of a file of perfd's ends, and of those that agents "
                "connected with.",
                MetricType::Gauge);
  for (const auto& [name, seconds] : tls.expiry_seconds)
    AddSeries(expiry, static_cast<double>(seconds), {{"certificate", name}});
  if (const std::optional<int64_t> ends = FirstExpiry(figures.agents); ends.has_value())
    AddSeries(expiry, static_cast<double>(*ends), {{"certificate", "agents"}});
  out.push_back(std::move(expiry));
}

void ExposeAgents(const DaemonFigures& figures, std::vector<MetricFamily>& out) {
  MetricFamily resident = NewFamily("perfd_agent_resident_bytes",
                                    "Resident memory of the node's agent.", MetricType::Gauge);
  MetricFamily cpu = NewFamily("perfd_agent_cpu_seconds_total",
                               "CPU time of the node's agent and its helpers since its start.",
                               MetricType::Counter);
  MetricFamily spool =
      NewFamily("perfd_agent_spool_bytes", "Measurements on the node that are not yet stored.",
                MetricType::Gauge);
  MetricFamily set_aside = NewFamily(
      "perfd_agent_windows_set_aside_total",
      "Windows the agent set aside since its start: damaged or unsendable, in no profile.",
      MetricType::Counter);
  uint64_t rings = 0;  // one series for all: a thousand more would leave the bound
  for (const AgentFigure& agent : figures.agents) {
    const MetricLabels labels = {{"node", agent.node}};
    AddSeries(resident, static_cast<double>(agent.resident_bytes), labels);
    AddSeries(cpu, agent.cpu_seconds, labels);
    AddSeries(spool, static_cast<double>(agent.spool_bytes), labels);
    AddSeries(set_aside, static_cast<double>(agent.set_aside_windows), labels);
    rings = std::max(rings, agent.ring_bytes);
  }
  out.push_back(std::move(resident));
  out.push_back(std::move(cpu));
  out.push_back(std::move(spool));
  out.push_back(std::move(set_aside));
  out.push_back(OneSeries("perfd_agents_ring_bytes_max",
                          "Kernel memory of the rings that an agent reads samples from, of the "
                          "node with the most.",
                          MetricType::Gauge, static_cast<double>(rings)));
}

void ExposeArchive(const ArchiveFigure& archive, std::vector<MetricFamily>& out) {
  const auto add = [&](const char* name, const char* help, MetricType type, uint64_t value) {
    out.push_back(OneSeries(name, help, type, static_cast<double>(value)));
  };
  add("perfd_archive_written_total", "Reports written to the archive folder.", MetricType::Counter,
      archive.written);
  add("perfd_archive_failures_total", "Attempts to archive that failed; they are made again.",
      MetricType::Counter, archive.failures);
  add("perfd_archive_dropped_total", "Reports that will not be archived.", MetricType::Counter,
      archive.dropped);
  add("perfd_archive_deleted_total", "Archived reports deleted for their age or for room.",
      MetricType::Counter, archive.deleted);
  add("perfd_archive_pending", "Reports that wait to be archived.", MetricType::Gauge,
      archive.pending);
  add("perfd_archive_files", "Reports in the archive folder.", MetricType::Gauge, archive.files);
  add("perfd_archive_bytes", "Size of the reports in the archive folder.", MetricType::Gauge,
      archive.bytes);
  add("perfd_archive_healthy", "1 when the last attempt to archive was successful.",
      MetricType::Gauge, archive.healthy ? 1 : 0);
}

void ExposeProcess(const ProcessFigures& process, std::vector<MetricFamily>& out) {
  out.push_back(OneSeries("process_cpu_seconds_total", "CPU time of perfd.", MetricType::Counter,
                          process.cpu_seconds));
  out.push_back(OneSeries("process_resident_memory_bytes", "Resident memory of perfd.",
                          MetricType::Gauge, static_cast<double>(process.resident_bytes)));
  out.push_back(OneSeries("process_open_fds", "Open file descriptors of perfd.", MetricType::Gauge,
                          static_cast<double>(process.open_fds)));
  out.push_back(OneSeries("process_start_time_seconds", "Start of perfd since the epoch.",
                          MetricType::Gauge, process.start_time_seconds));
}

}  // namespace

std::vector<MetricFamily> Expose(const DaemonFigures& figures, const ProcessFigures& process) {
  std::vector<MetricFamily> families;
  ExposeOwn(figures, families);
  ExposeProfiles(figures.hot, figures.names, families);
  ExposeLoops(figures.hot, figures.names, families);
  ExposeMeasured(figures.hot, families);
  ExposeAudit(figures.audit, families);
  ExposeInjections(figures, families);
  ExposeAgents(figures, families);
  ExposeHook(figures, families);
  ExposeTls(figures, families);
  if (figures.archive.has_value()) ExposeArchive(*figures.archive, families);
  ExposeProcess(process, families);
  return families;
}

}  // namespace perfd::daemon
