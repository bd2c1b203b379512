#include "agent/pipeline/code_index.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/agent/fake_code_source.h"

namespace perfd::agent {
namespace {

// Counts the addresses of each question; fails, and takes its time, on demand.
struct Questions {
  absl::Status error;
  int64_t takes_ns = 0;
  std::vector<size_t> sizes;
};

class SlowCodeSource final : public CodeSource {
 public:
  SlowCodeSource(std::unique_ptr<CodeSource> source, Questions* questions, FakeClock* clock)
      : source_(std::move(source)), questions_(questions), clock_(clock) {}
  const ModuleFacts& facts() const override { return source_->facts(); }
  absl::StatusOr<CodeFacts> Lookup(const std::vector<ElfAddress>& addresses,
                                   absl::Duration timeout) override {
    questions_->sizes.push_back(addresses.size());
    clock_->now_ns += questions_->takes_ns;
    if (!questions_->error.ok()) return questions_->error;
    return source_->Lookup(addresses, timeout);
  }

 private:
  std::unique_ptr<CodeSource> source_;
  Questions* questions_;
  FakeClock* clock_;
};

class CodeIndexTest : public testing::Test {
 protected:
  CodeIndexTest()
      : index_(
            [this](const RawModule& module, ModuleDetail detail) { return Open(module, detail); },
            clock_, [this](int32_t pid) { return pid == alive_; }) {
    module_.key.path = "/app";
    Run(7);
  }
  // Another process has the module mapped from now on.
  void Run(int32_t pid, uint64_t start_ticks = 0) {
    module_.pid = pid;
    module_.process = {pid, start_ticks, 0};
  }
  absl::StatusOr<std::unique_ptr<CodeSource>> Open(const RawModule& module, ModuleDetail detail) {
    ++opens_;
    last_detail_ = detail;
    if (!open_error_.ok()) return open_error_;
    const std::string id = build_id_.empty() ? module.key.path : build_id_;
    FunctionFacts function = LoopyFunction();
    if (!name_.empty()) function.name = name_;
    function.further_parts = further_parts_;
    auto source = std::make_unique<FakeCodeSource>(std::vector{function}, &lookups_, id);
    source->SetFile(file_, has_symbols_);
    if (build_id_ == "-") source->SetCodeHash(code_hash_);
    if (has_debug_file_ && detail == ModuleDetail::kNames) source->LeaveLinesUnread();
    return std::make_unique<SlowCodeSource>(std::move(source), &questions_, &clock_);
  }

  FakeClock clock_;
  absl::Status open_error_;
  std::string build_id_ = "abcd";
  std::string code_hash_;                 // instead, where that is "-"
  std::string name_;                      // of the function; empty: as it is
  std::vector<CodeRange> further_parts_;  // of the function
  FileVersion file_{1, 2, 3000, 4};
  bool has_symbols_ = true;
  bool has_debug_file_ = false;
  ModuleDetail last_detail_ = ModuleDetail::kNames;
  int32_t alive_ = 7;
  Questions questions_;
  int opens_ = 0;
  int lookups_ = 0;
  RawModule module_;
  CodeIndex index_;
};

TEST_F(CodeIndexTest, AsksOnlyForWhatIsMissing) {
  auto code = index_.Learn(module_, {0x100, 0x900}, absl::Seconds(1));
  EXPECT_EQ(lookups_, 1);
  EXPECT_NE(code->FunctionAt(0x400100), nullptr);
  EXPECT_EQ(code->FunctionAt(0x400200), nullptr);
  index_.Learn(module_, {0x1ff, 0x900}, absl::Seconds(1));
  EXPECT_EQ(lookups_, 1) << "same function, and an address known to have none";
  index_.Learn(module_, {0x901}, absl::Seconds(1));
  EXPECT_EQ(lookups_, 2);
}

TEST_F(CodeIndexTest, AFunctionIsFoundByAnyOfItsParts) {
  further_parts_ = {{0x400040, 0x400050}, {0x400800, 0x400810}};
  auto code = index_.Learn(module_, {0x40}, absl::Seconds(1));
  const FunctionFacts* function = code->FunctionAt(0x400100);
  ASSERT_NE(function, nullptr);
  for (const uint64_t inside : {0x400040u, 0x40004fu, 0x400800u, 0x40080fu})
    EXPECT_EQ(code->FunctionAt(inside), function) << inside;
  for (const uint64_t outside : {0x40003fu, 0x400050u, 0x4007ffu, 0x400810u})
    EXPECT_EQ(code->FunctionAt(outside), nullptr) << outside;
  index_.Learn(module_, {0x100, 0x805}, absl::Seconds(1));
  EXPECT_EQ(lookups_, 1);
}

TEST_F(CodeIndexTest, TheSameBuildIdUnderAnotherPathIsKnownAlready) {
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  module_.key.path = "/copy";
  index_.Learn(module_, {0x110}, absl::Seconds(1));
  EXPECT_EQ(opens_, 2);
  EXPECT_EQ(lookups_, 1);
}

TEST_F(CodeIndexTest, AFailedModuleIsTriedAgainLater) {
  open_error_ = absl::PermissionDeniedError("no");
  EXPECT_TRUE(absl::IsPermissionDenied(index_.Learn(module_, {0x100}, absl::Seconds(1))->error));
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  EXPECT_EQ(opens_, 1);
  open_error_ = absl::OkStatus();
  clock_.now_ns += 11 * kNsPerSecond;
  EXPECT_TRUE(index_.Learn(module_, {0x100}, absl::Seconds(1))->error.ok());
  EXPECT_EQ(opens_, 2);
}

TEST_F(CodeIndexTest, IdleReadersEndButTheirKnowledgeStays) {
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  EXPECT_EQ(index_.reader_count(), 1u);
  clock_.now_ns += 31 * kNsPerSecond;
  index_.CloseIdleReaders(30 * kNsPerSecond);
  EXPECT_EQ(index_.reader_count(), 0u);
  index_.Learn(module_, {0x110}, absl::Seconds(1));
  EXPECT_EQ(opens_, 2);
  EXPECT_EQ(lookups_, 1);
}

TEST_F(CodeIndexTest, NoReaderIsOpenedOrKeptWhenNothingIsMissing) {
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  for (int i = 0; i < 40; ++i) {
    clock_.now_ns += kNsPerSecond;
    index_.Learn(module_, {0x110}, absl::Seconds(1));
    index_.CloseIdleReaders(30 * kNsPerSecond);
  }
  EXPECT_EQ(index_.reader_count(), 0u) << "asked once, 40 s ago";
  EXPECT_EQ(opens_, 1);
  index_.Learn(module_, {0x900}, absl::Seconds(1));
  EXPECT_EQ(opens_, 2);
}

TEST_F(CodeIndexTest, TheFilesIdentityIsTrustedOnlyWhileSomebodyHoldsIt) {
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  clock_.now_ns += 29 * kNsPerSecond;
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  clock_.now_ns += 2 * kNsPerSecond;
  index_.CloseIdleReaders(30 * kNsPerSecond);
  ASSERT_EQ(index_.reader_count(), 0u);
  Run(8);
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  EXPECT_EQ(opens_, 1) << "7 still runs";
  alive_ = 8;
  build_id_ = "rebuilt";
  EXPECT_EQ(index_.Learn(module_, {0x100}, absl::Seconds(1))->id, "rebuilt");
  EXPECT_EQ(opens_, 2);
}

TEST_F(CodeIndexTest, LinesOfADebugFileAreReadWhenTheyAreWanted) {
  const auto names = [&](std::vector<FileOffset> offsets) {
    return index_.Learn(module_, offsets, absl::Seconds(1), ModuleDetail::kNames);
  };
  has_debug_file_ = true;
  const auto first = names({0x100});
  EXPECT_TRUE(first->facts.lines_unread);
  names({0x100, 0x110});
  EXPECT_EQ(lookups_, 1);
  const auto lines = index_.Learn(module_, {0x110}, absl::Seconds(1));
  EXPECT_FALSE(lines->facts.lines_unread);
  EXPECT_EQ(opens_, 2);
  EXPECT_EQ(lookups_, 2) << "what was learnt without lines is asked again";
  EXPECT_NE(first->FunctionAt(0x400110), nullptr) << "who holds the old answer keeps it";
  EXPECT_EQ(names({0x120, 0x900}), lines) << "and not forgotten again";
  EXPECT_EQ(opens_, 2);
}

TEST_F(CodeIndexTest, LinesOnceReadStayInTheNextProfile) {
  has_debug_file_ = true;
  index_.Learn(module_, {0x110}, absl::Seconds(1));
  clock_.now_ns += 40 * kNsPerSecond;
  index_.CloseIdleReaders(30 * kNsPerSecond);
  ASSERT_EQ(index_.reader_count(), 0u);
  // Few samples at first, and in a place that is not known yet.
  const auto code = index_.Learn(module_, {0x110, 0x900}, absl::Seconds(1), ModuleDetail::kNames);
  EXPECT_FALSE(code->facts.lines_unread);
  EXPECT_EQ(last_detail_, ModuleDetail::kLines) << "what is new has lines, too";
}

TEST_F(CodeIndexTest, WhatWasKnownStaysWhenItsLinesCannotBeHad) {
  has_debug_file_ = true;
  index_.Learn(module_, {0x100}, absl::Seconds(1), ModuleDetail::kNames);
  questions_.error = absl::DeadlineExceededError("slow");
  const auto slow = index_.Learn(module_, {0x110}, absl::Seconds(1));
  EXPECT_NE(slow->FunctionAt(0x400110), nullptr) << "its lookup failed";
  questions_.error = absl::OkStatus();
  EXPECT_EQ(index_.reader_count(), 1u) << "who answered before goes on";
  EXPECT_TRUE(index_.Learn(module_, {0x900}, absl::Seconds(1))->error.ok());
  clock_.now_ns += 20 * kNsPerSecond;
  const int before = opens_;
  EXPECT_TRUE(index_.Learn(module_, {0x110}, absl::ZeroDuration())->facts.lines_unread);
  EXPECT_EQ(opens_, before) << "no time is left for lines";
  EXPECT_FALSE(index_.Learn(module_, {0x110}, absl::Seconds(1))->facts.lines_unread);
}

TEST_F(CodeIndexTest, ADebugFileThatCannotBeReadIsNotTriedAtEachWindow) {
  has_debug_file_ = true;
  index_.Learn(module_, {0x100}, absl::Seconds(1), ModuleDetail::kNames);
  open_error_ = absl::DeadlineExceededError("slow");
  for (int i = 0; i < 5; ++i) {
    const auto code = index_.Learn(module_, {0x100}, absl::Seconds(1));
    EXPECT_NE(code->FunctionAt(0x400110), nullptr) << "names are still known";
  }
  EXPECT_EQ(opens_, 2);
}

TEST_F(CodeIndexTest, WithoutADebugFileNamesAndLinesAreTheSame) {
  index_.Learn(module_, {0x100}, absl::Seconds(1), ModuleDetail::kNames);
  index_.Learn(module_, {0x110}, absl::Seconds(1));
  EXPECT_EQ(opens_, 1);
  EXPECT_EQ(lookups_, 1);
}

TEST_F(CodeIndexTest, WhatIsKnownOutlivesTheJob) {
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  clock_.now_ns += 29 * kNsPerSecond;
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  clock_.now_ns += 2 * kNsPerSecond;
  index_.CloseIdleReaders(30 * kNsPerSecond);
  alive_ = 0;
  open_error_ = absl::NotFoundError("gone");
  for (int32_t pid : {7, 8}) {
    module_.pid = pid;
    const auto code = index_.Learn(module_, {0x110}, absl::Seconds(1));
    EXPECT_NE(code->FunctionAt(0x400110), nullptr);
    EXPECT_TRUE(code->error.ok()) << "nothing was missing";
  }
  EXPECT_TRUE(absl::IsNotFound(index_.Learn(module_, {0x110, 0x900}, absl::Seconds(1))->error));
}

TEST_F(CodeIndexTest, FewReadersAreKept) {
  build_id_ = "";
  for (int i = 0; i < 300; ++i) {
    clock_.now_ns += kNsPerMs;
    module_.key.path = "/lib" + std::to_string(i);
    index_.Learn(module_, {0x100}, absl::Seconds(1));
    EXPECT_LE(index_.reader_count(), CodeIndex::kMaxReaders);
  }
  EXPECT_EQ(index_.reader_count(), CodeIndex::kMaxReaders);
  const int opens = opens_;
  index_.Learn(module_, {0x901}, absl::Seconds(1));
  EXPECT_EQ(opens_, opens) << "the last one is kept";
  module_.key.path = "/lib291";
  index_.Learn(module_, {0x901}, absl::Seconds(1));
  EXPECT_EQ(opens_, opens + 1);
}

TEST_F(CodeIndexTest, AddressesAreAskedForOnceInBoundedPortions) {
  std::vector<FileOffset> offsets;
  for (uint64_t i = 0; i <= 2 * CodeIndex::kMaxAddresses; ++i)
    offsets.insert(offsets.end(), {0x1000 + i, 0x1000 + i});
  index_.Learn(module_, offsets, absl::Seconds(1));
  EXPECT_EQ(questions_.sizes,
            (std::vector<size_t>{CodeIndex::kMaxAddresses, CodeIndex::kMaxAddresses, 1}));
}

TEST_F(CodeIndexTest, PausesDoubleUpToALimitAndEndWithASuccess) {
  open_error_ = absl::PermissionDeniedError("no");
  int64_t pause = CodeIndex::kMinRetryNs;
  for (int i = 0; i < 8; ++i) {
    index_.Learn(module_, {0x100}, absl::Seconds(1));
    const int opens = opens_;
    clock_.now_ns += pause - 1;
    index_.CloseIdleReaders(30 * kNsPerSecond);
    index_.Learn(module_, {0x100}, absl::Seconds(1));
    EXPECT_EQ(opens_, opens) << "pause " << pause;
    clock_.now_ns += 1;
    pause = std::min(2 * pause, CodeIndex::kMaxRetryNs);
  }
  EXPECT_EQ(pause, CodeIndex::kMaxRetryNs);
  open_error_ = absl::OkStatus();
  EXPECT_TRUE(index_.Learn(module_, {0x100}, absl::Seconds(1))->error.ok());
}

TEST_F(CodeIndexTest, AModuleThatTimesOutGetsAFifthOfTheTimeAtMost) {
  questions_.error = absl::DeadlineExceededError("too slow");
  questions_.takes_ns = 30 * kNsPerSecond;
  const int64_t start = clock_.now_ns;
  while (clock_.now_ns - start < 1200 * kNsPerSecond) {
    EXPECT_FALSE(index_.Learn(module_, {0x100}, absl::Seconds(30))->error.ok());
    clock_.now_ns += kNsPerSecond;
  }
  EXPECT_LE(questions_.sizes.size() * 30, 1200u / 5);
  EXPECT_GE(questions_.sizes.size(), 3u) << "it is tried again";
}

// The name of the function at an address, as a profile of that process learns it.
#define EXPECT_NAMED(expected)                                                            \
  EXPECT_EQ(index_.Learn(module_, {0x100}, absl::Seconds(1))->FunctionAt(0x400100)->name, \
            (expected))

TEST_F(CodeIndexTest, AFileThatWasBuiltAnewIsAnotherOne) {
  name_ = "old";
  EXPECT_NAMED("old");
  for (const bool with_build_id : {true, false}) {
    if (!with_build_id) build_id_ = "path";  // any that both files share
    for (const FileVersion& next : {FileVersion{1, 2, 3000, 5}, FileVersion{1, 2, 3001, 5},
                                    FileVersion{1, 9, 3001, 5}, FileVersion{7, 9, 3001, 5}}) {
      file_ = next;
      name_ = absl::StrCat("new", next.modified_ns, next.bytes, next.inode, next.device);
      Run(module_.pid + 1);  // what ran before has ended
      alive_ = module_.pid;
      clock_.now_ns += CodeIndex::kTrustNs;
      EXPECT_NAMED(name_);
    }
  }
}

TEST_F(CodeIndexTest, AStrippedTwinSaysNothingAboutTheOther) {
  has_symbols_ = false;
  name_ = "sub_400100";
  EXPECT_NAMED("sub_400100");
  has_symbols_ = true;
  name_ = "Alpha";
  Run(module_.pid + 1);
  alive_ = module_.pid;
  clock_.now_ns += CodeIndex::kTrustNs;
  EXPECT_NAMED("Alpha");
}

TEST_F(CodeIndexTest, ProgramsThatComeAndGoAreNotLookedAtEachTime) {
  for (int i = 0; i < 50; ++i) {
    Run(module_.pid + 1);
    alive_ = module_.pid;
    clock_.now_ns += CodeIndex::kTrustNs / 10;
    index_.Learn(module_, {0x100}, absl::Seconds(1));
  }
  EXPECT_GE(opens_, 4);
  EXPECT_LE(opens_, 6);
}

TEST_F(CodeIndexTest, ALibraryWrittenOverUnderALivingProcessIsAnotherOneForWhatBeginsLater) {
  name_ = "old";
  EXPECT_NAMED("old");
  clock_.now_ns += CodeIndex::kTrustNs;
  name_ = "new";
  file_.modified_ns += 1;
  Run(8);  // as old as the first one, which lives
  EXPECT_NAMED("old");
  EXPECT_EQ(opens_, 1) << "a job's ranks are not looked at one by one";
  module_.process.image = 1;  // it has executed another program since
  EXPECT_NAMED("new");
  EXPECT_EQ(opens_, 2);
  EXPECT_NAMED("new");
  EXPECT_EQ(opens_, 2) << "through this process it is known now";

  clock_.now_ns += CodeIndex::kTrustNs;
  alive_ = 8;
  name_ = "newest";
  file_.modified_ns += 1;
  Run(9, uint64_t{1} << 35);  // begins later than anything
  EXPECT_NAMED("newest");
}

TEST_F(CodeIndexTest, WithoutBuildIdACodeIsNamedByItsContents) {
  build_id_ = "-";  // none
  code_hash_ = "00ff";
  EXPECT_EQ(index_.Learn(module_, {0x100}, absl::Seconds(1))->id, "code:00ff");
  module_.key.path = "/other";
  code_hash_ = "";
  EXPECT_EQ(index_.Learn(module_, {0x100}, absl::Seconds(1))->id, "path:/other");
}

}  // namespace
}  // namespace perfd::agent
