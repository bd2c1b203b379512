// daemon/pipeline/pipeline_options.h - what the spine is made with.
#ifndef DAEMON_PIPELINE_PIPELINE_OPTIONS_H_
#define DAEMON_PIPELINE_PIPELINE_OPTIONS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model/node.h"
#include "core/model/report.h"
#include "daemon/control/profile_session.h"
#include "daemon/ingest/ingest.h"
#include "daemon/limits/limits.h"
#include "daemon/store/records.h"

namespace perfd::daemon {

class PolicySource;

struct PipelineOptions {
  RetentionPolicy retention;
  ControlLimits control;
  // What peers may hold, and hold. Shared with the doors.
  std::shared_ptr<Limits> limits = std::make_shared<Limits>();
  IngestLimits ingest;
  int hot_loops = 12;                             // per profile in the figures
  std::function<void(double seconds)> on_attach;  // submit to first sample; may be empty
  std::function<void(double seconds)> on_stop;    // of a rank, by the audit log; may be empty
  std::function<std::vector<DoctorCheck>()> extra_checks;        // of the service; may be empty
  std::function<std::string(const std::string& id)> report_url;  // of a page; empty: not served
  std::function<void(double seconds)> on_hook;  // of a scheduler, arrival to answer; may be empty
  const PolicySource* policy = nullptr;  // of the scheduler hook; outlives the spine; null: none
  std::function<void(const std::string& id)> on_final;  // a report is stored; must not wait
};

struct WatchView {
  ProfileStatus status;
  std::vector<ReportRow> top_loops;
};

}  // namespace perfd::daemon

#endif  // DAEMON_PIPELINE_PIPELINE_OPTIONS_H_
