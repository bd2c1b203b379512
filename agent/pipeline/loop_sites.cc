#include "agent/pipeline/loop_sites.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/utf8.h"

namespace perfd::agent {
namespace {

ModuleKey KeyOf(const CodeMapping& mapping) {
  return {mapping.device_major, mapping.device_minor, mapping.inode, mapping.path};
}

RawModule ModuleOf(const ProcessImage& image, const CodeMapping& mapping) {
  return {.key = KeyOf(mapping),
          .kind = ClassifyModule(mapping.path, image.executable),
          .pid = image.rank.pid,
          .uid = image.rank.uid,
          .gid = image.admission.rights.gids[0],
          .map_start = mapping.start,
          .map_end = mapping.end};
}

// All questions together wait no longer than they are given.
class Patience {
 public:
  Patience(const CodeIndex& index, absl::Duration timeout)
      : index_(index), end_ns_(index.waited_ns() + absl::ToInt64Nanoseconds(timeout)) {}
  absl::Duration Left() const {
    return absl::Nanoseconds(std::max<int64_t>(end_ns_ - index_.waited_ns(), 0));
  }

 private:
  const CodeIndex& index_;
  const int64_t end_ns_;
};

// The mapping of a file that holds this offset of it.
const CodeMapping* MappingAt(const ProcessImage& image, const ModuleKey& file, FileOffset offset) {
  for (const CodeMapping& mapping : image.mappings) {
    if (KeyOf(mapping) != file || offset < mapping.file_offset) continue;
    if (offset - mapping.file_offset < mapping.end - mapping.start) return &mapping;
  }
  return nullptr;
}

std::string FillFrom(const RawModule& module, const ModuleCode& known, LoopSite& place,
                     const ProcessImage& image, CodeIndex& index, const Patience& patience) {
  const ElfAddress header = place.target.header;
  const std::optional<FileOffset> offset = ToFileOffset(known.facts, header);
  const CodeMapping* mapping = offset.has_value() ? MappingAt(image, module.key, *offset) : nullptr;
  if (mapping == nullptr) return "its code is not mapped in the rank";
  const auto code = index.Learn(module, {*offset}, patience.Left());
  const FunctionFacts* function = code->FunctionAt(header);
  if (function == nullptr) return "its function is not known";
  place.function = *function;
  place.bias = {mapping->start + (*offset - mapping->file_offset), header};
  return "";
}

// The build tells which file it is. Its path is only what was shown of it: files may be shown alike, may have been replaced
// since they were mapped, and other ranks may have a copy of the file elsewhere.
std::string Fill(LoopSite& place, const ProcessImage& image, CodeIndex& index,
                 const Patience& patience) {
  const MeasureLoop& target = place.target;
  std::string refusal = absl::StrCat("the rank has not loaded ", target.module_path);
  absl::flat_hash_set<ModuleKey> tried;
  for (const CodeMapping& mapping : image.mappings) {
    // Programs that make code as they run have many mappings without a file.
    if (mapping.path.empty() || !tried.insert(KeyOf(mapping)).second) continue;
    const RawModule module = ModuleOf(image, mapping);
    if (DisplayForm(mapping.path) != target.module_path &&
        DisplayForm(index.Recall(module)->id) != target.module_id)
      continue;
    if (module.kind == ModuleKind::kRuntime)
      return "it belongs to an MPI, OpenMP, thread or C runtime: those are never altered";
    const auto code = index.Learn(module, {mapping.file_offset}, patience.Left());
    if (!code->error.ok())
      refusal = absl::StrCat("its code cannot be read: ", code->error.message());
    else if (DisplayForm(code->id) != target.module_id)
      refusal = absl::StrCat("the rank runs another build of ", target.module_path);
    else
      return FillFrom(module, *code, place, image, index, patience);
  }
  return refusal;
}

}  // namespace

RankLoops LocateLoops(const ProcessImage& image, const std::vector<MeasureLoop>& loops,
                      CodeIndex& index, absl::Duration timeout) {
  RankLoops places;
  places.rank = image.rank;
  places.admission = image.admission;
  const Patience patience(index, timeout);
  for (const MeasureLoop& loop : loops) {
    LoopSite place;
    place.target = loop;
    place.refusal = Fill(place, image, index, patience);
    places.loops.push_back(std::move(place));
  }
  return places;
}

}  // namespace perfd::agent
