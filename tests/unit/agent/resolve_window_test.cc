#include "agent/pipeline/resolve_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "agent/pipeline/read_budget.h"
#include "tests/unit/agent/fake_code_source.h"

namespace perfd::agent {
namespace {

class ResolveWindowTest : public testing::Test {
 protected:
  ResolveWindowTest()
      : index_(
            [this](const RawModule& module,
                   ModuleDetail detail) -> absl::StatusOr<std::unique_ptr<CodeSource>> {
              if (module.key.path == "/gone") return absl::NotFoundError("no such file");
              details_[module.key.path] = detail;
              auto source = std::make_unique<FakeCodeSource>(functions_, &lookups_);
              source->SetLinesProblem(lines_problem_);
              return source;
            },
            clock_, ProcessIsAlive,
            {.read_memory = [this](int32_t pid, RuntimeAddress at,
                                   size_t bytes) -> absl::StatusOr<std::string> {
               if (pid != kPid) return absl::NotFoundError("gone");
               std::string memory(bytes, FakeCodeSource::kByte);
               if (at == other_page_) memory[bytes / 2] = 'x';
               return memory;
             },
             .read_perf_map = [this](const ProcessId&, uint32_t) -> absl::StatusOr<std::string> {
               return perf_map_;
             }}) {}

  // One sample at a run-time address of anonymous code.
  CodeLocation LocateAnonymous(RawModule module, uint64_t address) {
    module.pid = kPid;
    module.process = {kPid, 1, 0};
    return LocateIn(module, address);
  }

  // /app is loaded at kLoaded (of 0x400000); its headers, which lie below, are still mapped.
  static RawModule Moved(ModuleKind kind = ModuleKind::kProgram) {
    RawModule module;
    module.key.path = "[moved code of /app]";
    module.key.process = kPid;
    module.kind = ModuleKind::kMoved;
    module.map_start = kLoaded + 0x1000;
    module.map_end = kLoaded + 0x100000;
    module.moved.emplace();
    module.moved->kind = kind;
    module.moved->beside.start = kLoaded;
    module.moved->beside.end = kLoaded + 0x1000;
    module.moved->beside.path = "/app";
    return module;
  }

  // One sample at a file offset of a module of this kind.
  CodeLocation Locate(ModuleKind kind, uint64_t file_offset, const char* path = "/app") {
    RawModule module;
    module.key.path = path;
    module.kind = kind;
    return LocateIn(module, file_offset);
  }

  CodeLocation LocateIn(const RawModule& module, uint64_t file_offset) {
    RawWindow raw;
    raw.modules = {module};
    raw.threads = {{0, 1, 1}};
    raw.rows = {
        {0, {.kind = RawLocation::Kind::kModule, .module = 0, .file_offset = file_offset}, 2, 20}};
    Window window = ResolveWindow(std::move(raw), index_, absl::Seconds(1), &unreadable_);
    EXPECT_EQ(window.rows.size(), 1u);
    EXPECT_EQ(window.rows[0].samples, 2u);
    EXPECT_EQ(window.rows[0].weight, 20u);
    return window.locations.at(window.rows[0].location);
  }

  static constexpr int32_t kPid = 42;
  static constexpr uint64_t kLoaded = 0x7000'0000'0000;
  FakeClock clock_;
  std::vector<FunctionFacts> functions_{LoopyFunction()};
  RuntimeAddress other_page_ = 0;  // whose bytes are not the file's
  std::string perf_map_;
  std::map<std::string, ModuleDetail> details_;  // asked for, by path
  int lookups_ = 0;
  LinesProblem lines_problem_ = LinesProblem::kNone;
  CodeIndex index_;
  UnreadableModules unreadable_;
};

TEST_F(ResolveWindowTest, InnermostLoopOfTheProgram) {
  const CodeLocation location = Locate(ModuleKind::kProgram, 0x144);
  EXPECT_EQ(location.category, Category::kLoop);
  EXPECT_EQ(location.function, "kernel");
  ASSERT_TRUE(location.loop.has_value());
  EXPECT_EQ(location.loop->header, 0x400140u);
  EXPECT_EQ(location.source.first_line, 10);
  EXPECT_EQ(location.module_id, "abcd");
}

TEST_F(ResolveWindowTest, LinesAreReadOfTheProgramAndWhereManySamplesAre) {
  RawWindow raw;
  raw.threads = {{0, 1, 1}};
  const auto add = [&](const char* path, ModuleKind kind, uint64_t samples) {
    RawModule module;
    module.key.path = path;
    module.kind = kind;
    const auto index = static_cast<uint32_t>(raw.modules.size());
    raw.modules.push_back(module);
    raw.rows.push_back({0,
                        {.kind = RawLocation::Kind::kModule, .module = index, .file_offset = 0x144},
                        samples,
                        samples});
  };
  add("/app", ModuleKind::kProgram, 1);
  add("/libhot.so", ModuleKind::kLibrary, 900);
  add("/libmpi.so", ModuleKind::kRuntime, 80);
  add("/libc.so.6", ModuleKind::kRuntime, 19);
  ResolveWindow(std::move(raw), index_, absl::Seconds(1), &unreadable_);
  EXPECT_EQ(details_["/app"], ModuleDetail::kLines);
  EXPECT_EQ(details_["/libhot.so"], ModuleDetail::kLines);
  EXPECT_EQ(details_["/libmpi.so"], ModuleDetail::kLines);
  EXPECT_EQ(details_["/libc.so.6"], ModuleDetail::kNames);
}

SampledAccess Load(uint64_t latency) {
  SampledAccess access;
  access.period = 10;
  access.access.latency_cycles = latency;
  access.access.source.operation = MemoryOperation::kLoad;
  access.access.source.level = MemoryLevel::kL2;
  return access;
}

// Each instruction keeps its own figures, and has the loop that it is in.
TEST_F(ResolveWindowTest, AccessesToMemoryAreOfTheirLoopAndInstruction) {
  WindowBuilder builder;
  builder.memory().SetEvents({{"mem-loads", 30}});
  RawModule module;
  module.key.path = "/app";
  const auto at = [&](uint64_t offset) -> RawLocation {
    return {.kind = RawLocation::Kind::kModule,
            .module = builder.Module(module),
            .file_offset = offset};
  };
  builder.memory().Count(0, 100, at(0x144), Load(7));
  builder.memory().Count(0, 100, at(0x144), Load(9));
  builder.memory().Count(0, 100, at(0x148), Load(90));
  builder.memory().Count(1, 101, at(0x144), Load(7));
  builder.memory().Count(0, 100, {.kind = RawLocation::Kind::kKernel}, Load(7));
  const Window window = ResolveWindow(builder.Drain(), index_, absl::Seconds(1), &unreadable_);
  const WindowMemory& memory = window.findings.memory;
  ASSERT_EQ(memory.rows.size(), 4u);
  EXPECT_EQ(memory.events.at(0).latency_threshold, 30u);
  for (const MemoryRow& row : memory.rows) {
    const CodeLocation& location = window.locations.at(row.location);
    if (location.category == Category::kKernel) {
      EXPECT_EQ(row.instruction, ElfAddress(0));
      continue;
    }
    EXPECT_EQ(location.function, "kernel");
    EXPECT_EQ(location.loop->header, 0x400140u);
    const bool first = row.instruction == ElfAddress(0x400144);
    EXPECT_TRUE(first || row.instruction == ElfAddress(0x400148));
    EXPECT_EQ(row.profile.all.samples, first && row.rank == 0 ? 2u : 1u);
  }
  EXPECT_TRUE(builder.Drain().findings.memory.events.empty()) << "nothing was sampled since";
}

TEST_F(ResolveWindowTest, AccessesBeyondTheRowsAreCounted) {
  MemoryCounter counter;
  for (size_t i = 0; i < kMaxRawMemoryRows + 3; ++i)
    counter.Count(0, 100, {.kind = RawLocation::Kind::kModule, .module = 0, .file_offset = i}, Load(7));
  counter.Count(0, 100, {.kind = RawLocation::Kind::kModule, .module = 0, .file_offset = 0}, Load(7));
  const RawMemory memory = counter.Drain();
  EXPECT_EQ(memory.rows.size(), kMaxRawMemoryRows + 1);
  EXPECT_EQ(memory.rows.back().at.kind, RawLocation::Kind::kOther);
  EXPECT_EQ(memory.rows.back().profile.all.samples, 3u) << "they are of no place, and counted all the same";
  EXPECT_EQ(memory.lost, 0u);
  EXPECT_EQ(memory.rows[0].profile.all.samples, 2u);
}

// perfd would refuse the window, and it would be sent again for ever.
TEST_F(ResolveWindowTest, LoadsOfOneWindowTakeNoLongerThanPerfdTakesThem) {
  MemoryCounter counter;
  SampledAccess load = Load(1000);
  load.period = uint64_t{1} << 38;
  for (int i = 0; i < 8; ++i) counter.Count(0, 100, {.kind = RawLocation::Kind::kKernel}, load);
  const RawMemory memory = counter.Drain();
  EXPECT_EQ(memory.rows[0].profile.all.samples, 8u);
  EXPECT_EQ(memory.rows[0].profile.without_latency, 4u);
  EXPECT_LE(memory.rows[0].times.borders[0].told_cycles, kMostWindowCycles);
  EXPECT_EQ(memory.rows[0].times.without_latency, 4u) << "and there is no share";
}

TEST_F(ResolveWindowTest, AccessesOfFoldedPlacesLoseTheirInstruction) {
  Window window;
  window.threads = {{0, 1, 1}};
  for (uint64_t i = 0; i < 100; ++i) {
    CodeLocation location;
    location.category = Category::kOutsideLoop;
    location.function = absl::StrCat("f", i);
    location.function_low = i;
    window.locations.push_back(location);
    window.findings.memory.rows.push_back(
        {.rank = 0, .pid = 1, .location = static_cast<uint32_t>(i), .instruction = 0x10});
    window.findings.memory.rows.back().profile.all.samples = i + 1;
  }
  FoldLightLocations(window, 30);
  ASSERT_LE(window.locations.size(), 30u);
  uint64_t samples = 0;
  for (const MemoryRow& row : window.findings.memory.rows) {
    samples += row.profile.all.samples;
    const bool folded = window.locations.at(row.location).function == "(other)";
    EXPECT_EQ(row.instruction, ElfAddress(folded ? 0 : 0x10));
  }
  EXPECT_EQ(samples, 5050u);
  EXPECT_EQ(window.locations[window.findings.memory.rows[99].location].function, "f99");
}

TEST_F(ResolveWindowTest, OuterLoopAndOutside) {
  EXPECT_EQ(Locate(ModuleKind::kProgram, 0x165).loop->header, 0x400120u);
  const CodeLocation outside = Locate(ModuleKind::kProgram, 0x171);
  EXPECT_EQ(outside.category, Category::kOutsideLoop);
  EXPECT_FALSE(outside.loop.has_value());
}

TEST_F(ResolveWindowTest, LibraryLoopsComputeButRuntimeLoopsWait) {
  EXPECT_EQ(Locate(ModuleKind::kLibrary, 0x144).category, Category::kLoop);
  EXPECT_EQ(Locate(ModuleKind::kLibrary, 0x101).category, Category::kLibrary);
  const CodeLocation waiting = Locate(ModuleKind::kRuntime, 0x144);
  EXPECT_EQ(waiting.category, Category::kLibrary);
  EXPECT_EQ(waiting.loop_kind, LoopKind::kWaiting);
  EXPECT_TRUE(waiting.loop.has_value());
}

TEST_F(ResolveWindowTest, WhatHasNoFunctionIsUnknownAndSaysWhy) {
  EXPECT_EQ(Locate(ModuleKind::kProgram, 0x900).function, "[no function]");
  EXPECT_EQ(Locate(ModuleKind::kProgram, 0x900'0000).category, Category::kUnknown);
  EXPECT_EQ(Locate(ModuleKind::kAnonymous, 0x10, "").function, "[anonymous code]");
  EXPECT_EQ(Locate(ModuleKind::kVdso, 0x10, "[vdso]").category, Category::kLibrary);
  EXPECT_TRUE(unreadable_.empty());
  EXPECT_EQ(Locate(ModuleKind::kLibrary, 0x144, "/gone").function, "[unreadable module]");
  ASSERT_EQ(unreadable_.size(), 1u);
  EXPECT_EQ(unreadable_[0].path, "/gone");
}

TEST_F(ResolveWindowTest, CodeThatIsReadWithoutItsLinesSaysWhy) {
  lines_problem_ = LinesProblem::kCompression;
  EXPECT_EQ(Locate(ModuleKind::kProgram, 0x144).function, "kernel");
  ASSERT_EQ(unreadable_.size(), 1u);
  EXPECT_TRUE(unreadable_[0].status.ok());
  EXPECT_EQ(unreadable_[0].path, "/app");
  EXPECT_EQ(unreadable_[0].lines, LinesProblem::kCompression);
  Locate(ModuleKind::kLibrary, 0x144, "/cold.so");
  EXPECT_EQ(unreadable_.size(), 1u) << "nobody asked for the lines of two samples";
}

TEST_F(ResolveWindowTest, MovedCodeIsNamedAndSaysWhyItHasNoFunctions) {
  const char moved[] = "[moved code of /app]";
  EXPECT_EQ(Locate(ModuleKind::kMoved, 0x144, moved).function, moved);
  ASSERT_EQ(unreadable_.size(), 1u);
  EXPECT_EQ(unreadable_[0].path, moved);
  EXPECT_TRUE(absl::IsFailedPrecondition(unreadable_[0].status));
}

TEST_F(ResolveWindowTest, MovedCodeThatIsTheFilesHasItsFunctionsAndLoops) {
  functions_ = {FarFunction()};
  const CodeLocation location = LocateAnonymous(Moved(), kLoaded + 0x2144);
  EXPECT_EQ(location.category, Category::kLoop);
  EXPECT_EQ(location.function, "kernel");
  EXPECT_EQ(location.module_path, "/app");
  EXPECT_EQ(location.module_id, "abcd");
  ASSERT_TRUE(location.loop.has_value());
  EXPECT_EQ(location.loop->header, 0x402140u);
  EXPECT_TRUE(unreadable_.empty());
  EXPECT_EQ(LocateAnonymous(Moved(ModuleKind::kRuntime), kLoaded + 0x2144).loop_kind,
            LoopKind::kWaiting);
}

TEST_F(ResolveWindowTest, MovedCodeWithOtherBytesIsNotTheFiles) {
  functions_ = {FarFunction()};
  other_page_ = kLoaded + 0x2000;
  EXPECT_EQ(LocateAnonymous(Moved(), kLoaded + 0x2144).function, "[moved code of /app]");
  ASSERT_EQ(unreadable_.size(), 1u);
  EXPECT_THAT(unreadable_[0].status.message(),
              testing::HasSubstr("its bytes are not those of the file"));
  EXPECT_EQ(LocateAnonymous(Moved(), kLoaded + 0x3000).function, "[no function]")
      << "another page, which is";
}

TEST_F(ResolveWindowTest, MovedCodeThatCannotBeComparedKeepsItsName) {
  RawModule elsewhere = Moved();
  elsewhere.map_end = kLoaded + 0x200000;  // more than the file has
  EXPECT_EQ(LocateAnonymous(elsewhere, kLoaded + 0x2144).function, "[moved code of /app]");
  RawModule gone = Moved();
  gone.moved->beside.path = "/gone";
  EXPECT_EQ(LocateAnonymous(gone, kLoaded + 0x2144).function, "[moved code of /app]");
  EXPECT_EQ(unreadable_.size(), 2u);
}

TEST_F(ResolveWindowTest, CodeMadeAtRunTimeHasTheNamesOfItsMaker) {
  RawModule made;
  made.kind = ModuleKind::kAnonymous;
  made.key.process = kPid;
  perf_map_ = "5000 100 step\xff\n";
  const CodeLocation named = LocateAnonymous(made, 0x5010);
  EXPECT_EQ(named.function, "step?");
  EXPECT_EQ(named.category, Category::kUnknown) << "its loops are";
  EXPECT_FALSE(named.loop.has_value());
  EXPECT_EQ(LocateAnonymous(made, 0x5100).function, "[anonymous code]");
}

TEST_F(ResolveWindowTest, KernelTimeKeepsItsCauseAndSaysWhoCameIn) {
  RawWindow raw;
  raw.threads = {{0, 1, 1}};
  RawModule module;
  module.key.path = "/app";
  module.kind = ModuleKind::kProgram;
  raw.modules = {module};
  const RawLocation known{.kind = RawLocation::Kind::kKernel,
                          .cause = KernelCause::kPageFault,
                          .has_caller = true,
                          .module = 0,
                          .file_offset = 0x144};
  raw.rows = {{0, known, 2, 20}, {0, {.kind = RawLocation::Kind::kKernel}, 1, 10}};
  const Window window = ResolveWindow(std::move(raw), index_, absl::Seconds(1), &unreadable_);
  ASSERT_EQ(window.rows.size(), 2u);
  const CodeLocation& fault = window.locations.at(window.rows[0].location);
  EXPECT_EQ(fault.category, Category::kKernel);
  EXPECT_EQ(fault.function, "[kernel]");
  EXPECT_EQ(fault.kernel_cause, KernelCause::kPageFault);
  EXPECT_EQ(fault.kernel_caller, "kernel");
  EXPECT_EQ(fault.source.first_line, 10) << "of the caller's loop";
  EXPECT_FALSE(fault.loop.has_value()) << "it is no time of the loop";
  const CodeLocation& unknown = window.locations.at(window.rows[1].location);
  EXPECT_EQ(unknown.kernel_cause, KernelCause::kUnknown);
  EXPECT_EQ(unknown.kernel_caller, "");
}

TEST_F(ResolveWindowTest, AddressesOfOneLoopBecomeOneRow) {
  RawWindow raw;
  RawModule module;
  module.key.path = "/app";
  module.kind = ModuleKind::kProgram;
  raw.modules = {module};
  raw.threads = {{0, 1, 1}};
  for (uint64_t offset : {0x140u, 0x144u, 0x15fu})
    raw.rows.push_back(
        {0, {.kind = RawLocation::Kind::kModule, .module = 0, .file_offset = offset}, 1, 10});
  const Window window = ResolveWindow(std::move(raw), index_, absl::Seconds(1), &unreadable_);
  ASSERT_EQ(window.rows.size(), 1u);
  EXPECT_EQ(window.rows[0].samples, 3u);
  EXPECT_EQ(window.rows[0].weight, 30u);
}

TEST_F(ResolveWindowTest, StacksBecomeNamesOutermostFirst) {
  RawWindow raw;
  RawModule module;
  module.key.path = "/app";
  module.kind = ModuleKind::kProgram;
  raw.modules = {module};
  raw.stacks = {{3,
                 {{.kind = RawLocation::Kind::kKernel},
                  {.kind = RawLocation::Kind::kModule, .file_offset = 0x144}},
                 5}};
  const Window window = ResolveWindow(std::move(raw), index_, absl::Seconds(1), &unreadable_);
  ASSERT_EQ(window.paths.stacks.size(), 1u);
  ASSERT_EQ(window.paths.stacks[0].frames.size(), 2u);
  EXPECT_EQ(window.paths.frame_names[window.paths.stacks[0].frames[0]], "kernel");
  EXPECT_EQ(window.paths.frame_names[window.paths.stacks[0].frames[1]], "[kernel]");
  EXPECT_EQ(window.paths.stacks[0].samples, 5u);
}

TEST_F(ResolveWindowTest, WhatRunsOutsideLoopsIsGivenToTheLoopThatCalledIt) {
  RawWindow raw;
  RawModule module;
  module.key.path = "/app";
  module.kind = ModuleKind::kProgram;
  raw.modules = {module};
  const auto at = [](uint64_t offset) {
    return RawLocation{.kind = RawLocation::Kind::kModule, .module = 0, .file_offset = offset};
  };
  const RawLocation within = at(0x144), outside = at(0x110);
  const RawLocation truncated{.kind = RawLocation::Kind::kTruncated};
  const RawLocation kernel{.kind = RawLocation::Kind::kKernel};
  raw.stacks = {{0, {outside, outside, within, outside}, 5},
                {1, {outside, within}, 2},
                {0, {outside, outside}, 3},             // nobody's loop
                {0, {outside, truncated}, 7},           // nobody knows
                {0, {outside, outside, truncated}, 4},  // a loop farther out, or none
                {0, {within, within}, 11},              // the loop's own
                {0, {kernel, within}, 13}};
  const Window window = ResolveWindow(std::move(raw), index_, absl::Seconds(1), &unreadable_);
  ASSERT_EQ(window.paths.calls.size(), 2u);
  const WindowCall& none = window.paths.calls[0];
  const WindowCall& called = window.paths.calls[1];
  EXPECT_FALSE(none.loop.has_value());
  EXPECT_EQ(none.paths, 3u + 4);
  ASSERT_TRUE(called.loop.has_value());
  EXPECT_EQ(called.paths, 7u);
  EXPECT_TRUE(window.locations.at(*called.loop).loop.has_value());
  EXPECT_EQ(called.location, none.location);
  EXPECT_EQ(window.locations.at(called.location).category, Category::kOutsideLoop);
}

TEST(FoldLightLocations, KeepsLoopsThatCall) {
  Window window;
  const auto function = [](int i) {
    CodeLocation location;
    location.category = Category::kOutsideLoop;
    location.module_id = "m";
    location.function = "f" + std::to_string(i);
    return location;
  };
  for (int i = 0; i < 40; ++i) window.locations.push_back(function(i));
  CodeLocation loop = function(40);
  loop.category = Category::kLoop;
  loop.loop.emplace().header = 0x1000;
  window.locations.push_back(loop);
  loop.loop->header = 0x2000;
  window.locations.push_back(loop);
  for (uint32_t i = 0; i < 40; ++i) window.rows.push_back({0, i, 2, 2});
  window.paths.calls = {{0, 40, 50}, {0, 41, 1}, {0, std::nullopt, 9}};
  FoldLightLocations(window, 20);
  ASSERT_EQ(window.paths.calls.size(), 2u) << "the light loop is told apart from no other";
  EXPECT_EQ(window.paths.calls[0].paths, 9u + 1);
  EXPECT_EQ(window.paths.calls[1].paths, 50u);
  EXPECT_EQ(window.locations.at(*window.paths.calls[1].loop).loop->header, 0x1000u);
}

// One that takes long must not make all the others wait for their own timeouts: the time is for all together.
TEST(ResolveWindowBudget, ModulesThatTheTimeDoesNotSufficeForAreNotReadAndNotOpened) {
  FakeClock clock;
  int opened = 0;
  CodeIndex index(
      [&](const RawModule& module, ModuleDetail) -> absl::StatusOr<std::unique_ptr<CodeSource>> {
        ++opened;
        if (module.key.path != "/known") clock.now_ns += 6 * kNsPerSecond;
        if (module.key.path == "/known") {
          static int lookups = 0;
          return std::make_unique<FakeCodeSource>(std::vector{LoopyFunction()}, &lookups);
        }
        return absl::DeadlineExceededError("no answer in time");
      },
      clock);
  const auto window_of = [](const std::vector<std::string>& paths) {
    RawWindow raw;
    raw.threads = {{0, 1, 1}};
    for (const std::string& path : paths) {
      RawModule module;
      module.key.path = path;
      raw.rows.push_back({0,
                          {.kind = RawLocation::Kind::kModule,
                           .module = static_cast<uint32_t>(raw.modules.size()),
                           .file_offset = 0x144},
                          1,
                          10});
      raw.modules.push_back(module);
    }
    return raw;
  };
  UnreadableModules unreadable;
  ResolveWindow(window_of({"/known"}), index, absl::Seconds(10), &unreadable);
  ASSERT_TRUE(unreadable.empty());
  opened = 0;
  const Window window = ResolveWindow(window_of({"/a", "/b", "/c", "/d", "/known"}), index,
                                      absl::Seconds(10), &unreadable);
  EXPECT_EQ(opened, 2) << "12 s for 10";
  ASSERT_EQ(unreadable.size(), 4u);
  EXPECT_EQ(unreadable[2].path, "/c");
  EXPECT_NE(unreadable[2].status.message().find("too long already"), absl::string_view::npos);
  uint64_t known = 0;
  for (const WindowRow& row : window.rows)
    known += window.locations[row.location].function == "kernel" ? 1 : 0;
  EXPECT_EQ(known, 1u) << "what is known needs no time";
  EXPECT_EQ(window.rows.size(), 5u) << "nothing is lost";
  opened = 0;
  ResolveWindow(window_of({"/c", "/d"}), index, absl::Seconds(10), &unreadable);
  EXPECT_EQ(opened, 2) << "with new time they have their turn";
}

TEST(ReadBudget, IsSpentAndEarnedAgainUpToTheBurst) {
  FakeClock clock;
  ReadBudget budget(clock);
  const absl::Duration burst = absl::Nanoseconds(ReadBudget::kBurstNs);
  EXPECT_EQ(budget.Left(), burst);
  budget.Spend(ReadBudget::kBurstNs + 5 * kNsPerSecond);
  EXPECT_EQ(budget.Left(), absl::ZeroDuration());
  clock.now_ns += 5 * kNsPerSecond * ReadBudget::kShare;
  EXPECT_EQ(budget.Left(), absl::ZeroDuration()) << "what was overdrawn is earned first";
  clock.now_ns += 2 * kNsPerSecond * ReadBudget::kShare;
  EXPECT_EQ(budget.Left(), absl::Seconds(2));
  clock.now_ns += 1000 * kNsPerSecond * ReadBudget::kShare;
  EXPECT_EQ(budget.Left(), burst);
}

TEST(FoldLightLocations, KeepsTotalsPerCategoryAndThread) {
  std::mt19937_64 random(3);
  Window window;
  for (int i = 0; i < 500; ++i) {
    CodeLocation location;
    location.category = static_cast<Category>(random() % kCategoryCount);
    location.function = std::to_string(i);
    window.locations.push_back(location);
  }
  for (uint32_t t = 0; t < 4; ++t) {
    window.threads.push_back({0, 1, static_cast<int32_t>(t)});
    for (uint32_t l = 0; l < 500; ++l)
      window.rows.push_back({t, l, 1 + random() % 50, random() % 1000});
  }
  const auto totals = [](const Window& w) {
    std::map<std::pair<uint32_t, Category>, std::pair<uint64_t, uint64_t>> sums;
    for (const WindowRow& row : w.rows) {
      auto& sum = sums[{row.thread, w.locations[row.location].category}];
      sum.first += row.samples;
      sum.second += row.weight;
    }
    return sums;
  };
  const auto before = totals(window);
  FoldLightLocations(window, 500);
  EXPECT_EQ(window.locations.size(), 500u);  // at the limit nothing happens
  FoldLightLocations(window, 20);
  EXPECT_LE(window.locations.size(), 20u);
  EXPECT_EQ(totals(window), before);
}

// Two threads at the same loop all the time: each has half of the rank's elapsed time.
TEST_F(ResolveWindowTest, ElapsedTimeIsDividedAmongThreadsThatCompute) {
  RawWindow raw;
  RawModule module;
  module.key.path = "/app";
  module.kind = ModuleKind::kProgram;
  raw.modules = {module};
  raw.setup = {"cpu-clock", 100, true, "per-thread", Provenance::kSampled};
  raw.duration_ns = 1'000'000'000;
  raw.threads = {{3, 10, 10}, {3, 10, 11}};
  const RawLocation at{.kind = RawLocation::Kind::kModule, .module = 0, .file_offset = 0x144};
  raw.rows = {{0, at, 100, 1'000'000'000}, {1, at, 100, 1'000'000'000}};
  for (uint64_t i = 0; i < 100; ++i) {
    raw.wall.moments.push_back({1 + 10'000'000 * i, 0});
    raw.wall.moments.push_back({1 + 10'000'000 * i, 1});
  }
  raw.wall.period_ns = 10'000'000;
  raw.wall.times = std::make_shared<WallTimes>();
  raw.wall.processes = {{3, 10, false, 1'000'000'000, {{10, {0, 5}}, {11, {0, 6}}}}};
  RawWindow old = raw;
  old.wall.processes.clear();
  const Window window = ResolveWindow(std::move(raw), index_, absl::Seconds(1), &unreadable_);
  EXPECT_THAT(window.rank_times, testing::ElementsAre(RankTime{3, 10, 1'000'000'000, 11}));
  ASSERT_EQ(window.rows.size(), 2u);
  EXPECT_NEAR(static_cast<double>(window.rows[0].wall_ns), 5e8, 5e6);
  EXPECT_NEAR(static_cast<double>(window.rows[1].wall_ns), 5e8, 5e6);

  const Window undivided = ResolveWindow(std::move(old), index_, absl::Seconds(1), &unreadable_);
  EXPECT_TRUE(undivided.rank_times.empty());
  EXPECT_EQ(undivided.rows[0].wall_ns, 0u);
}

}  // namespace
}  // namespace perfd::agent
