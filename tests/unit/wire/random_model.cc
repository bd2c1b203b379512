#include "tests/unit/wire/random_model.h"

#include <array>

namespace perfd {

std::string RandomModel::Text() {
  static const char* const kPieces[] = {"", "a", "loop_", "é", "∑", "😀", "/usr/lib/x.so", " "};
  std::string text;
  for (uint64_t n = Below(5); n > 0; --n) text += kPieces[Below(std::size(kPieces))];
  return text;
}

ProfileSpec RandomModel::Spec() {
  ProfileSpec spec;
  spec.name = Text();
  const uint64_t kind = Below(3);
  if (kind == 0) spec.target.slurm_job = static_cast<uint32_t>(1 + Below(UINT32_MAX - 1));
  if (kind == 1) spec.target.command = "c" + Text();
  if (kind == 2) {
    spec.target.pids = {1, INT32_MAX, Positive() + 1};
    spec.target.tree = Coin();
  }
  spec.target.user = Text();
  spec.target.node = Text();
  for (uint64_t n = Below(4); n > 0; --n) {
    const int32_t first = Positive();
    spec.ranks.push_back({first, first + Positive()});
  }
  spec.duration_ns = static_cast<int64_t>(1'000'000'000 + Big() / 1024);
  spec.budget = {Ratio() / 2, static_cast<int64_t>(1'000'000 + Below(999'000'001)),
                 static_cast<int64_t>(10'000'000 + Below(9'990'000'001))};
  spec.hotspots.event = "e" + Text();
  spec.hotspots.frequency_hz = static_cast<int32_t>(1 + Below(10'000));
  spec.hotspots.coverage_ratio = Ratio();
  spec.hotspots.max_loops = static_cast<int32_t>(1 + Below(1000));
  spec.hotspots.callpaths = Enum(CallPaths::kAuto);
  spec.variants.set.resize(Below(9), "FP");
  spec.variants.repetitions = static_cast<int32_t>(3 + Below(998));
  spec.variants.mode = Coin() ? "shadow" : "recovery";
  spec.memory = {static_cast<int32_t>(3 + Below(65'533)), Coin(), Coin() ? "auto" : "off"};
  spec.coherence_enabled = Coin();
  spec.pages = {Coin(), Coin()};
  spec.dry_run = Coin();
  spec.until_known = Coin();
  return spec;
}

Notice RandomModel::News() {
  Notice notice{Enum(Notice::Severity::kError), Enum(absl::StatusCode::kUnauthenticated), Text(),
                Positive(), Text()};
  if (Coin()) {
    notice.launchers = {.disposition = Enum(LauncherNote::Disposition::kLeftOut),
                        .launchers = {{1 + Positive(), Text()}},
                        .launcher_count = Positive(),
                        .working = {{1 + Positive(), Text()}, {1 + Positive(), Text()}},
                        .working_count = Positive()};
  }
  return notice;
}

ProfileStatus RandomModel::Status() {
  ProfileStatus status;
  status.id = Text();
  status.name = Text();
  status.state = Enum(ProfileState::kCancelled);
  status.requester = Who();
  status.spec = Coin() ? Spec() : ProfileSpec{};
  status.submitted_unix_ns = static_cast<int64_t>(Big());
  status.started_unix_ns = static_cast<int64_t>(Big());
  status.finished_unix_ns = static_cast<int64_t>(Big());
  status.submit_to_first_sample_ns = static_cast<int64_t>(Big());
  const int32_t hot = Positive();
  status.course = {
      Ratio(), {hot, hot / 2, Ratio(), static_cast<int64_t>(Big())}, Enum(EndReason::kNodesLost)};
  status.samples = random_();
  for (uint64_t n = Below(3); n > 0; --n) {
    status.nodes.push_back({Text(), Enum(NodeProgress::Phase::kDisconnected), Positive(),
                            Positive(), static_cast<int64_t>(Big()), random_()});
    status.notices.push_back(News());
  }
  return status;
}

RankInfo RandomModel::Rank() {
  return {Text(),     Positive(), static_cast<uint32_t>(random_()), random_(),
          Positive(), Positive(), Enum(RankSource::kSlurm),         Text(),
          Text()};
}

// Above `low`.
std::vector<CodeRange> RandomModel::Parts(uint64_t low) {
  std::vector<CodeRange> parts;
  for (uint64_t n = Below(3); n > 0; --n) {
    low += Below(64);
    parts.push_back({low, low + 1 + Below(64)});
    low = parts.back().high;
  }
  return parts;
}

LoopFacts RandomModel::Loop() {
  LoopFacts loop;
  loop.header = random_();
  loop.parent_header = Coin() ? 0 : random_();
  loop.depth = 1 + Positive();
  loop.innermost = Coin();
  loop.irreducible = Coin();
  loop.low = Big();
  loop.high = loop.low + Big();
  loop.further_parts = Parts(loop.high);
  loop.block_count = Positive();
  loop.instruction_count = Positive();
  loop.source = Source();
  loop.inlined_from = Text();
  return loop;
}

CodeLocation RandomModel::Location() {
  CodeLocation location;
  location.category = Enum(Category::kUnknown);
  location.module_id = Text();
  location.module_path = Text();
  location.function = Text();
  location.function_low = random_();
  location.openmp = Enum(OpenMpKind::kOutlined);
  location.loop_kind = Enum(LoopKind::kWaiting);
  if (Coin()) location.loop = Loop();
  location.source = Source();
  if (location.category != Category::kKernel) return location;
  location.kernel_cause = Enum(KernelCause::kOther);
  location.kernel_caller = Text();
  return location;
}

SamplingSetup RandomModel::Setup() {
  return {Text(), Ratio() * 1000, Coin(), Text(), Enum(Provenance::kEstimated)};
}

Accounting RandomModel::Counts() {
  Accounting counts;
  counts.seen = Big();
  counts.kept = Big();
  for (uint64_t& dropped : counts.dropped) dropped = Big();
  counts.lost = Big();
  counts.throttled = Big();
  counts.stack_truncated = Big();
  counts.stack_skipped = Big();
  counts.late_threads = Big();
  counts.late_thread_cpu_ns = Big();
  return counts;
}

OverheadFigures RandomModel::Overhead() {
  OverheadFigures figures{Big(), Big(), Big(), Big(), Big(), Big()};
  figures.lost_to_agent_ns = figures.agent_cpu_ns / 3;
  return figures;
}

SampledAccess RandomModel::Access() {
  SampledAccess access;
  access.period = 1 + Below(1'000'000);
  access.kernel = Coin();
  access.access.address = Below(1 << 20);
  access.access.latency_cycles = Coin() ? 0 : Below(100'000);
  access.access.source = {.operation = Enum(MemoryOperation::kExecute),
                          .level = Enum(MemoryLevel::kUncached),
                          .missed = Coin(),
                          .snoop = Enum(SnoopResult::kFromPeer),
                          .tlb = Enum(TlbResult::kFault),
                          .lock = Enum(LockState::kLocked)};
  return access;
}

MemoryRow RandomModel::AccessesOf(uint32_t location) {
  MemoryRow row{.rank = Positive(), .pid = Positive(), .location = location};
  row.instruction = Big();
  for (uint64_t n = 1 + Below(4); n > 0; --n) {
    const SampledAccess access = Access();
    row.profile.Add(access);
    row.times.Add(access);
  }
  return row;
}

MemoryFigures RandomModel::Accesses() {
  MemoryFigures figures;
  for (uint64_t n = 1 + Below(4); n > 0; --n) figures.profile.Add(Access());
  for (BeyondShare& share : figures.beyond)
    share = {Enum(NoShare::kNoLatency), Ratio(), {Ratio(), Ratio()}, Big(), Big(), Big()};
  return figures;
}

MemoryReport RandomModel::MemoryOfJob() {
  MemoryReport report;
  report.events = {{Text(), static_cast<uint32_t>(Below(100))}};
  report.job = Accesses();
  for (uint64_t n = Below(3); n > 0; --n) {
    MemoryPlace place{Text(),     Text(), Text(), Positive(), Positive(), Coin(),
                      Accesses(), {},     {},     Below(9),   Below(9)};
    for (uint64_t i = Below(3); i > 0; --i) {
      place.references.push_back({Big(), Accesses()});
      place.ranks.push_back({Text(),
                             Positive(),
                             Positive(),
                             {Big(), Big()},
                             {Big(), Big()},
                             Big(),
                             Big(),
                             Big(),
                             1000,
                             Below(1000),
                             Big()});
    }
    report.places.push_back(std::move(place));
  }
  report.places_left_out = Below(9);
  report.lost = {Below(9), Below(9), Below(9), Below(9)};
  return report;
}

Window RandomModel::OneWindow() {
  Window window;
  window.profile_id = "p" + Text();
  window.node = "n" + Text();
  window.stream_id = "s" + Text();
  window.sequence = 1 + Big();
  window.start_unix_ns = static_cast<int64_t>(Big());
  window.duration_ns = static_cast<int64_t>(Big());
  window.setup = Setup();
  for (uint64_t n = Below(4); n > 0; --n) window.ranks.push_back(Rank());
  for (uint64_t n = 1 + Below(4); n > 0; --n)
    window.threads.push_back({Positive(), Positive(), Positive()});
  for (uint64_t n = 1 + Below(4); n > 0; --n) window.locations.push_back(Location());
  for (uint64_t n = Below(4); n > 0; --n)
    window.rank_times.push_back({Positive(), Positive(), Below(1 << 30), Below(1 << 30)});
  for (uint64_t n = Below(9); n > 0; --n) {
    window.rows.push_back({static_cast<uint32_t>(Below(window.threads.size())),
                           static_cast<uint32_t>(Below(window.locations.size())), 1 + Below(1000),
                           Big(), window.rank_times.empty() ? 0 : Below(1 << 30)});
  }
  for (uint64_t n = 1 + Below(4); n > 0; --n) window.paths.frame_names.push_back(Text());
  for (uint64_t n = Below(4); n > 0; --n) {
    WindowStack stack{Positive(), {}, Below(1000)};
    for (uint64_t f = Below(5); f > 0; --f)
      stack.frames.push_back(static_cast<uint32_t>(Below(window.paths.frame_names.size())));
    window.paths.stacks.push_back(stack);
  }
  const auto location = [&] { return static_cast<uint32_t>(Below(window.locations.size())); };
  for (uint64_t n = Below(4); n > 0; --n) {
    WindowCall call{location(), location(), 1 + Below(1000)};
    if (window.locations[*call.loop].category != Category::kLoop) call.loop.reset();
    const Category from = window.locations[call.location].category;
    if (from == Category::kOutsideLoop || from == Category::kLibrary)
      window.paths.calls.push_back(call);
  }
  for (uint64_t n = Below(4); n > 0; --n)
    window.findings.memory.rows.push_back(AccessesOf(location()));
  if (Coin()) window.findings.memory.events = {{Text(), static_cast<uint32_t>(Below(100))}};
  window.findings.memory.lost = Below(9);
  window.accounting = Counts();
  window.overhead = Overhead();
  for (uint64_t n = Below(3); n > 0; --n) {
    window.findings.measurements.push_back(Measurement());
    window.findings.measurements.back().profile_id = window.profile_id;
    window.findings.measurements.back().node = window.node;
    window.audit.push_back(Audit());
    window.audit.back().profile_id = window.profile_id;
    window.audit.back().node = window.node;
    window.leased.pauses.push_back({random_(), Positive(), Positive(), Positive()});
    window.leased.dropped = Below(1000);
  }
  return window;
}

ReportRow RandomModel::Row() {
  ReportRow row;
  row.id = Text();
  row.location = Location();
  row.samples = random_();
  row.share = Ratio();
  row.share_interval = {row.share / 2, row.share};
  row.inclusive_share = Ratio();
  if (Coin()) row.called = {row.share / 4, {0, row.share}};
  if (Coin())
    row.wall = {
        row.share / 2, {row.share / 3, row.share}, Ratio(), {row.share / 5, {0, row.share}}};
  row.hot = Coin();
  row.rank_seconds.min = Ratio();
  row.rank_seconds.median = Ratio() * 100;
  row.rank_seconds.max = Ratio() * 1000;
  row.worst_rank = Text();
  row.imbalance = 1 + Ratio();
  row.thread_count = Positive();
  row.seen.first_ns = Positive();
  row.seen.last_ns = row.seen.first_ns + Positive();
  for (uint64_t n = Below(3); n > 0; --n) {
    row.ranks.push_back({Text(), Positive(), random_(), Ratio() * 10, Ratio(), Ratio()});
    row.threads.push_back({{Text(), Positive(), Positive(), Positive()}, random_(), Ratio()});
  }
  return row;
}

Report RandomModel::OneReport() {
  Report report;
  report.status = Status();
  for (uint64_t n = Below(3); n > 0; --n) {
    report.loops.push_back(Row());
    report.waiting.push_back(Row());
    report.functions.push_back(Row());
    report.ranks.push_back(
        {Rank(), random_(), Ratio(), Ratio(), Positive(), Coin(), Ratio(), Ratio(), Ratio()});
    report.nodes.push_back({Text(), random_(), static_cast<int64_t>(Big()), Setup()});
    report.stacks.push_back({Positive(), {Text(), Text()}, random_()});
  }
  for (double& share : report.category_share) share = Ratio();
  for (uint64_t& samples : report.category_samples) samples = random_();
  report.time.waiting_share = Ratio();
  if (Coin()) {
    report.time.wall = {{}, Ratio(), Ratio() * 1000, Ratio() * 1000};
    for (double& share : report.time.wall->category_share) share = Ratio();
  }
  if (Coin()) {
    report.time.kernel = {{KernelCause::kPageFault, Big(), Ratio(), Ratio()},
                          {KernelCause::kUnknown, Big(), Ratio(), 0}};
  }
  report.worst_rank = Text();
  report.imbalance = 1 + Ratio();
  report.accounting = Counts();
  report.overhead = Overhead();
  report.overhead_ratio = Ratio() * 3;
  report.missing_ratio = Ratio();
  report.provenance = Enum(Provenance::kEstimated);
  for (uint64_t n = Below(3); n > 0; --n) report.findings.verdicts.push_back(Verdict());
  report.findings.injection = {Cost(), static_cast<int64_t>(Big()), Ratio(),
                               static_cast<int64_t>(Big()), Big()};
  if (Coin()) report.findings.memory = MemoryOfJob();
  return report;
}

ModuleFacts RandomModel::Module() {
  ModuleFacts module{Text(),
                     Text(),
                     {Big(), Big(), Big(), static_cast<int64_t>(Big())},
                     Coin(),
                     Enum(LinesProblem::kDamaged),
                     Coin(),
                     Coin(),
                     {}};
  for (uint64_t n = Below(4); n > 0; --n) module.segments.push_back({Big(), Big(), Big(), Coin()});
  return module;
}

CodeFacts RandomModel::Code() {
  CodeFacts code;
  for (uint64_t n = Below(4); n > 0; --n) {
    FunctionFacts function;
    function.name = Text();
    function.low = Big();
    function.high = function.low + Big();
    function.further_parts = Parts(function.high);
    function.source = Enum(FunctionSource::kGuess);
    function.openmp = Enum(OpenMpKind::kOutlined);
    function.declaration = Source();
    for (uint64_t l = Below(4); l > 0; --l) function.loops.push_back(Loop());
    uint64_t end = 0;
    for (uint32_t l = 0; l < function.loops.size(); ++l) {
      const uint64_t low = end + Below(64);
      end = low + 1 + Below(64);
      function.spans.push_back({low, end, l});
    }
    function.note = Text();
    code.functions.push_back(function);
  }
  for (uint64_t n = Below(4); n > 0; --n) code.unresolved.push_back(random_());
  return code;
}

std::vector<CodeMapping> RandomModel::Mappings() {
  std::vector<CodeMapping> mappings;
  RuntimeAddress at = 0;
  for (uint64_t i = Below(6); i > 0; --i) {
    CodeMapping mapping;
    mapping.start = at + Below(1 << 20);
    mapping.file_offset = Big();
    mapping.inode = random_();
    at = mapping.end = mapping.start + 1 + Below(1 << 20);
    mapping.device_major = static_cast<uint32_t>(random_());
    mapping.device_minor = static_cast<uint32_t>(random_());
    mapping.path = Coin() ? Text() : "/\xFF any bytes";
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

StackCopy RandomModel::Stack() {
  StackCopy copy;
  for (uint64_t& value : copy.registers) value = random_();
  const std::array<size_t, 4> sizes = {0, 1, 8192, kMaxStackCopyBytes};
  copy.bytes.resize(sizes[Below(sizes.size())], static_cast<std::byte>(random_()));
  return copy;
}

CallPath RandomModel::Path() {
  CallPath path;
  path.addresses.resize(Coin() ? kMaxCallPathFrames : Below(20));
  for (RuntimeAddress& address : path.addresses) address = random_();
  path.complete = Coin();
  path.unknown_address = Coin() ? 0 : random_();
  return path;
}

}  // namespace perfd
