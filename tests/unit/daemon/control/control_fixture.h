// A session table with a clock of its own; what it decides is collected.
#ifndef TESTS_UNIT_DAEMON_CONTROL_CONTROL_FIXTURE_H_
#define TESTS_UNIT_DAEMON_CONTROL_CONTROL_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/control/session_table.h"

namespace perfd::daemon {

using Phase = NodeProgress::Phase;

inline constexpr int64_t kSecond = kNsPerSecond;
inline const Requester kAlice{1000, "alice", false};
inline const Requester kRoot{0, "root", true};

inline ProfileSpec CommandSpec() {
  ProfileSpec spec;
  spec.name = "test";
  spec.target.command = "lulesh";
  spec.duration_ns = 60 * kSecond;
  spec.until_known = false;
  return spec;
}

inline AgentFacts Agent(const std::string& node) {
  AgentFacts facts;
  facts.node = node;
  facts.stream_id = "stream-" + node;
  return facts;
}

class ControlTest : public testing::Test {
 protected:
  Moment now() const { return {mono_, 1'000'000'000'000 + mono_, 2'000'000'000'000 + mono_}; }
  void Pass(int64_t ns) {
    mono_ += ns;
    Record(table_.Tick(now()));
  }
  void Record(const Decisions& decisions) {
    log_.insert(log_.end(), decisions.begin(), decisions.end());
  }
  void Connect(const std::string& node) { Record(table_.AgentConnected(Agent(node), now())); }

  std::string Submit(const ProfileSpec& spec = CommandSpec(), const Requester& who = kAlice) {
    auto planned = table_.Plan({spec, who, ""}, now());
    EXPECT_TRUE(planned.ok()) << planned.status();
    if (!planned.ok()) return "";
    std::string id = absl::StrCat("p-", 100 + ++submitted_);
    planned->status.id = id;
    Record(table_.Add(*std::move(planned), now()));
    return id;
  }

  void Report(const std::string& node, const std::string& id, Phase phase, int ranks = 0,
              uint64_t last = 0, std::vector<Notice> notices = {}) {
    SessionUpdate update;
    update.profile_id = id;
    update.phase = phase;
    update.ranks = ranks;
    update.last_sequence = last;
    update.notices = std::move(notices);
    Record(table_.Update(node, update, now()));
  }

  void Window(const std::string& node, const std::string& id, uint64_t sequence,
              uint64_t samples = 10, int64_t duration_ns = 5 * kSecond, uint64_t missing = 0) {
    Record(table_.Stored(
        {id, node, "stream-" + node, sequence, now().unix_ns, duration_ns, samples, missing},
        now()));
  }

  std::optional<ProfileStatus> Finalising() const {
    for (auto it = log_.rbegin(); it != log_.rend(); ++it) {
      if (const auto* final_status = std::get_if<FinaliseProfile>(&*it))
        return final_status->status;
    }
    return std::nullopt;
  }
  ProfileState State(const std::string& id) const { return table_.Status(id, now())->state; }
  template <typename T>
  std::vector<T> All() const {
    std::vector<T> found;
    for (const Decision& decision : log_) {
      if (const auto* value = std::get_if<T>(&decision)) found.push_back(*value);
    }
    return found;
  }
  static bool HasNotice(const ProfileStatus& status, absl::StatusCode code,
                        const std::string& text) {
    return std::any_of(status.notices.begin(), status.notices.end(), [&](const Notice& notice) {
      return notice.code == code && absl::StrContains(notice.text, text);
    });
  }

  Limits limits_;
  SessionTable table_{limits_};
  Decisions log_;
  int64_t mono_ = 5 * kSecond;
  int submitted_ = 0;
};

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_CONTROL_CONTROL_FIXTURE_H_
