#include "daemon/report_doors.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace perfd::daemon {
namespace {

constexpr int32_t kCatchUpProfiles = 1000;

}  // namespace

absl::StatusOr<ReportLinks> LinksOf(const PerfdFlags& flags, const SqliteStore& store,
                                    const std::string& listening) {
  return ReportLinks::Load(store.directory(), LinkBase(flags.report_url, listening),
                           flags.open_reports);
}

SiteSource SourceOf(Pipeline& pipeline, const MetricsPage& metrics) {
  const Requester reader{.uid = 0, .name = "http", .privileged = true};
  return {.metrics = [&metrics] { return metrics.Text(); },
          .status = [&pipeline, reader](const auto& id) { return pipeline.Get(reader, id); },
          .report = [&pipeline, reader](const auto& id) { return pipeline.GetReport(reader, id); },
          .newest =
              [&pipeline, reader](int most) {
                return pipeline.List(reader, false, most).value_or(std::vector<ProfileStatus>());
              }};
}

ArchiverOptions ArchiveOf(const PerfdFlags& flags, SqliteStore& store) {
  return {
      .folder = flags.archive_dir,
      .limits = {.days = flags.archive_days, .max_bytes = flags.archive_mib << 20},
      .report = [&store](const std::string& id) { return store.FinalReport(id); },
      .newest =
          [&store] {
            return store
                .Profiles({.uid = std::nullopt, .active_only = false, .limit = kCatchUpProfiles})
                .value_or(std::vector<ProfileStatus>());
          }};
}

DaemonFigures FiguresOf(const PerfdFlags& flags, Pipeline& pipeline, const HttpServer& http,
                        Archiver& archive, const AuditTrimLog& audit, TlsGate& tls) {
  DaemonFigures figures = pipeline.Figures();
  figures.refused.http = http.refused();
  figures.audit = audit.Figure();
  figures.names = flags.metrics_names ? MetricNames::kShown : MetricNames::kHidden;
  if (archive.on()) figures.archive = archive.Figures();
  figures.tls = tls.Figures();
  return figures;
}

std::vector<DoctorCheck> OwnChecks(const UnixDoor& door, Archiver& archive,
                                   const PolicySource& policy, TlsGate& tls) {
  std::vector<DoctorCheck> checks = door.Checks();
  for (DoctorCheck& check : archive.Checks()) checks.push_back(std::move(check));
  checks.push_back(policy.Check());
  for (DoctorCheck& check : tls.Checks(absl::Now())) checks.push_back(std::move(check));
  return checks;
}

}  // namespace perfd::daemon
