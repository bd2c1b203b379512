#include "agent/pipeline/resolve_window.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "agent/pipeline/ranks/wall_rows.h"
#include "core/base/utf8.h"

namespace perfd::agent {
namespace {

constexpr char kOtherName[] = "(other)";

constexpr char kMovedAway[] =
    "the program has put anonymous memory in the place of the file's code, as remappers to large "
    "pages do, and nothing says that it is the same code; without the remapper it has names (";

constexpr char kMadeAtRunTime[] = "[code made at run time]";

CodeLocation Named(Category category, std::string name) {
  CodeLocation location;
  location.category = category;
  location.function = std::move(name);
  return location;
}

// Where one address of a readable module is; `address`: none where the file has no segment.
CodeLocation LocateInModule(const ModuleKind kind, const std::string& path, const ModuleCode& code,
                            std::optional<ElfAddress> address) {
  CodeLocation location = Named(Category::kUnknown, "[no function]");
  location.module_id = code.id;
  location.module_path = path;
  if (!code.error.ok() && code.functions.empty()) {
    location.function = "[unreadable module]";
    return location;
  }
  const FunctionFacts* function = address.has_value() ? code.FunctionAt(*address) : nullptr;
  if (function == nullptr) return location;
  const LoopFacts* loop = InnermostLoop(*function, *address);
  const bool runtime = kind == ModuleKind::kRuntime;
  location.function = function->name;
  location.function_low = function->low;
  location.openmp = function->openmp;
  location.loop_kind =
      runtime && IsWaiting(path, function->name) ? LoopKind::kWaiting : LoopKind::kCompute;
  location.source = loop != nullptr ? loop->source : function->declaration;
  if (loop != nullptr) location.loop = *loop;
  if (runtime)
    location.category = Category::kLibrary;
  else if (loop != nullptr)
    location.category = Category::kLoop;
  else
    location.category = kind == ModuleKind::kProgram ? Category::kOutsideLoop : Category::kLibrary;
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

// The file that moved code was copied from, as if the process had mapped it.
RawModule FileOf(const RawModule& moved) {
  const FileNeighbour& beside = moved.moved->beside;
  RawModule file = moved;
  file.key = {beside.device_major, beside.device_minor, beside.inode, beside.path};
  file.kind = moved.moved->kind;
  file.map_start = beside.start;
  file.map_end = beside.end;
  return file;
}

constexpr uint64_t kPage = 4096;

// The code of one file in its own place, in anonymous memory: pages that hold the file's bytes are the file.
class MovedModule {
 public:
  MovedModule(const RawModule& module, CodeIndex& index)
      : file_(FileOf(module)), moved_(module), index_(index) {}

  // Of these run-time addresses, those that can be named. OK: all of them.
  absl::Status Learn(const std::vector<FileOffset>& addresses, absl::Duration timeout,
                     ModuleDetail detail) {
    const int64_t waited_ns = index_.waited_ns();
    const auto left = [&] { return timeout - absl::Nanoseconds(index_.waited_ns() - waited_ns); };
    LearnFile({}, timeout, detail);
    if (!code_->error.ok()) return code_->error;
    const auto bias =
        BiasOfMoved(code_->facts, moved_.map_start, moved_.map_end, moved_.moved->beside);
    if (!bias.has_value()) return absl::FailedPreconditionError("it is not where the code belongs");
    bias_ = *bias;
    absl::Status first;
    std::vector<FileOffset> offsets;
    absl::flat_hash_map<uint64_t, bool> pages;
    for (FileOffset at : addresses) {
      const ElfAddress address = RuntimeAddress(at.value()) - bias_;
      auto [page, is_new] = pages.try_emplace(at.value() / kPage, false);
      if (is_new) {
        const CodeRange byte{address.value(), address.value() + 1};
        const absl::Status same = index_.CheckMoved(file_, bias_, byte, left());
        page->second = same.ok();
        first.Update(same);
      }
      const auto offset = ToFileOffset(code_->facts, address);
      if (!page->second || !offset.has_value()) continue;
      same_.insert(at.value() / kPage);
      offsets.push_back(*offset);
    }
    LearnFile(offsets, left(), detail);
    first.Update(code_->error);
    return first;
  }

  CodeLocation Locate(FileOffset at) const {
    if (!same_.contains(at.value() / kPage)) return Named(Category::kUnknown, moved_.key.path);
    return LocateInModule(file_.kind, file_.key.path, *code_, RuntimeAddress(at.value()) - bias_);
  }

 private:
  void LearnFile(const std::vector<FileOffset>& offsets, absl::Duration left, ModuleDetail detail) {
    const bool in_time = left > absl::ZeroDuration() || index_.Knows(file_, offsets);
    code_ = in_time ? index_.Learn(file_, offsets, left, detail) : index_.Recall(file_);
  }

  const RawModule file_;
  const RawModule& moved_;
  CodeIndex& index_;
  LoadBias bias_;
  absl::flat_hash_set<uint64_t> same_;  // pages
  std::shared_ptr<const ModuleCode> code_;
};

class Resolution {
 public:
  Resolution(const RawWindow& raw, CodeIndex& index, absl::Duration timeout,
             UnreadableModules* unreadable)
      : raw_(raw), index_(index) {
    std::vector<std::vector<FileOffset>> offsets(raw.modules.size());
    auto note = [&](const RawLocation& location) {
      if (location.HasModule()) offsets[location.module].push_back(location.file_offset);
    };
    for (const RawRow& row : raw.rows) note(row.location);
    for (const RawStack& stack : raw.stacks)
      std::for_each(stack.frames.begin(), stack.frames.end(), note);
    for (const RawMemoryRow& row : raw.findings.memory.rows) note(row.at);
    code_.resize(raw.modules.size());
    const std::vector<ModuleDetail> details = Details(raw);
    const int64_t waited_ns = index.waited_ns();
    for (size_t i = 0; i < raw.modules.size(); ++i) {
      const RawModule& module = raw.modules[i];
      if (module.kind == ModuleKind::kVdso) continue;
      const absl::Duration left = timeout - absl::Nanoseconds(index.waited_ns() - waited_ns);
      if (module.kind == ModuleKind::kAnonymous)
        LearnMade(module, offsets[i]);
      else if (module.kind == ModuleKind::kMoved)
        LearnMoved(i, offsets[i], left, details[i], unreadable);
      else
        Learn(i, index, offsets[i], left, details[i], unreadable);
    }
  }

  CodeLocation Locate(const RawLocation& location) const {
    switch (location.kind) {
      case RawLocation::Kind::kKernel:
        return LocateInKernel(location);
      case RawLocation::Kind::kUnmapped:
        return Named(Category::kUnknown, "[unmapped]");
      case RawLocation::Kind::kTruncated:
        return Named(Category::kUnknown, "[truncated]");
      case RawLocation::Kind::kOther:
        return Named(Category::kUnknown, kOtherName);
      case RawLocation::Kind::kModule:
        break;
    }
    return LocateInUser(location);
  }

  // Of code in a file that can be read; 0: not known.
  ElfAddress Instruction(const RawLocation& location) const {
    if (location.kind != RawLocation::Kind::kModule || code_[location.module] == nullptr) return 0;
    return ToElfAddress(code_[location.module]->facts, location.file_offset).value_or(0);
  }

 private:
  // The loop's lines tell more of a caller than those of its function.
  CodeLocation LocateInKernel(const RawLocation& at) const {
    CodeLocation location = Named(Category::kKernel, "[kernel]");
    location.kernel_cause = at.cause;
    if (!at.HasModule()) return location;
    const CodeLocation caller = LocateInUser(at);
    location.kernel_caller = caller.function;
    location.source = caller.source;
    return location;
  }

  CodeLocation LocateInUser(const RawLocation& location) const {
    const RawModule& module = raw_.modules[location.module];
    if (module.kind == ModuleKind::kVdso) return Named(Category::kLibrary, "[vdso]");
    if (module.kind == ModuleKind::kAnonymous) return LocateMade(module, location.file_offset);
    if (module.kind == ModuleKind::kMoved) {
      const auto moved = moved_.find(location.module);
      return moved == moved_.end() ? Named(Category::kUnknown, module.key.path)
                                   : moved->second->Locate(location.file_offset);
    }
    const ModuleCode& code = *code_[location.module];
    return LocateInModule(module.kind, module.key.path, code,
                          ToElfAddress(code.facts, location.file_offset));
  }

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

  void LearnMade(const RawModule& module, const std::vector<FileOffset>& offsets) {
    std::vector<RuntimeAddress> addresses;
    addresses.reserve(offsets.size());
    for (FileOffset offset : offsets) addresses.emplace_back(offset.value());
    index_.perf_maps().Learn(module.process, module.uid, addresses);
  }

  // Its maker has told its functions, not its loops.
  CodeLocation LocateMade(const RawModule& module, FileOffset at) const {
    const PerfMap::Symbol* symbol = index_.perf_maps().At(module.process, at.value());
    if (symbol == nullptr) return Named(Category::kUnknown, "[anonymous code]");
    CodeLocation location = Named(Category::kUnknown, DisplayForm(symbol->name));
    location.module_path = kMadeAtRunTime;
    return location;
  }

  void LearnMoved(size_t i, const std::vector<FileOffset>& addresses, absl::Duration left,
                  ModuleDetail detail, UnreadableModules* unreadable) {
    const RawModule& module = raw_.modules[i];
    absl::Status status = absl::FailedPreconditionError("nothing of the file is beside it");
    if (module.moved.has_value()) {
      auto& moved = moved_[i] = std::make_unique<MovedModule>(module, index_);
      status = moved->Learn(addresses, left, detail);
    }
    if (!status.ok())
      unreadable->push_back({module.key.path, absl::FailedPreconditionError(absl::StrCat(
                                                  kMovedAway, status.message(), ")"))});
  }

  const RawWindow& raw_;
  CodeIndex& index_;
  std::vector<std::shared_ptr<const ModuleCode>> code_;  // null where the module is no file
  absl::flat_hash_map<size_t, std::unique_ptr<MovedModule>> moved_;
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
std::vector<uint32_t> AddRows(const RawWindow& raw, const Resolution& resolution,
                              LocationTable& table, Window& window) {
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
          names.try_emplace(name, static_cast<uint32_t>(window.paths.frame_names.size()));
      if (is_new) window.paths.frame_names.push_back(name);
      frames.push_back(entry->second);
    }
    merged[{stack.rank, std::move(frames)}] += stack.samples;
  }
  for (const auto& [key, samples] : merged)
    window.paths.stacks.push_back({key.first, key.second, samples});
}

WindowMemory ResolveMemory(RawMemory& raw, const Resolution& resolution, LocationTable& table,
                           std::vector<CodeLocation>& locations) {
  WindowMemory memory{.events = std::move(raw.events), .rows = {}, .lost = raw.lost};
  memory.rows.reserve(raw.rows.size());
  for (const RawMemoryRow& row : raw.rows) {
    memory.rows.push_back({.rank = row.rank,
                           .pid = row.pid,
                           .location = table.Index(resolution.Locate(row.at), locations),
                           .instruction = resolution.Instruction(row.at),
                           .profile = row.profile,
                           .times = row.times});
  }
  return memory;
}

bool IsComputeLoop(const CodeLocation& at) {
  return at.category == Category::kLoop && at.loop.has_value() &&
         at.loop_kind == LoopKind::kCompute;
}

// Paths by where they began and by the loop that had called it.
using PathsByCall = std::map<std::pair<uint32_t, std::optional<uint32_t>>, uint64_t>;

std::vector<WindowCall> CallsOf(const PathsByCall& paths) {
  std::vector<WindowCall> calls;
  for (const auto& [key, count] : paths) calls.push_back({key.first, key.second, count});
  return calls;
}

// Which loops had called what ran outside of loops: the innermost one on the way out. Where the way is cut off before a loop was
// found, or goes through a runtime that waits or through code that cannot be read, none is: a loop farther out is found less
// often than a near one, and to leave such paths out would give a near one their part. So the part of a loop is at least what
// is said. A path that is cut off at once is left out, for that is the same whoever had called.
class CallCounter {
 public:
  CallCounter(const Resolution& resolution, LocationTable& table, Window& window)
      : resolution_(resolution), table_(table), window_(window) {}

  void Count(const RawStack& stack) {
    if (stack.frames.empty() || !MayBeCalled(At(stack.frames[0]))) return;
    std::optional<uint32_t> loop;
    for (size_t i = 1; i < stack.frames.size() && !loop.has_value(); ++i) {
      const CodeLocation& at = At(stack.frames[i]);
      if (at.category == Category::kUnknown && i == 1) return;
      if (at.category == Category::kUnknown || at.loop_kind == LoopKind::kWaiting) break;
      if (IsComputeLoop(at)) loop = table_.Index(at, window_.locations);
    }
    const uint32_t from = table_.Index(At(stack.frames[0]), window_.locations);
    paths_[{from, loop}] += stack.samples;
  }

  std::vector<WindowCall> Calls() const { return CallsOf(paths_); }

 private:
  const CodeLocation& At(const RawLocation& frame) {
    auto [it, is_new] = known_.try_emplace(frame);
    if (is_new) it->second = resolution_.Locate(frame);
    return it->second;
  }

  const Resolution& resolution_;
  LocationTable& table_;
  Window& window_;
  std::unordered_map<RawLocation, CodeLocation, absl::Hash<RawLocation>> known_;
  PathsByCall paths_;
};

// The loops and functions of calls in their new places. A loop that was folded is told apart from no other: no loop.
void FoldCalls(const std::vector<uint32_t>& moved, Window& window) {
  PathsByCall paths;
  for (const WindowCall& call : window.paths.calls) {
    std::optional<uint32_t> loop;
    if (call.loop.has_value()) loop = moved[*call.loop];
    if (loop.has_value() && !window.locations[*loop].loop.has_value()) loop.reset();
    paths[{moved[call.location], loop}] += call.paths;
  }
  window.paths.calls = CallsOf(paths);
}

// An instruction of a place that was folded is one of many.
void FoldMemory(const std::vector<uint32_t>& moved, Window& window) {
  for (MemoryRow& row : window.findings.memory.rows) {
    row.location = moved[row.location];
    if (window.locations[row.location].function == kOtherName) row.instruction = 0;
  }
}

CodeLocation OthersOf(const CodeLocation& old) {
  CodeLocation others = Named(old.category, kOtherName);
  others.kernel_cause = old.kernel_cause;
  return others;
}

}  // namespace

bool MayBeCalled(const CodeLocation& at) {
  return (at.category == Category::kOutsideLoop || at.category == Category::kLibrary) &&
         at.loop_kind != LoopKind::kWaiting;
}

void FoldLightLocations(Window& window, size_t limit) {
  if (window.locations.size() <= limit) return;
  std::vector<uint64_t> weight(window.locations.size());
  for (const WindowRow& row : window.rows) weight[row.location] += row.samples;
  for (const WindowCall& call : window.paths.calls) {
    if (call.loop.has_value()) weight[*call.loop] += call.paths;
  }
  for (const MemoryRow& row : window.findings.memory.rows)
    weight[row.location] += row.profile.all.samples;
  std::vector<uint32_t> order(window.locations.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return weight[a] != weight[b] ? weight[a] > weight[b] : a < b;
  });
  constexpr size_t kOthers = kCategoryCount + kKernelCauseCount;
  const size_t keep = limit > kOthers ? limit - kOthers : 0;
  LocationTable table;
  std::vector<CodeLocation> locations;
  std::vector<uint32_t> moved(window.locations.size());
  for (size_t i = 0; i < order.size(); ++i) {
    CodeLocation& old = window.locations[order[i]];
    moved[order[i]] = table.Index(i < keep ? old : OthersOf(old), locations);
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
  FoldCalls(moved, window);
  FoldMemory(moved, window);
}

Window ResolveWindow(RawWindow raw, CodeIndex& index, absl::Duration timeout,
                     UnreadableModules* unreadable) {
  Window window;
  const Resolution resolution(raw, index, timeout, unreadable);
  LocationTable table;
  const std::vector<uint32_t> row_of = AddRows(raw, resolution, table, window);
  FillWallTimes(raw, row_of, window);
  AddStacks(raw, resolution, window);
  CallCounter calls(resolution, table, window);
  for (const RawStack& stack : raw.stacks) calls.Count(stack);
  window.paths.calls = calls.Calls();
  window.start_unix_ns = raw.start_unix_ns;
  window.duration_ns = raw.duration_ns;
  window.setup = std::move(raw.setup);
  window.ranks = std::move(raw.ranks);
  window.threads = std::move(raw.threads);
  window.findings.measurements = std::move(raw.findings.measurements);
  window.findings.memory = ResolveMemory(raw.findings.memory, resolution, table, window.locations);
  window.audit = std::move(raw.audit);
  window.leased = std::move(raw.leased);
  window.accounting = raw.accounting;
  window.overhead = raw.overhead;
  FoldLightLocations(window, kMaxWindowLocations);
  return window;
}

}  // namespace perfd::agent
