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

RawModule ModuleIn(const ProcessImage& image, const CodeMapping& mapping) {
  return ModuleOf({.pid = image.rank.pid,
                   .uid = image.rank.uid,
                   .gid = image.admission.rights.gids[0],
                   .start_ticks = image.rank.start_ticks,
                   .image = image.image,
                   .executable = image.executable},
                  mapping);
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

// The mappings of a file that hold this offset of it.
std::vector<const CodeMapping*> MappingsAt(const ProcessImage& image, const ModuleKey& file,
                                           FileOffset offset) {
  std::vector<const CodeMapping*> found;
  for (const CodeMapping& mapping : image.mappings) {
    if (KeyOf(mapping) != file || offset < mapping.file_offset) continue;
    if (offset - mapping.file_offset < mapping.end - mapping.start) found.push_back(&mapping);
  }
  return found;
}

// Samples of all are one loop's, and only one of them would be altered.
std::string LoadedTwice(const MeasureLoop& target) {
  return absl::StrCat("the rank has loaded ", target.module_path,
                      " at several places, and the samples of all are counted together");
}

std::string FillFrom(const RawModule& module, const ModuleCode& known, LoopSite& place,
                     const ProcessImage& image, CodeIndex& index, const Patience& patience) {
  const ElfAddress header = place.target.header;
  const std::optional<FileOffset> offset = ToFileOffset(known.facts, header);
  const auto mappings = offset.has_value() ? MappingsAt(image, module.key, *offset)
                                           : std::vector<const CodeMapping*>();
  if (mappings.empty()) return "its code is not mapped in the rank";
  if (mappings.size() > 1) return LoadedTwice(place.target);
  const CodeMapping* mapping = mappings.front();
  const auto code = index.Learn(module, {*offset}, patience.Left());
  const FunctionFacts* function = code->FunctionAt(header);
  if (function == nullptr) return "its function is not known";
  place.function = *function;
  place.bias = {mapping->start + (*offset - mapping->file_offset), header};
  return "";
}

// In anonymous memory: all of the function has to be the file's.
std::string FillFromMoved(const CodeMapping& mapping, const RawModule& file,
                          const ModuleCode& known, LoopSite& place, CodeIndex& index,
                          const Patience& patience) {
  const ElfAddress header = place.target.header;
  const auto bias = BiasOfMoved(known.facts, mapping.start, mapping.end, *mapping.beside);
  const std::optional<FileOffset> offset = ToFileOffset(known.facts, header);
  if (!bias.has_value() || !offset.has_value())
    return "the rank has put other memory in the place of its code";
  const auto code = index.Learn(file, {*offset}, patience.Left());
  const FunctionFacts* function = code->FunctionAt(header);
  if (function == nullptr) return "its function is not known";
  for (const CodeRange& part : PartsOf(*function)) {
    const absl::Status same = index.CheckMoved(file, *bias, part, patience.Left());
    if (!same.ok())
      return absl::StrCat("the rank has moved its code, and it cannot be taken for the file's: ",
                          same.message());
  }
  place.function = *function;
  place.bias = *bias;
  place.moved = true;
  return "";
}

// The code that an anonymous mapping was copied from, as if the process had mapped it.
CodeMapping FileBeside(const CodeMapping& mapping) {
  const FileNeighbour& beside = *mapping.beside;
  return {.start = beside.start,
          .end = beside.end,
          .file_offset = beside.file_offset,
          .device_major = beside.device_major,
          .device_minor = beside.device_minor,
          .inode = beside.inode,
          .path = beside.path};
}

// The mappings of a process, moved code as those of its file, after all that are the file's own.
struct Candidate {
  CodeMapping file;
  const CodeMapping* moved = nullptr;
};
std::vector<Candidate> Candidates(const ProcessImage& image) {
  std::vector<Candidate> candidates;
  for (const CodeMapping& mapping : image.mappings) {
    // Programs that make code as they run have many mappings without a file.
    if (!mapping.path.empty() && !mapping.beside.has_value()) candidates.push_back({mapping});
  }
  for (const CodeMapping& mapping : image.mappings) {
    if (mapping.beside.has_value()) candidates.push_back({FileBeside(mapping), &mapping});
  }
  return candidates;
}

bool HoldsHeader(const ModuleCode& code, const CodeMapping& moved, ElfAddress header) {
  const auto bias = BiasOfMoved(code.facts, moved.start, moved.end, *moved.beside);
  return bias.has_value() && header + *bias >= moved.start && header + *bias < moved.end;
}

// The build tells which file it is. Its path is only what was shown of it: files may be shown alike, may have been replaced
// since they were mapped, and other ranks may have a copy of the file elsewhere.
std::string FillFirst(LoopSite& place, const ProcessImage& image, CodeIndex& index,
                      const Patience& patience) {
  const MeasureLoop& target = place.target;
  std::string refusal = absl::StrCat("the rank has not loaded ", target.module_path);
  absl::flat_hash_set<ModuleKey> tried;
  for (const Candidate& candidate : Candidates(image)) {
    const RawModule module = ModuleIn(image, candidate.file);
    if (candidate.moved == nullptr && !tried.insert(module.key).second) continue;
    if (DisplayForm(candidate.file.path) != target.module_path &&
        DisplayForm(index.Recall(module)->id) != target.module_id)
      continue;
    if (module.kind == ModuleKind::kRuntime)
      return "it belongs to an MPI, OpenMP, thread or C runtime: those are never altered";
    const auto code = index.Learn(module, {candidate.file.file_offset}, patience.Left());
    if (!code->error.ok())
      refusal = absl::StrCat("its code cannot be read: ", code->error.message());
    else if (DisplayForm(code->id) != target.module_id)
      refusal = absl::StrCat("the rank runs another build of ", target.module_path);
    else if (candidate.moved == nullptr)
      refusal = FillFrom(module, *code, place, image, index, patience);
    else if (HoldsHeader(*code, *candidate.moved, target.header))
      return FillFromMoved(*candidate.moved, module, *code, place, index, patience);
    if (refusal.empty()) return "";
  }
  return refusal;
}

// Copies of the file by other names, as far as they are known: what was sampled is.
bool HasOtherCopy(const LoopSite& place, const ProcessImage& image, CodeIndex& index) {
  absl::flat_hash_set<ModuleKey> same;
  for (const Candidate& candidate : Candidates(image)) {
    const RawModule module = ModuleIn(image, candidate.file);
    if (DisplayForm(index.Recall(module)->id) == place.target.module_id) same.insert(module.key);
  }
  return same.size() > 1;
}

std::string Fill(LoopSite& place, const ProcessImage& image, CodeIndex& index,
                 const Patience& patience) {
  std::string refusal = FillFirst(place, image, index, patience);
  if (refusal.empty() && HasOtherCopy(place, image, index)) return LoadedTwice(place.target);
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
