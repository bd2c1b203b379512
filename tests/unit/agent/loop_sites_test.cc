#include "agent/pipeline/loop_sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/fake_code_source.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kBase = 0x10000000;  // where /app's 0x400000 minus 0x400000 lies

// Takes its time with every question.
class SlowSource final : public CodeSource {
 public:
  SlowSource(FakeClock* clock, std::vector<absl::Duration>* timeouts)
      : source_({LoopyFunction(), FarFunction()}, &lookups_), clock_(clock), timeouts_(timeouts) {}
  const ModuleFacts& facts() const override { return source_.facts(); }
  absl::StatusOr<CodeFacts> Lookup(const std::vector<ElfAddress>& addresses,
                                   absl::Duration timeout) override {
    timeouts_->push_back(timeout);
    clock_->now_ns += 2 * kNsPerSecond;
    return source_.Lookup(addresses, timeout);
  }

 private:
  int lookups_ = 0;
  FakeCodeSource source_;
  FakeClock* const clock_;
  std::vector<absl::Duration>* const timeouts_;
};

class LoopPlacesTest : public ::testing::Test {
 protected:
  LoopPlacesTest()
      : index_([this](const RawModule& module, ModuleDetail) { return Open(module); }, clock_,
               ProcessIsAlive,
               {.read_memory = [this](int32_t, RuntimeAddress, size_t bytes)
                    -> absl::StatusOr<std::string> { return std::string(bytes, memory_); },
                .read_perf_map = nullptr}) {
    image_.rank.pid = 42;
    image_.rank.rank = 7;
    image_.rank.uid = 1000;
    image_.admission.rights.gids = {100, 100, 100};
    image_.executable = "/app";
    image_.mappings = {Mapping(kBase + 0x400000, 0x100000, 0)};
  }

  static CodeMapping Mapping(uint64_t start, uint64_t bytes, uint64_t file_offset,
                             std::string path = "/app") {
    CodeMapping mapping;
    mapping.start = start;
    mapping.end = start + bytes;
    mapping.file_offset = file_offset;
    mapping.inode = 5;
    mapping.path = std::move(path);
    return mapping;
  }

  static MeasureLoop Target(uint64_t header = 0x400140) {
    return {.loop_id = "l",
            .location_key = "k",
            .module_id = "abcd",
            .module_path = "/app",
            .function_low = 0x400100,
            .header = header};
  }

  // Its text beyond the first page lies in anonymous memory.
  void MoveText() {
    CodeMapping moved = Mapping(kBase + 0x401000, 0xff000, 0, "[moved code of /app]");
    moved.inode = 0;
    moved.beside.emplace();
    moved.beside->start = kBase + 0x400000;
    moved.beside->end = kBase + 0x401000;
    moved.beside->inode = 5;
    moved.beside->path = "/app";
    image_.mappings = {moved};
  }

  LoopSite Place(const MeasureLoop& loop) {
    return LocateLoops(image_, {loop}, index_, absl::Seconds(20)).loops.at(0);
  }

  absl::StatusOr<std::unique_ptr<CodeSource>> Open(const RawModule& module) {
    opened_.push_back(module);
    if (!open_status_.ok()) return open_status_;
    if (slow_) return std::make_unique<SlowSource>(&clock_, &timeouts_);
    const auto other = other_builds_.find(module.key.inode);
    return std::make_unique<FakeCodeSource>(
        std::vector{LoopyFunction(), FarFunction()}, &lookups_,
        other == other_builds_.end() ? build_id_ : other->second);
  }

  FakeClock clock_;
  ProcessImage image_;
  std::string build_id_ = "abcd";
  std::map<uint64_t, std::string> other_builds_;  // by inode
  absl::Status open_status_;
  bool slow_ = false;
  char memory_ = FakeCodeSource::kByte;  // of the process
  std::vector<absl::Duration> timeouts_;
  std::vector<RawModule> opened_;
  int lookups_ = 0;
  CodeIndex index_;
};

TEST_F(LoopPlacesTest, FindsTheFunctionAndHowFarItWasMoved) {
  const RankLoops places = LocateLoops(image_, {Target()}, index_, absl::Seconds(20));
  EXPECT_EQ(places.rank, image_.rank);
  ASSERT_EQ(places.loops.size(), size_t{1});
  EXPECT_EQ(places.loops[0].refusal, "");
  EXPECT_EQ(places.loops[0].target, Target());
  EXPECT_EQ(places.loops[0].function, LoopyFunction());
  EXPECT_EQ(places.loops[0].bias, LoadBias(kBase, 0));
  // The reader works with the rights of the rank.
  ASSERT_EQ(opened_.size(), size_t{1});
  EXPECT_EQ(opened_[0].pid, 42);
  EXPECT_EQ(opened_[0].uid, 1000u);
  EXPECT_EQ(opened_[0].gid, 100u);
  EXPECT_EQ(opened_[0].kind, ModuleKind::kProgram);
}

TEST_F(LoopPlacesTest, CodeInTwoMappingsHasTheBiasOfItsOwn) {
  image_.mappings = {Mapping(0x70000000, 0x1000, 0), Mapping(0x70010000, 0x1000, 0x2000)};
  EXPECT_EQ(Place(Target()).bias, LoadBias(0x70000000, 0x400000));
  const LoopSite far = Place(Target(0x402140));
  EXPECT_EQ(far.refusal, "");
  EXPECT_EQ(far.bias, LoadBias(0x70010000, 0x402000));
  EXPECT_EQ(far.function.low, 0x402100u);
}

// As dlmopen has it: samples of both are one loop's.
TEST_F(LoopPlacesTest, CodeThatIsMappedTwiceIsRefused) {
  image_.mappings.push_back(Mapping(kBase + 0x1400000, 0x100000, 0));
  EXPECT_THAT(Place(Target()).refusal, HasSubstr("at several places"));
  image_.mappings.back() = Mapping(kBase + 0x1400000, 0x100000, 0x200000);  // of another part
  EXPECT_EQ(Place(Target()).refusal, "");
}

TEST_F(LoopPlacesTest, ACopyBesideTheFileIsAsIfItWereMappedTwice) {
  CodeMapping copy = Mapping(kBase + 0x1400000, 0x100000, 0, "/copy");
  copy.inode = 9;
  MeasureLoop of_copy = Target();
  of_copy.module_path = "/copy";
  EXPECT_EQ(Place(Target()).refusal, "") << "which makes it known, as samples do";
  const std::vector<CodeMapping> file = std::exchange(image_.mappings, {copy});
  EXPECT_EQ(Place(of_copy).refusal, "");
  image_.mappings.push_back(file[0]);
  EXPECT_THAT(Place(Target()).refusal, HasSubstr("at several places"));
}

// As an interpreter leaves it behind that loads a library anew once it was installed again.
TEST_F(LoopPlacesTest, AnotherBuildOfTheSameNameIsNoCopy) {
  EXPECT_EQ(Place(Target()).refusal, "");
  other_builds_[9] = "ef01";
  CodeMapping other = Mapping(kBase + 0x1400000, 0x100000, 0);
  other.inode = 9;
  image_.mappings.push_back(other);
  EXPECT_EQ(Place(Target()).refusal, "");
}

TEST_F(LoopPlacesTest, MovedCodeIsFoundWhereItBelongs) {
  MoveText();
  const LoopSite site = Place(Target(0x402140));
  EXPECT_EQ(site.refusal, "");
  EXPECT_TRUE(site.moved);
  EXPECT_EQ(site.bias, LoadBias(kBase, 0));
  EXPECT_EQ(site.function.low, 0x402100u);
  EXPECT_EQ(opened_.at(0).key.path, "/app");
  EXPECT_EQ(Place(Target()).refusal, "the rank has not loaded /app") << "that page is not moved";
}

TEST_F(LoopPlacesTest, MovedCodeThatIsNotTheFilesIsRefused) {
  MoveText();
  memory_ = 'x';
  EXPECT_THAT(Place(Target(0x402140)).refusal, HasSubstr("its bytes are not those of the file"));
}

TEST_F(LoopPlacesTest, WhatIsStillMappedFromTheFileIsNotMoved) {
  MoveText();
  image_.mappings.push_back(Mapping(kBase + 0x400000, 0x1000, 0));
  const LoopSite site = Place(Target());
  EXPECT_EQ(site.refusal, "");
  EXPECT_FALSE(site.moved);
  EXPECT_TRUE(Place(Target(0x402140)).moved);
}

// The last byte of a mapping belongs to it, the next does not.
TEST_F(LoopPlacesTest, AMappingEndsWhereItEnds) {
  image_.mappings = {Mapping(0x70000000, 0x141, 0)};
  EXPECT_EQ(Place(Target()).refusal, "");
  image_.mappings = {Mapping(0x70000000, 0x140, 0)};
  EXPECT_EQ(Place(Target()).refusal, "its code is not mapped in the rank");
  image_.mappings = {Mapping(0x70000000, 0x1000, 0x140)};
  EXPECT_EQ(Place(Target()).refusal, "");
  image_.mappings = {Mapping(0x70000000, 0x1000, 0x141)};
  EXPECT_EQ(Place(Target()).refusal, "its code is not mapped in the rank");
}

TEST_F(LoopPlacesTest, AnotherFileAtThisOffsetIsNotIt) {
  image_.mappings = {Mapping(0x60000000, 0x1000, 0, "/lib/other.so"),
                     Mapping(0x70000000, 0x1000, 0)};
  EXPECT_EQ(Place(Target()).bias, LoadBias(0x70000000, 0x400000));
}

TEST_F(LoopPlacesTest, SaysWhatTheRankHasNotLoaded) {
  MeasureLoop loop = Target();
  loop.module_path = "/lib/libfoo.so";
  EXPECT_EQ(Place(loop).refusal, "the rank has not loaded /lib/libfoo.so");
  EXPECT_TRUE(opened_.empty());
}

// Orders carry paths as they are shown; those of the kernel are bytes.
TEST_F(LoopPlacesTest, APathThatIsNotUtf8IsThatOfItsFile) {
  MeasureLoop loop = Target();
  loop.module_path = "/b?ton ?? x/libk?.so";
  image_.mappings.push_back(Mapping(0x70000000, 0x100000, 0, "/b\xe9ton \xe2\x82 x/libk\xe4.so"));
  const LoopSite place = Place(loop);
  EXPECT_EQ(place.refusal, "");
  EXPECT_EQ(place.bias, LoadBias(0x70000000, 0x400000));
  ASSERT_EQ(opened_.size(), size_t{1});
  EXPECT_EQ(opened_[0].key.path, "/b\xe9ton \xe2\x82 x/libk\xe4.so");
}

TEST_F(LoopPlacesTest, OfFilesThatAreShownAlikeTheBuildTellsWhich) {
  MeasureLoop loop = Target();
  loop.module_path = "/libk?.so";
  image_.mappings = {Mapping(0x60000000, 0x100000, 0, "/libk\xe4.so"),
                     Mapping(0x70000000, 0x100000, 0, "/libk\xf6.so")};
  image_.mappings[0].inode = 6;
  other_builds_[6] = "ef01";
  EXPECT_EQ(Place(loop).bias, LoadBias(0x70000000, 0x400000));
}

TEST_F(LoopPlacesTest, AFileThatWasReplacedSinceItWasMappedDoesNotHideTheNewOne) {
  image_.mappings = {Mapping(0x60000000, 0x100000, 0), Mapping(0x70000000, 0x100000, 0)};
  image_.mappings[0].inode = 6;
  other_builds_[6] = "ef01";
  EXPECT_EQ(Place(Target()).bias, LoadBias(0x70000000, 0x400000));
}

// The loop was found in a copy of the file that another rank has elsewhere.
TEST_F(LoopPlacesTest, ACopyElsewhereIsKnownByItsBuild) {
  image_.mappings.push_back(Mapping(0x70000000, 0x100000, 0, "/tmp/job7/libfoo.so"));
  image_.mappings.back().inode = 6;
  other_builds_[6] = "ef01";
  MeasureLoop loop = Target();
  loop.module_id = "ef01";
  loop.module_path = "/home/alice/libfoo.so";
  EXPECT_EQ(Place(loop).refusal, "the rank has not loaded /home/alice/libfoo.so");
  MeasureLoop here = loop;  // once it has been read on this node
  here.module_path = "/tmp/job7/libfoo.so";
  EXPECT_EQ(Place(here).refusal, "");
  EXPECT_EQ(Place(loop).refusal, "");
  EXPECT_EQ(Place(loop).bias, LoadBias(0x70000000, 0x400000));
}

TEST_F(LoopPlacesTest, RuntimesAreNeverAlteredNotEvenRead) {
  MeasureLoop loop = Target();
  loop.module_path = "/usr/lib/x86_64-linux-gnu/libmpi.so.40";
  image_.mappings.push_back(Mapping(0x70000000, 0x100000, 0, loop.module_path));
  EXPECT_THAT(Place(loop).refusal, HasSubstr("never altered"));
  EXPECT_TRUE(opened_.empty());
}

TEST_F(LoopPlacesTest, AnotherBuildHasOtherLoops) {
  build_id_ = "ef01";
  EXPECT_EQ(Place(Target()).refusal, "the rank runs another build of /app");
}

TEST_F(LoopPlacesTest, WithoutABuildIdThePathIsTheName) {
  build_id_ = "";
  MeasureLoop loop = Target();
  loop.module_id = "path:/app";
  EXPECT_EQ(Place(loop).refusal, "");
}

TEST_F(LoopPlacesTest, CodeThatCannotBeReadKeepsTheReason) {
  open_status_ = absl::PermissionDeniedError("may not open /app");
  EXPECT_EQ(Place(Target()).refusal, "its code cannot be read: may not open /app");
}

TEST_F(LoopPlacesTest, AHeaderOutsideTheFileIsNotMapped) {
  image_.mappings = {Mapping(kBase + 0x400000, 0x200000, 0)};  // more than the segment has
  EXPECT_EQ(Place(Target(0x500000)).refusal, "its code is not mapped in the rank");
  EXPECT_EQ(Place(Target(0x3fffff)).refusal, "its code is not mapped in the rank");
}

TEST_F(LoopPlacesTest, AHeaderInNoFunctionIsSaidToBe) {
  EXPECT_EQ(Place(Target(0x400800)).refusal, "its function is not known");
}

TEST_F(LoopPlacesTest, OneLoopThatIsNotThereLeavesTheOthersInOrder) {
  const RankLoops places = LocateLoops(image_, {Target(0x402140), Target(0x400800), Target()},
                                       index_, absl::Seconds(20));
  ASSERT_EQ(places.loops.size(), size_t{3});
  EXPECT_EQ(places.loops[0].function.low, 0x402100u);
  EXPECT_NE(places.loops[1].refusal, "");
  EXPECT_EQ(places.loops[2].function.low, 0x400100u);
}

// All loops of a rank together wait no longer than they are given.
TEST_F(LoopPlacesTest, TheTimeoutIsForAllLoopsTogether) {
  slow_ = true;
  LocateLoops(image_, {Target(), Target(0x402140), Target(0x400800), Target(0x400900)}, index_,
              absl::Seconds(5));
  // Each question takes 2 s; the first is about where the mapping begins.
  ASSERT_GE(timeouts_.size(), size_t{3});
  EXPECT_EQ(timeouts_[0], absl::Seconds(5));
  EXPECT_EQ(timeouts_[2], absl::Seconds(1));
  for (size_t i = 3; i < timeouts_.size(); ++i) EXPECT_EQ(timeouts_[i], absl::ZeroDuration());
}

TEST_F(LoopPlacesTest, NoLoopsNoQuestions) {
  EXPECT_TRUE(LocateLoops(image_, {}, index_, absl::Seconds(5)).loops.empty());
  EXPECT_TRUE(opened_.empty());
}

}  // namespace
}  // namespace perfd::agent
