#include "tests/unit/daemon/aggregate/random_windows.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"

namespace perfd::daemon {
namespace {

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  Window Next(uint64_t sequence) {
    Window window = EmptyWindow(absl::StrCat("node", Below(3)), sequence);
    window.duration_ns = static_cast<int64_t>(Below(5'000'000'000));
    window.start_unix_ns = static_cast<int64_t>(Below(10));
    window.setup.frequency_hz = static_cast<double>(Below(400)) / 3;
    window.setup.event = Below(4) == 0 ? "cycles" : "cpu-clock";
    for (uint64_t n = Below(3); n > 0; --n) AddRank(window);
    for (uint64_t n = Below(12); n > 0; --n) {
      AddRow({Int(3), 100 + Int(2), 1000 + Int(4)}, Place(), 1 + Below(50), window);
      window.rows.back().weight = Below(1'000'000);
    }
    if (Below(4) > 0) AddTimes(window);
    AddMemory(window);
    AddStacks(window);
    window.accounting.seen = Below(1000);
    window.accounting.kept = Below(1000);
    window.accounting.Drop(DropReason::kQueueFull, Below(9));
    window.accounting.lost = Below(9);
    window.overhead = {Below(99), Below(99), Below(99), Below(99), Below(9)};
    window.overhead.rank_wall_ns = 7 * sequence;
    window.overhead.lost_to_agent_ns = window.overhead.agent_cpu_ns / 2;
    for (uint64_t n = Below(3); n > 0; --n) AddMeasurement(window);
    return window;
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  int32_t Int(uint64_t bound) { return static_cast<int32_t>(Below(bound)); }

  CodeLocation Place() {
    if (Below(2) == 0) return LoopAt(0x1000 + 16 * Below(5), Below(2) == 0);
    CodeLocation location;
    location.category = static_cast<Category>(Below(kCategoryCount));
    location.module_id = Below(2) == 0 ? "aa" : "bb";
    location.module_path = Below(2) == 0 ? "/lib/a.so" : "/lib/b.so";  // agents may disagree
    location.function_low = 64 * Below(3);
    location.function = absl::StrCat(Below(2) == 0 ? "sub_" : "f", location.function_low);
    return location;
  }

  void AddRank(Window& window) {
    RankInfo rank;
    rank.node = Below(5) == 0 ? "elsewhere" : window.node;
    rank.rank = Int(3);
    rank.pid = 100 + Int(2);
    rank.start_ticks = Below(3);
    rank.command = Below(2) == 0 ? "a.out" : "b.out";
    window.ranks.push_back(rank);
  }

  void AddTimes(Window& window) {
    for (uint64_t n = 1 + Below(3); n > 0; --n)
      window.rank_times.push_back({Int(3), 100 + Int(2), Below(1'000'000'000), Below(1'000'000)});
    for (WindowRow& row : window.rows) row.wall_ns = Below(1'000'000);
  }

  void AddMeasurement(Window& window) {
    LoopMeasurement loop;
    loop.profile_id = window.profile_id;
    loop.node = window.node;
    loop.pid = 100 + Int(2);
    loop.loop_id = Below(2) == 0 ? "l1" : "l2";
    loop.revision =
        Below(4);  // agents should not use one twice; if they do, the order must not matter
    loop.team = Int(3);
    loop.figures.resize(Below(3));
    loop.listings.push_back({"LS", {}});
    loop.listings[0].lines.resize(Below(2), {0x10, Below(2) == 0 ? "nop" : "ret", ""});
    window.findings.measurements.push_back(loop);
    AuditEntry entry;
    entry.unix_ns = static_cast<int64_t>(Below(100));
    entry.pause_ns = static_cast<int64_t>(Below(10));
    window.audit.push_back(entry);
    window.audit.back().node = window.node;
    const auto length = static_cast<int64_t>(1 + Below(5));
    window.leased.pauses.push_back({Below(3), static_cast<int64_t>(Below(5)), length, length / 4});
    window.leased.dropped = Below(2);
  }

  SampledAccess Access() {
    SampledAccess access;
    access.period = 1 + Below(100'000);
    access.kernel = Below(8) == 0;
    access.access.address = Below(1 << 20);
    access.access.latency_cycles = Below(4) == 0 ? 0 : Below(1000);
    access.access.source.operation =
        Below(4) == 0 ? MemoryOperation::kStore : MemoryOperation::kLoad;
    access.access.source.level = static_cast<MemoryLevel>(Below(kMemoryLevels));
    access.access.source.tlb = static_cast<TlbResult>(Below(kTlbResults));
    access.access.source.missed = Below(9) == 0;
    return access;
  }

  void AddMemory(Window& window) {
    WindowMemory& memory = window.findings.memory;
    memory.events = {{Below(2) == 0 ? "loads" : "stores", static_cast<uint32_t>(Below(2) * 30)}};
    memory.lost = Below(3);
    for (uint64_t n = window.locations.empty() ? 0 : Below(5); n > 0; --n) {
      MemoryRow row{.rank = Int(3), .pid = 100 + Int(2)};
      row.location = static_cast<uint32_t>(Below(window.locations.size()));
      row.instruction = 0x10 * Below(3);
      for (uint64_t i = 1 + Below(3); i > 0; --i) {
        const SampledAccess access = Access();
        row.profile.Add(access);
        row.times.Add(access);
      }
      memory.rows.push_back(row);
    }
  }

  void AddStacks(Window& window) {
    window.paths.frame_names = {"main", "solve", "unused"};
    if (Below(2) == 0) std::swap(window.paths.frame_names[0], window.paths.frame_names[1]);
    for (uint64_t n = Below(4); n > 0; --n) {
      WindowStack stack{Int(3), {}, 1 + Below(9)};
      for (uint64_t f = Below(4); f > 0; --f)
        stack.frames.push_back(static_cast<uint32_t>(Below(2)));
      window.paths.stacks.push_back(stack);
    }
    for (uint64_t n = window.locations.empty() ? 0 : Below(4); n > 0; --n) {
      const auto location = [&] { return static_cast<uint32_t>(Below(window.locations.size())); };
      WindowCall call{location(), location(), 1 + Below(9)};
      if (!window.locations[*call.loop].loop.has_value()) call.loop.reset();
      window.paths.calls.push_back(call);
    }
  }

  std::mt19937_64 random_;
};

template <typename T>
uint32_t IndexOf(const T& value, std::vector<T>& list) {
  auto found = std::find(list.begin(), list.end(), value);
  if (found == list.end()) found = list.insert(list.end(), value);
  return static_cast<uint32_t>(std::distance(list.begin(), found));
}

}  // namespace

CodeLocation FunctionAt(uint64_t low) {
  CodeLocation location;
  location.category = Category::kOutsideLoop;
  location.module_id = "aa";
  location.module_path = "/app";
  location.function = "callee";
  location.function_low = low;
  return location;
}

CodeLocation LoopAt(uint64_t header, bool rich) {
  CodeLocation location;
  location.category = Category::kLoop;
  location.module_id = "aa";
  location.module_path = "/app";
  location.function = rich ? "kernel" : "sub_1000";
  location.function_low = 0x1000;
  location.loop.emplace();
  location.loop->header = header;
  location.loop->low = header;
  location.loop->high = header + 16;
  if (rich) location.source = {"kernel.c", 10, 20};
  return location;
}

std::vector<Window> RandomWindows(uint64_t seed, int count) {
  Maker maker(seed);
  std::vector<Window> windows;
  for (int i = 1; i <= count; ++i) windows.push_back(maker.Next(static_cast<uint64_t>(i)));
  return windows;
}

Window EmptyWindow(const std::string& node, uint64_t sequence) {
  Window window;
  window.profile_id = "p-000001";
  window.node = node;
  window.stream_id = "uuid-" + node;
  window.sequence = sequence;
  window.duration_ns = 1'000'000'000;
  window.setup = {"cpu-clock", 100, true, "per-thread", Provenance::kSampled};
  return window;
}

void AddRow(const WindowThread& thread, const CodeLocation& location, uint64_t samples,
            Window& window) {
  window.rows.push_back({IndexOf(thread, window.threads), IndexOf(location, window.locations),
                         samples, samples * 10'000'000});
}

}  // namespace perfd::daemon
