#include "agent/pipeline/resolve_window.h"

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "agent/pipeline/ranks/wall_rows.h"

namespace perfd::agent {
namespace {

constexpr char kOtherName[] = "(other)";

constexpr char kMovedAway[] =
    "the program has put anonymous memory in the place of the file's code, as remappers to large "
    "pages do, and nothing says that it is the same code; without the remapper it has names";

CodeLocation Named(Category category, std::string name) {
  CodeLocation location;
  location.category = category;
  location.function = std::move(name);
  return location;
}

// Where one address of a readable module is.
CodeLocation LocateInModule(const RawModule& module, const ModuleCode& code,
                            FileOffset file_offset) {
  CodeLocation location = Named(Category::kUnknown, "[no function]");
  location.module_id = code.id;
  location.module_path = module.key.path;
  if (!code.error.ok() && code.functions.empty()) {
    location.function = "[unreadable module]";
    return location;
  }
  const auto address = ToElfAddress(code.facts, file_offset);
  const FunctionFacts* function = address.has_value() ? code.FunctionAt(*address) : nullptr;
  if (function == nullptr) return location;
  const LoopFacts* loop = InnermostLoop(*function, *address);
  const bool runtime = module.kind == ModuleKind::kRuntime;
  location.function = function->name;
  location.function_low = function->low;
  location.openmp = function->openmp;
  location.loop_kind = runtime && IsWaiting(module.key.path, function->name) ? LoopKind::kWaiting
                                                                             : LoopKind::kCompute;
  location.source = loop != nullptr ? loop->source : function->declaration;
  if (loop != nullptr) location.loop = *loop;
  if (runtime)
    location.category = Category::kLibrary;
  else if (loop != nullptr)
    location.category = Category::kLoop;
  else
    location.category =
        module.kind == ModuleKind::kProgram ? Category::kOutsideLoop : Category::kLibrary;
  return location;
}

// The lines of a module are worth reading when this many of a window's samples are in it, and this part of them.
constexpr uint64_t kSamplesForLines = 20;
constexpr uint64_t kPartForLines = 50;

std::vector<ModuleDetail> Details(const RawWindow& raw) {
  uint64_t all = 0;
  std::vector<uint64_t> samples(raw.modules.size());
  for (const RawRow& row : raw.rows) {
    all += row.samples;
    if (row.location.kind == RawLocation::Kind::kModule)
      samples[row.location.module] += row.samples;
  }
  std::vector<ModuleDetail> details;
  for (size_t i = 0; i < samples.size(); ++i) {
    const bool hot = samples[i] >= kSamplesForLines && samples[i] * kPartForLines >= all;
    details.push_back(hot || raw.modules[i].kind == ModuleKind::kProgram ? ModuleDetail::kLines
                                                                         : ModuleDetail::kNames);
  }
  return details;
}

class Resolution {
 public:
  Resolution(const RawWindow& raw, CodeIndex& index, absl::Duration timeout,
             UnreadableModules* unreadable)
      : raw_(raw) {
    std::vector<std::vector<FileOffset>> offsets(raw.modules.size());
    auto note = [&](const RawLocation& location) {
      if (location.kind == RawLocation::Kind::kModule)
        offsets[location.module].push_back(location.file_offset);
    };
    for (const RawRow& row : raw.rows) note(row.location);
    for (const RawStack& stack : raw.stacks)
      std::for_each(stack.frames.begin(), stack.frames.end(), note);
    code_.resize(raw.modules.size());
    const std::vector<ModuleDetail> details = Details(raw);
    const int64_t waited_ns = index.waited_ns();
    for (size_t i = 0; i < raw.modules.size(); ++i) {
      const RawModule& module = raw.modules[i];
      if (module.kind == ModuleKind::kVdso || module.kind == ModuleKind::kAnonymous) continue;
      if (module.kind == ModuleKind::kMoved) {
        unreadable->push_back({module.key.path, absl::FailedPreconditionError(kMovedAway)});
        continue;
      }
      const absl::Duration left = timeout - absl::Nanoseconds(index.waited_ns() - waited_ns);
      Learn(i, index, offsets[i], left, details[i], unreadable);
    }
  }

  CodeLocation Locate(const RawLocation& location) const {
    switch (location.kind) {
      case RawLocation::Kind::kKernel:
        return Named(Category::kKernel, "[kernel]");
      case RawLocation::Kind::kUnmapped:
        return Named(Category::kUnknown, "[unmapped]");
      case RawLocation::Kind::kTruncated:
        return Named(Category::kUnknown, "[truncated]");
      case RawLocation::Kind::kModule:
        break;
    }
    const RawModule& module = raw_.modules[location.module];
    if (module.kind == ModuleKind::kVdso) return Named(Category::kLibrary, "[vdso]");
    if (module.kind == ModuleKind::kAnonymous) return Named(Category::kUnknown, "[anonymous code]");
    if (module.kind == ModuleKind::kMoved) return Named(Category::kUnknown, module.key.path);
    return LocateInModule(module, *code_[location.module], location.file_offset);
  }

 private:
  void Learn(size_t i, CodeIndex& index, const std::vector<FileOffset>& offsets,
             absl::Duration left, ModuleDetail detail, UnreadableModules* unreadable) {
    const RawModule& module = raw_.modules[i];
    if (left <= absl::ZeroDuration() && !index.Knows(module, offsets)) {
      code_[i] = index.Recall(module);
      unreadable->push_back(
          {module.key.path, absl::DeadlineExceededError(
                                "reading the code of this profile has taken too long already")});
      return;
    }
    code_[i] = index.Learn(module, offsets, left, detail);
    const LinesProblem lines =
        detail == ModuleDetail::kLines ? code_[i]->facts.lines_problem : LinesProblem::kNone;
    if (!code_[i]->error.ok() || lines != LinesProblem::kNone)
      unreadable->push_back({module.key.path, code_[i]->error, lines});
  }

  const RawWindow& raw_;
  std::vector<std::shared_ptr<const ModuleCode>> code_;  // null for vdso and anonymous code
};

// Hands out indices for equal keys.
class LocationTable {
 public:
  uint32_t Index(CodeLocation location, std::vector<CodeLocation>& table) {
    auto [it, is_new] =
        index_.try_emplace(LocationKey(location), static_cast<uint32_t>(table.size()));
    if (is_new) table.push_back(std::move(location));
    return it->second;
  }

 private:
  absl::flat_hash_map<std::string, uint32_t> index_;
};

// Returns which row of the window each of the raw rows went into.
std::vector<uint32_t> AddRows(const RawWindow& raw, const Resolution& resolution, Window& window) {
  LocationTable table;
  absl::flat_hash_map<RawLocation, uint32_t> known;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, size_t> row_index;
  std::vector<uint32_t> row_of;
  for (const RawRow& row : raw.rows) {
    auto [location, is_new] = known.try_emplace(row.location, 0);
    if (is_new) location->second = table.Index(resolution.Locate(row.location), window.locations);
    auto [it, first] = row_index.try_emplace({row.thread, location->second}, window.rows.size());
    if (first) window.rows.push_back({.thread = row.thread, .location = location->second});
    window.rows[it->second].samples += row.samples;
    window.rows[it->second].weight += row.weight;
    row_of.push_back(static_cast<uint32_t>(it->second));
  }
  return row_of;
}

void AddStacks(const RawWindow& raw, const Resolution& resolution, Window& window) {
  absl::flat_hash_map<std::string, uint32_t> names;
  absl::flat_hash_map<std::pair<int32_t, std::vector<uint32_t>>, uint64_t> merged;
  for (const RawStack& stack : raw.stacks) {
    std::vector<uint32_t> frames;
    for (auto it = stack.frames.rbegin(); it != stack.frames.rend(); ++it) {
      const std::string name = resolution.Locate(*it).function;
      auto [entry, is_new] =
          names.try_emplace(name, static_cast<uint32_t>(window.frame_names.size()));
      if (is_new) window.frame_names.push_back(name);
      frames.push_back(entry->second);
    }
    merged[{stack.rank, std::move(frames)}] += stack.samples;
  }
  for (const auto& [key, samples] : merged)
    window.stacks.push_back({key.first, key.second, samples});
}

}  // namespace

void FoldLightLocations(Window& window, size_t limit) {
  if (window.locations.size() <= limit) return;
  std::vector<uint64_t> weight(window.locations.size());
  for (const WindowRow& row : window.rows) weight[row.location] += row.samples;
  std::vector<uint32_t> order(window.locations.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return weight[a] != weight[b] ? weight[a] > weight[b] : a < b;
  });
  const size_t keep = limit > kCategoryCount ? limit - kCategoryCount : 0;
  LocationTable table;
  std::vector<CodeLocation> locations;
  std::vector<uint32_t> moved(window.locations.size());
  for (size_t i = 0; i < order.size(); ++i) {
    CodeLocation& old = window.locations[order[i]];
    moved[order[i]] = table.Index(i < keep ? old : Named(old.category, kOtherName), locations);
  }
  window.locations = std::move(locations);
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, WindowRow> rows;
  for (const WindowRow& row : window.rows) {
    WindowRow& sum = rows[{row.thread, moved[row.location]}];
    sum.thread = row.thread;
    sum.location = moved[row.location];
    sum.samples += row.samples;
    sum.weight += row.weight;
    sum.wall_ns += row.wall_ns;
  }
  window.rows.clear();
  for (const auto& [key, row] : rows) window.rows.push_back(row);
}

Window ResolveWindow(RawWindow raw, CodeIndex& index, absl::Duration timeout,
                     UnreadableModules* unreadable) {
  Window window;
  const Resolution resolution(raw, index, timeout, unreadable);
  const std::vector<uint32_t> row_of = AddRows(raw, resolution, window);
  FillWallTimes(raw, row_of, window);
  AddStacks(raw, resolution, window);
  window.start_unix_ns = raw.start_unix_ns;
  window.duration_ns = raw.duration_ns;
  window.setup = std::move(raw.setup);
  window.ranks = std::move(raw.ranks);
  window.threads = std::move(raw.threads);
  window.measurements = std::move(raw.measurements);
  window.audit = std::move(raw.audit);
  window.leased = std::move(raw.leased);
  window.accounting = raw.accounting;
  window.overhead = raw.overhead;
  FoldLightLocations(window, kMaxWindowLocations);
  return window;
}

}  // namespace perfd::agent
