// A report with measured loops, as daemon/report would build it.
#ifndef TESTS_UNIT_CLIENT_SAMPLE_VERDICTS_H_
#define TESTS_UNIT_CLIENT_SAMPLE_VERDICTS_H_

#include "core/model/report.h"

namespace perfd {

// SampleReport with two verdicts: compute_forces is memory bound on rank 0 and not on rank 1; update is refused.
Report MeasuredReport();

}  // namespace perfd

#endif  // TESTS_UNIT_CLIENT_SAMPLE_VERDICTS_H_
