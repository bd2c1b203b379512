// A store, and jobs of schedulers to put into it.
#ifndef TESTS_UNIT_DAEMON_STORE_HOOK_TABLE_FIXTURE_H_
#define TESTS_UNIT_DAEMON_STORE_HOOK_TABLE_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>

#include "daemon/store/hook_table.h"
#include "tests/unit/daemon/store/store_fixture.h"

namespace perfd::daemon {

class HookTableTest : public StoreFixture {
 protected:
  void SetUp() override { ASSERT_TRUE(Open().ok()); }

  static HookAdmission Admission(const std::string& job, int64_t seen_ns = 100,
                                 bool profile = false) {
    HookAdmission admission;
    admission.record.job.scheduler = "PBS";
    admission.record.job.cluster = "c";
    admission.record.job.job = job;
    admission.record.job.uid = 1000;
    admission.record.job.user = "alice";
    admission.record.job.account = "physics";
    admission.record.job.partition = "batch";
    admission.record.answer = {HookDecision::kNotChosen, "why", ""};
    admission.record.seen_unix_ns = seen_ns;
    admission.record.wait_ns = 7;
    if (!profile) return admission;
    admission.record.answer.decision = HookDecision::kProfile;
    admission.profile = Profile(1000);
    return admission;
  }

  HookRecord Admit(const HookAdmission& admission) {
    const auto record = store_->AdmitHookJob(admission);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.value_or(HookRecord());
  }

  void Finish(const std::string& id, ProfileState state) {
    ProfileStatus status = *store_->Profile(id);
    status.state = state;
    ASSERT_TRUE(store_->StoreStatus(status).ok());
  }
};

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_STORE_HOOK_TABLE_FIXTURE_H_
