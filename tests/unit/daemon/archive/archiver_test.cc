#include "daemon/archive/archiver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/analysis/jobs/history.h"
#include "core/json/history_json.h"
#include "daemon/archive/archive_entry.h"
#include "tests/unit/client/sample_report.h"
#include "tests/unit/client/sample_verdicts.h"
#include "tests/unit/daemon/archive/archive_fixture.h"

namespace perfd::daemon {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class StoppedClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return mono_ns; }
  int64_t UnixNs() const override { return unix_ns; }
  void Pass(int64_t ns) {
    mono_ns += ns;
    unix_ns += ns;
  }
  int64_t mono_ns = 1000 * kNsPerSecond;
  int64_t unix_ns = 1'700'000'100 * kNsPerSecond;
};

class ArchiverTest : public ArchiveFixture {
 protected:
  ArchiverTest() { Begin(); }
  void Begin(ArchiveLimits limits = {}) {
    ArchiverOptions options;
    options.folder = folder_;
    options.limits = limits;
    options.report = [this](const std::string& id) -> absl::StatusOr<Report> {
      if (!store_error_.ok()) return store_error_;
      Report report = SampleReport();
      report.status.id = id;
      return report;
    };
    options.newest = [this] { return stored_; };
    archiver_ = std::make_unique<Archiver>(std::move(options), clock_);
  }
  static std::string FileOf(const std::string& id) { return "2023/11/14/" + id + ".json"; }

  StoppedClock clock_;
  absl::Status store_error_;
  std::vector<ProfileStatus> stored_;
  std::unique_ptr<Archiver> archiver_;
};

TEST_F(ArchiverTest, AnEntryIsTheReportWithItsSummary) {
  Report report = MeasuredReport();
  report.status.spec.target = {};
  report.status.spec.target.slurm_job = 4712;
  const json entry = json::parse(ArchiveEntry(report));
  EXPECT_EQ(entry["format"], 1);
  EXPECT_THAT(entry["summary"].get<std::string>(), HasSubstr("perfd p-000042: 50% in 1 loop"));
  EXPECT_EQ(entry["job"]["slurm_job"], 4712);
  EXPECT_EQ(entry["job"]["command"], "lulesh2.0");
  EXPECT_EQ(entry["job"]["user"], "alice");
  EXPECT_EQ(entry["job"]["ranks"], 2);
  EXPECT_EQ(entry["job"]["nodes"], json::parse(R"(["node1"])"));
  EXPECT_EQ(entry["job"]["finished_unix_ns"], 1'700'000'061'000'000'000);
  EXPECT_EQ(entry["loops"].size(), 2u);
  EXPECT_EQ(entry["verdicts"].size(), 2u);
  // What is read back for a history is what the report itself would give.
  const auto back = HistoryFromReportJson(ArchiveEntry(report));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, ToHistory(report));
}

TEST_F(ArchiverTest, EveryProfileOnce) {
  archiver_->Add("p-000042");
  archiver_->Add("p-000043");
  archiver_->Add("p-000042");
  EXPECT_EQ(archiver_->Figures().pending, 2u);
  archiver_->Turn();
  EXPECT_THAT(Files(), ElementsAre(FileOf("p-000042"), FileOf("p-000043")));
  const ArchiveFigure figure = archiver_->Figures();
  EXPECT_EQ(figure.written, 2u);
  EXPECT_EQ(figure.pending, 0u);
  EXPECT_EQ(figure.files, 2u);
  EXPECT_GT(figure.bytes, 1000u);
  ASSERT_EQ(archiver_->Checks().size(), 1u);
  EXPECT_TRUE(archiver_->Checks()[0].ok);
}

TEST_F(ArchiverTest, AFolderThatCannotBeWrittenIsTriedAgain) {
  std::ofstream(folder_) << "in the way";
  archiver_->Add("p-000042");
  archiver_->Turn();
  EXPECT_EQ(archiver_->Figures().failures, 1u);
  EXPECT_FALSE(archiver_->Figures().healthy);
  EXPECT_FALSE(archiver_->Checks()[0].ok);
  EXPECT_TRUE(archiver_->Checks()[0].optional);
  EXPECT_THAT(archiver_->Checks()[0].found, HasSubstr(folder_));
  EXPECT_THAT(archiver_->Checks()[0].fix, HasSubstr("1 reports wait"));
  archiver_->Turn();  // not yet
  EXPECT_EQ(archiver_->Figures().failures, 1u);
  // 1 s, 2 s, 4 s .. 60 s.
  for (const int64_t wait : {1, 2, 4, 8, 16, 32, 60, 60}) {
    clock_.Pass(wait * kNsPerSecond - 1);
    const uint64_t before = archiver_->Figures().failures;
    archiver_->Turn();
    EXPECT_EQ(archiver_->Figures().failures, before) << wait;
    clock_.Pass(1);
    archiver_->Turn();
    EXPECT_EQ(archiver_->Figures().failures, before + 1) << wait;
  }
  std::filesystem::remove(folder_);
  clock_.Pass(60 * kNsPerSecond);
  archiver_->Turn();
  EXPECT_THAT(Files(), ElementsAre(FileOf("p-000042")));
  EXPECT_TRUE(archiver_->Figures().healthy);
  EXPECT_EQ(archiver_->Figures().written, 1u);
}

TEST_F(ArchiverTest, OneThatCannotBeWrittenHoldsUpNoOther) {
  std::filesystem::create_directories(folder_ + "/" + FileOf("p-000041") + "/in-the-way");
  archiver_->Add("p-000041");
  archiver_->Add("p-000042");
  archiver_->Turn();
  clock_.Pass(Archiver::kLongestWaitNs);
  archiver_->Turn();
  EXPECT_EQ(archiver_->Figures().written, 1u);
  EXPECT_EQ(archiver_->Figures().pending, 1u);
}

TEST_F(ArchiverTest, WhatTheStoreLostIsDroppedAndCounted) {
  store_error_ = absl::NotFoundError("deleted meanwhile");
  archiver_->Add("p-000042");
  archiver_->Turn();
  EXPECT_EQ(archiver_->Figures().dropped, 1u);
  EXPECT_EQ(archiver_->Figures().pending, 0u);
  store_error_ = absl::UnavailableError("busy");
  archiver_->Add("p-000042");
  archiver_->Turn();
  EXPECT_EQ(archiver_->Figures().dropped, 1u);
  EXPECT_EQ(archiver_->Figures().pending, 1u);
}

TEST_F(ArchiverTest, TheQueueIsBounded) {
  for (size_t i = 0; i < Archiver::kMostPending; ++i) archiver_->Add("p-" + std::to_string(i));
  EXPECT_EQ(archiver_->Figures().dropped, 0u);
  archiver_->Add("p-last");
  EXPECT_EQ(archiver_->Figures().dropped, 1u);
  EXPECT_EQ(archiver_->Figures().pending, Archiver::kMostPending);
}

TEST_F(ArchiverTest, CatchesUpWithTheStore) {
  const ProfileStatus done = SampleReport().status;
  ProfileStatus running = done, old = done, recent = done, archived = done;
  running.id = "p-000044";
  running.state = ProfileState::kSampling;
  old.id = "p-000001";
  old.finished_unix_ns = clock_.unix_ns - Archiver::kCatchUpNs - 1;
  recent.id = "p-000002";
  recent.finished_unix_ns = clock_.unix_ns - Archiver::kCatchUpNs;
  archived.id = "p-000003";
  ASSERT_TRUE(ArchiveFolder(folder_).Write(archived.id, archived.finished_unix_ns, "here").ok());
  stored_ = {running, done, archived, recent, old};
  archiver_->CatchUp();
  EXPECT_EQ(archiver_->Figures().pending, 2u);
  archiver_->Turn();
  EXPECT_EQ(Read(FileOf("p-000003")), "here");
  EXPECT_EQ(archiver_->Figures().written, 2u);
}

TEST_F(ArchiverTest, NothingIsOldInTheFirstHour) {
  Begin({.days = 1, .max_bytes = 0});
  archiver_->Add("p-000042");
  archiver_->Turn();
  EXPECT_EQ(archiver_->Figures().files, 1u);
  clock_.unix_ns += 1000 * 24 * 3600 * kNsPerSecond;  // somebody set it
  clock_.Pass(3600 * kNsPerSecond);
  archiver_->Turn();
  EXPECT_EQ(archiver_->Figures().files, 1u);  // for ages, only time that passed counts
  clock_.Pass(3 * 24 * 3600 * kNsPerSecond);
  archiver_->Turn();
  EXPECT_EQ(archiver_->Figures().files, 0u);
  EXPECT_EQ(archiver_->Figures().deleted, 1u);
}

TEST_F(ArchiverTest, AfterTheEndNothingIsWrittenAndNothingSwept) {
  ASSERT_TRUE(ArchiveFolder(folder_).Write("p-000003", clock_.unix_ns, "here").ok());
  archiver_->Add("p-000042");
  archiver_->Stop();
  archiver_->Turn();
  EXPECT_EQ(archiver_->Figures().written, 0u);
  EXPECT_EQ(archiver_->Figures().files, 0u) << "the folder was gone through";
}

TEST_F(ArchiverTest, ItsOwnThreadDoesItAll) {
  stored_ = {SampleReport().status};
  archiver_->Begin();
  archiver_->Add("p-000043");
  const SystemClock clock;
  const int64_t until_ns = clock.MonotonicNs() + 20 * kNsPerSecond;
  while (archiver_->Figures().written < 2 && clock.MonotonicNs() < until_ns)
    std::this_thread::yield();
  EXPECT_EQ(archiver_->Figures().written, 2u);
  archiver_->Stop();
  archiver_->Stop();
}

TEST_F(ArchiverTest, WithoutAFolderThereIsNoArchive) {
  folder_.clear();
  Begin();
  archiver_->Begin();
  archiver_->Add("p-000042");
  archiver_->Turn();
  EXPECT_FALSE(archiver_->on());
  EXPECT_EQ(archiver_->Figures().pending, 0u);
  EXPECT_TRUE(archiver_->Checks().empty());
}

}  // namespace
}  // namespace perfd::daemon
