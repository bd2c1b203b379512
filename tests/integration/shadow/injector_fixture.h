// tests/integration/shadow/injector_fixture.h - a tracer, a journal folder of its own, and patience.
#ifndef TESTS_INTEGRATION_SHADOW_INJECTOR_FIXTURE_H_
#define TESTS_INTEGRATION_SHADOW_INJECTOR_FIXTURE_H_

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/shadow/journal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/shadow/puppet_rank.h"

namespace perfd::agent {

inline constexpr int64_t kMs = 1'000'000;

class RankInjectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = absl::StrCat(::testing::TempDir(), "/lab-journal-", getpid());
    auto tracer = Tracer::Start({PERFD_TRACER, {}});
    ASSERT_TRUE(tracer.ok()) << tracer.status();
    tracer_ = *std::move(tracer);
    options_.tracer = tracer_.get();
    journal_ = *Journal::Make(directory_);
    options_.journal = &*journal_;
    options_.max_stop_ns = 200 * kMs;  // the machine is shared
    options_.max_shadow_ns = 2000 * kMs;
    options_.audit = [this](AuditEntry entry) { audit_.push_back(std::move(entry)); };
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  size_t Journals() const {
    std::vector<std::string> damaged;
    return journal_->ReadAll(&damaged).size() + damaged.size();
  }
  ShadowRequest Request(std::vector<RunSpec> runs, int team) const {
    ShadowRequest request;
    request.team = team;
    request.shadow_ns = 1000 * kMs;
    request.timeout_ns = 5000 * kMs;
    request.runs = std::move(runs);
    return request;
  }
  // Arming may meet a moment when the team does not, or one when this process does not answer it in time.
  absl::StatusOr<ShadowAnswer> Shadow(RankInjector& injector, const ShadowRequest& request) {
    absl::StatusOr<ShadowAnswer> answer;
    for (int i = 0; i < 10; ++i) {
      answer = injector.RunShadow(request);
      if (!absl::IsUnavailable(answer.status()) && !absl::IsOutOfRange(answer.status()) &&
          !absl::StrContains(answer.status().message(), "did not answer in time"))
        break;
    }
    return answer;
  }

  std::string directory_;
  std::optional<Journal> journal_;
  std::unique_ptr<Tracer> tracer_;
  InjectorOptions options_;
  std::vector<AuditEntry> audit_;
};

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_SHADOW_INJECTOR_FIXTURE_H_
