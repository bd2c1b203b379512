// Who may have which process, and what ends that. Each field on its own, on a made-up /proc.
#include "agent/procfs/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
constexpr uint32_t kAlice = 4000001;
constexpr uint32_t kBob = 4000002;
const Requester kAsAlice{.uid = kAlice, .name = "alice", .privileged = false};
const Requester kAsRoot{.uid = 0, .name = "root", .privileged = true};

class AdmissionTest : public testing::Test {
 protected:
  Admission Read(FakeProcess process) {
    process.pid = 7;
    if (process.uid == 1000) process.uid = kAlice;
    proc_.AddProcess(process);
    auto admission = ReadAdmission(procfs_, 7);
    EXPECT_TRUE(admission.ok()) << admission.status();
    return admission.value_or(Admission{});
  }
  void AddThread(int32_t tid, const std::string& uids, const std::string& capabilities = "0") {
    proc_.Write(absl::StrCat("7/task/", tid, "/status"),
                absl::StrCat("Name:\tt\nState:\tR (x)\nTgid:\t7\nUid:\t", uids,
                             "\nGid:\t100\t100\t100\t100\nCapPrm:\t", capabilities, "\n"));
  }

  FakeProc proc_;
  ProcFs procfs_{proc_.root()};
};

TEST_F(AdmissionTest, OnesOwnPlainProcess) {
  const Admission admission = Read({});
  EXPECT_EQ(admission.start_ticks, 100u);
  EXPECT_EQ(admission.rights.uids, (std::array<uint32_t, 3>{kAlice, kAlice, kAlice}));
  EXPECT_TRUE(CheckRequester(admission, kAsAlice, "it").ok());
  EXPECT_TRUE(CheckRequester(admission, kAsRoot, "it").ok());
  EXPECT_TRUE(CheckUnchanged(admission, procfs_, 7).ok());
}

TEST_F(AdmissionTest, WhatTheKernelWouldRefuseIsRefused) {
  const auto refusal = [&](const Admission& admission) {
    const absl::Status status = CheckRequester(admission, kAsAlice, "it");
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_TRUE(CheckRequester(admission, kAsRoot, "it").ok());
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(Read({.uid = kBob})), HasSubstr("may profile only processes of uid 4000001"));
  EXPECT_THAT(refusal(Read({.effective_uid = 0})), HasSubstr("(setuid)"));
  EXPECT_THAT(refusal(Read({.effective_gid = 5})), HasSubstr("(setgid)"));
  Admission capable = Read({});
  capable.rights.capabilities = 0x2004;
  EXPECT_THAT(refusal(capable), HasSubstr("has capabilities (0x2004)"));
  Admission guarded = Read({});
  guarded.dumpable = false;
  EXPECT_THAT(refusal(guarded), HasSubstr("PR_SET_DUMPABLE"));
}

TEST_F(AdmissionTest, CapabilitiesInANameSpaceOfOnesOwnAreOnesOwn) {
  Admission contained = Read({});
  contained.rights.capabilities = 0x1ffffffffff;
  contained.namespace_owner = kAlice;
  EXPECT_TRUE(CheckRequester(contained, kAsAlice, "it").ok());
  contained.namespace_owner = kBob;
  EXPECT_FALSE(CheckRequester(contained, kAsAlice, "it").ok());
}

// A root process without the right to be dumped looks like one with it.
TEST_F(AdmissionTest, FilesOfAnotherOwnerMeanItIsNotDumpable) {
  proc_.Write("7/fd/0", "");
  const Admission admission = Read({});
  EXPECT_EQ(admission.dumpable, ::getuid() == kAlice);
}

TEST_F(AdmissionTest, ThreadsWithOtherRightsAreRefused) {
  (void)Read({});
  AddThread(8, absl::StrCat(kAlice, "\t0\t0\t0"));
  EXPECT_TRUE(absl::IsPermissionDenied(ReadAdmission(procfs_, 7).status()));
  AddThread(8, absl::StrCat(kAlice, "\t", kAlice, "\t", kAlice, "\t", kAlice), "4");
  EXPECT_TRUE(absl::IsPermissionDenied(ReadAdmission(procfs_, 7).status()));
  AddThread(8, absl::StrCat(kAlice, "\t", kAlice, "\t", kAlice, "\t", kAlice));
  EXPECT_TRUE(ReadAdmission(procfs_, 7).ok());
}

TEST_F(AdmissionTest, ZombiesAndOthersUnderThisPidAreGone) {
  const Admission admitted = Read({});
  proc_.AddProcess({.pid = 7, .uid = kAlice, .start_ticks = 101});
  EXPECT_TRUE(absl::IsNotFound(CheckUnchanged(admitted, procfs_, 7)));
  proc_.AddProcess({.pid = 7, .uid = kAlice, .state = 'Z'});
  EXPECT_TRUE(absl::IsNotFound(CheckUnchanged(admitted, procfs_, 7)));
  proc_.Remove(7);
  EXPECT_TRUE(absl::IsNotFound(CheckUnchanged(admitted, procfs_, 7)));
}

TEST_F(AdmissionTest, EveryFieldCounts) {
  const Admission admitted = Read({});
  struct Change {
    const char* what;
    std::function<void(Admission&)> make;
    absl::StatusCode code;
    bool rights;  // an exec keeps them
  };
  const std::vector<Change> changes = {
      {"uid", [](Admission& a) { a.rights.uids[1] = 0; }, absl::StatusCode::kPermissionDenied,
       true},
      {"saved", [](Admission& a) { a.rights.uids[2] = 0; }, absl::StatusCode::kPermissionDenied,
       true},
      {"gid", [](Admission& a) { a.rights.gids[0] = 0; }, absl::StatusCode::kPermissionDenied,
       true},
      {"cap", [](Admission& a) { a.rights.capabilities = 1; }, absl::StatusCode::kPermissionDenied,
       true},
      {"dump", [](Admission& a) { a.dumpable = false; }, absl::StatusCode::kPermissionDenied, true},
      {"space", [](Admission& a) { a.user_namespace = 9; }, absl::StatusCode::kPermissionDenied,
       true},
      {"start", [](Admission& a) { a.start_ticks = 9; }, absl::StatusCode::kNotFound, true},
      {"stack", [](Admission& a) { a.stack_start = 9; }, absl::StatusCode::kNotFound, false},
      {"inode", [](Admission& a) { a.executable_inode = 9; }, absl::StatusCode::kNotFound, false},
      {"device", [](Admission& a) { a.executable_device = 9; }, absl::StatusCode::kNotFound, false},
  };
  for (const Change& change : changes) {
    Admission now = admitted;
    change.make(now);
    EXPECT_EQ(CheckUnchanged(admitted, now, 7).code(), change.code) << change.what;
    EXPECT_EQ(CheckSameRights(admitted, now, 7).ok(), !change.rights) << change.what;
  }
}

TEST(OwnAdmissionTest, OfThisProcess) {
  const auto admission = ReadAdmission(ProcFs(), ::getpid());
  ASSERT_TRUE(admission.ok()) << admission.status();
  EXPECT_EQ(admission->rights.uids[1], ::geteuid());
  EXPECT_TRUE(admission->dumpable);
  EXPECT_NE(admission->executable_inode, 0u);
  EXPECT_NE(admission->stack_start, 0u);
  EXPECT_NE(admission->user_namespace, 0u);
  EXPECT_TRUE(CheckUnchanged(*admission, ProcFs(), ::getpid()).ok());
}

}  // namespace
}  // namespace perfd::agent
