// The scheduler hook through the spine and a real store.
#ifndef TESTS_UNIT_DAEMON_PIPELINE_JOB_ADMISSION_FIXTURE_H_
#define TESTS_UNIT_DAEMON_PIPELINE_JOB_ADMISSION_FIXTURE_H_

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "daemon/pipeline/job_admission.h"
#include "daemon/policy/policy_source.h"
#include "tests/unit/daemon/pipeline/pipeline_fixture.h"

namespace perfd::daemon {

inline const HookCaller kRootCaller{};

class JobAdmissionTest : public PipelineFixture {
 protected:
  void SetUp() override {
    path_ = folder_ + "/policy.yaml";
    PipelineFixture::SetUp();
    UsePolicy("{every: 3, quota: {active: 100}}");
  }
  void TearDown() override {
    pipeline_.reset();
    policy_.reset();
  }

  void UsePolicy(const std::string& text) {
    std::ofstream(path_) << text;
    Restart();
  }

  // The daemon is started anew, on the same store.
  void Restart() {
    pipeline_.reset();
    policy_ = std::make_unique<PolicySource>(path_);
    ASSERT_TRUE(policy_->Reload().ok());
    PipelineOptions options;
    options.policy = policy_.get();
    pipeline_ = std::make_unique<Pipeline>(*store_, clock_, std::move(options));
    ASSERT_TRUE(pipeline_->Restore().ok());
  }

  // As `node` tells it.
  static HookJob JobOn(const std::string& node, const std::string& id,
                       const std::string& nodes = "a") {
    HookJob job = Job(id, nodes);
    job.node = node;
    return job;
  }
  static HookJob Job(const std::string& id, const std::string& nodes = "a") {
    HookJob job;
    job.job = id;
    job.uid = 1000;
    job.user = "alice";
    job.partition = "batch";
    job.nodes = nodes;
    return job;
  }

  HookAnswer Begin(const HookJob& job) {
    const auto answer = pipeline_->hooks().Begin(kRootCaller, job);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(HookAnswer());
  }
  HookAnswer End(const HookJob& job) {
    const auto answer = pipeline_->hooks().End(kRootCaller, job);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(HookAnswer());
  }
  ProfileStatus Status(const std::string& id) {
    const auto status = pipeline_->Get({0, "root", true}, id);
    EXPECT_TRUE(status.ok()) << status.status();
    return status.value_or(ProfileStatus());
  }
  // Ticks until the profile is over; the report is stored on another thread.
  ProfileState Over(const std::string& id) {
    for (int i = 0; i < 1000 && !IsFinal(Status(id).state); ++i) {
      pipeline_->Tick();
      (void)store_->Flush();
    }
    return Status(id).state;
  }
  uint64_t Calls(HookResult result) {
    return pipeline_->hooks().figures().calls[static_cast<size_t>(result)];
  }

  std::string path_;
  std::unique_ptr<PolicySource> policy_;
};

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_PIPELINE_JOB_ADMISSION_FIXTURE_H_
