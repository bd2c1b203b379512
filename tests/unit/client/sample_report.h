// A small report with one of everything: two ranks, three loops, a waiting loop, drops, a warning.
#ifndef TESTS_UNIT_CLIENT_SAMPLE_REPORT_H_
#define TESTS_UNIT_CLIENT_SAMPLE_REPORT_H_

#include "core/model/report.h"

namespace perfd {

ReportRow SampleLoop(const std::string& id, const std::string& function, int line, double share);
Report SampleReport();

}  // namespace perfd

#endif  // TESTS_UNIT_CLIENT_SAMPLE_REPORT_H_
