#include "agent/pipeline/loop_sites.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

RawModule ModuleOf(const ProcessImage& image, const CodeMapping& mapping) {
  return {.key = {mapping.device_major, mapping.device_minor, mapping.inode, mapping.path},
          .kind = ClassifyModule(mapping.path, image.executable),
          .pid = image.rank.pid,
          .uid = image.rank.uid,
          .gid = image.admission.rights.gids[0],
          .map_start = mapping.start,
          .map_end = mapping.end};
}

// The mapping of the loop's file that holds this offset of it.
const CodeMapping* MappingAt(const ProcessImage& image, const std::string& path,
                             FileOffset offset) {
  for (const CodeMapping& mapping : image.mappings) {
    if (mapping.path != path || offset < mapping.file_offset) continue;
    if (offset - mapping.file_offset < mapping.end - mapping.start) return &mapping;
  }
  return nullptr;
}

std::string Fill(LoopSite& place, const ProcessImage& image, CodeIndex& index,
                 absl::Duration timeout) {
  const MeasureLoop& target = place.target;
  const auto any =
      std::find_if(image.mappings.begin(), image.mappings.end(),
                   [&](const CodeMapping& mapping) { return mapping.path == target.module_path; });
  if (any == image.mappings.end())
    return absl::StrCat("the rank has not loaded ", target.module_path);
  const RawModule module = ModuleOf(image, *any);
  if (module.kind == ModuleKind::kRuntime)
    return "it belongs to an MPI, OpenMP, thread or C runtime: those are never altered";
  auto code = index.Learn(module, {any->file_offset}, timeout);
  if (!code->error.ok()) return absl::StrCat("its code cannot be read: ", code->error.message());
  if (code->id != target.module_id)
    return absl::StrCat("the rank runs another build of ", target.module_path);
  const std::optional<FileOffset> offset = ToFileOffset(code->facts, target.header);
  const CodeMapping* mapping =
      offset.has_value() ? MappingAt(image, target.module_path, *offset) : nullptr;
  if (mapping == nullptr) return "its code is not mapped in the rank";
  code = index.Learn(module, {*offset}, timeout);
  const FunctionFacts* function = code->FunctionAt(target.header);
  if (function == nullptr) return "its function is not known";
  place.function = *function;
  place.bias = {mapping->start + (*offset - mapping->file_offset), target.header};
  return "";
}

}  // namespace

RankLoops LocateLoops(const ProcessImage& image, const std::vector<MeasureLoop>& loops,
                      CodeIndex& index, absl::Duration timeout) {
  RankLoops places;
  places.rank = image.rank;
  places.admission = image.admission;
  const int64_t waited_ns = index.waited_ns();
  for (const MeasureLoop& loop : loops) {
    LoopSite place;
    place.target = loop;
    const absl::Duration left = timeout - absl::Nanoseconds(index.waited_ns() - waited_ns);
    place.refusal = Fill(place, image, index, std::max(left, absl::ZeroDuration()));
    places.loops.push_back(std::move(place));
  }
  return places;
}

}  // namespace perfd::agent
