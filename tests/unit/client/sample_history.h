// Eight profiles, a day apart: one loop got slower, one lighter, one is as ever. Each build has other ids.
#ifndef TESTS_UNIT_CLIENT_SAMPLE_HISTORY_H_
#define TESTS_UNIT_CLIENT_SAMPLE_HISTORY_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/model/history.h"

namespace perfd::client {

inline HistoryLoop HistoryLoopOf(const std::string& id, const std::string& function, int line,
                                 double share) {
  HistoryLoop loop;
  loop.id = id;
  loop.function = function;
  loop.file = "/src/app.c";
  loop.first_line = line;
  loop.last_line = line + 4;
  loop.module = "app";
  loop.depth = 1;
  loop.cpu = {share, {share - 0.01, share + 0.01}};
  return loop;
}

inline ProgramHistory SampleHistory() {
  constexpr int64_t kDayNs = int64_t{24} * 3600 * 1'000'000'000;
  ProgramHistory history;
  history.command = "app";
  for (int i = 1; i <= 8; ++i) {
    HistoryProfile profile;
    profile.id = absl::StrCat("p-00000", i);
    profile.command = "app";
    profile.user = "alice";
    profile.started_unix_ns = 1'700'000'000'000'000'000 + (i - 1) * kDayNs;
    profile.ranks = 4;
    profile.nodes = 1;
    profile.build = absl::StrCat("build", i);
    HistoryLoop timed = HistoryLoopOf(absl::StrFormat("aa%014d", i), "kernel", 10, 0.5);
    timed.cycles = i < 5 ? 1000 : 1500;
    timed.cycles_min = timed.cycles - 1;
    timed.iterations = 100;
    timed.bound = Bound::kMemory;
    timed.gain = {0.1, {1, 2}};
    profile.loops = {timed,
                     HistoryLoopOf(absl::StrFormat("bb%014d", i), "update", 30, i < 5 ? 0.3 : 0.2),
                     HistoryLoopOf(absl::StrFormat("cc%014d", i), "reduce", 50, 0.15)};
    history.profiles.push_back(profile);
  }
  return history;
}

}  // namespace perfd::client

#endif  // TESTS_UNIT_CLIENT_SAMPLE_HISTORY_H_
