// daemon/pipeline/to_figure.h - a profile and its heaviest loops as metrics show them.
#ifndef DAEMON_PIPELINE_TO_FIGURE_H_
#define DAEMON_PIPELINE_TO_FIGURE_H_

#include <vector>

#include "core/model/report.h"
#include "daemon/metrics/figures.h"

namespace perfd::daemon {

ProfileFigure ToFigure(const ProfileStatus& status, const std::vector<ReportRow>& loops,
                       size_t count);

// Adds the verdicts: at most `count` loops, and of those only the variants that every loop may have.
void AddVerdicts(const std::vector<LoopVerdict>& verdicts, size_t count, ProfileFigure& figure);

// Adds what only the report tells, also the program where the request did not name it. `figure` has the first loops of the same report.
void AddOutcome(const Report& report, ProfileFigure& figure);

}  // namespace perfd::daemon

#endif  // DAEMON_PIPELINE_TO_FIGURE_H_
