#include "daemon/pipeline/doctor_fanout.h"

#include <utility>

namespace perfd::daemon {

void DoctorFanout::Round::Answer() const {
  std::vector<DoctorReport> reports = own;
  for (const auto& [node, answer] : answers) {
    DoctorReport report = answer;
    if (report.checks.empty()) {
      report.checks.push_back({.name = "agent",
                               .ok = false,
                               .optional = false,
                               .found = "no answer within 5 s",
                               .fix = ""});
    }
    reports.push_back(std::move(report));
  }
  done(std::move(reports));
}

absl::StatusOr<uint64_t> DoctorFanout::Begin(const std::vector<DoctorReport>& asked,
                                             std::vector<DoctorReport> own, int64_t now_ns,
                                             Done done) {
  if (rounds_.size() >= kMaxRounds)
    return absl::ResourceExhaustedError("too many doctor requests at once");
  const uint64_t id = next_id_++;
  Round& round = rounds_[id];
  for (const DoctorReport& report : asked) round.answers[report.place] = report;
  round.own = std::move(own);
  round.open = round.answers.size();
  round.deadline_ns = round.open == 0 ? now_ns : now_ns + kWaitNs;
  round.done = std::move(done);
  return id;
}

std::vector<DoctorFanout::Round> DoctorFanout::Record(uint64_t id, const std::string& node,
                                                      std::vector<DoctorCheck> checks) {
  const auto it = rounds_.find(id);
  if (it == rounds_.end() || checks.empty()) return {};
  const auto answer = it->second.answers.find(node);
  if (answer == it->second.answers.end() || !answer->second.checks.empty()) return {};
  answer->second.checks = std::move(checks);
  if (--it->second.open > 0) return {};
  std::vector<Round> finished;
  finished.push_back(std::move(it->second));
  rounds_.erase(it);
  return finished;
}

std::vector<DoctorFanout::Round> DoctorFanout::Expire(int64_t now_ns) {
  std::vector<Round> finished;
  for (auto it = rounds_.begin(); it != rounds_.end();) {
    if (now_ns < it->second.deadline_ns) {
      ++it;
      continue;
    }
    finished.push_back(std::move(it->second));
    it = rounds_.erase(it);
  }
  return finished;
}

}  // namespace perfd::daemon
