// daemon/pipeline/to_figure.h - the heaviest loops of a profile as metrics show them.
#ifndef DAEMON_PIPELINE_TO_FIGURE_H_
#define DAEMON_PIPELINE_TO_FIGURE_H_

#include <vector>

#include "core/model/report.h"
#include "daemon/metrics/figures.h"

namespace perfd {

ProfileFigure ToFigure(const ProfileStatus& status, const std::vector<ReportRow>& loops,
                       size_t count);

}  // namespace perfd

#endif  // DAEMON_PIPELINE_TO_FIGURE_H_
