// daemon/pipeline/pipeline_records.h - what the spine remembers of profiles and senders.
#ifndef DAEMON_PIPELINE_PIPELINE_RECORDS_H_
#define DAEMON_PIPELINE_PIPELINE_RECORDS_H_

#include <cstdint>
#include <string>

#include "daemon/metrics/figures.h"
#include "daemon/store/records.h"

namespace perfd::daemon {

// A profile that windows came for after its end.
struct LateProfile {
  uint64_t windows = 0;
  int64_t due_ns = 0;
  ProfileHolder owner = kSite;
};

// A profile that has ended, as metrics show it for a while.
struct RecentProfile {
  ProfileFigure figure;
  int64_t until_ns = 0;
};

// A profile that is new whatever the clock says.
struct FreshProfile {
  std::string profile_id;
  int64_t until_ns = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_PIPELINE_PIPELINE_RECORDS_H_
