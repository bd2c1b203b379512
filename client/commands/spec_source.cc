#include "client/commands/spec_source.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <istream>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/spec/spec.h"
#include "core/spec/units.h"
#include "core/spec/yaml_tree.h"

namespace perfd::client {
namespace {

bool HasTarget(const SpecFlags& flags) {
  const TargetSpec& target = flags.target;
  return !target.pids.empty() || target.command.has_value() || target.slurm_job.has_value();
}

absl::Status Contradiction(absl::string_view text) {
  return absl::FailedPreconditionError(text);
}

absl::StatusOr<CallPaths> ParseCallPaths(const std::string& text) {
  if (text == "auto") return CallPaths::kAuto;
  if (text == "off") return CallPaths::kOff;
  if (text == "fp") return CallPaths::kFramePointer;
  if (text == "dwarf") return CallPaths::kDwarf;
  return absl::InvalidArgumentError(
      absl::StrCat("--callpaths: '", text, "' is not one of auto, off, fp, dwarf"));
}

absl::Status Named(absl::string_view flag, const absl::Status& status) {
  return {status.code(), absl::StrCat(flag, ": ", status.message())};
}

absl::Status ApplyQuantities(const SpecFlags& flags, ProfileSpec* spec) {
  if (!flags.duration.empty()) {
    const bool was_fixed = !spec->until_known;
    spec->until_known = flags.duration == "auto";
    if (spec->until_known && was_fixed) spec->duration_ns = kLongestUntilKnownNs;
    if (!spec->until_known) {
      const auto duration = ParseDuration(flags.duration);
      if (!duration.ok()) return Named("--duration", duration.status());
      spec->duration_ns = *duration;
    }
  }
  if (!flags.max_duration.empty()) {
    if (!spec->until_known)
      return Contradiction("--max-duration can only stand with --duration auto");
    const auto duration = ParseDuration(flags.max_duration);
    if (!duration.ok()) return Named("--max-duration", duration.status());
    spec->duration_ns = *duration;
  }
  if (!flags.frequency.empty()) {
    const auto frequency = ParseFrequency(flags.frequency);
    if (!frequency.ok()) return Named("--frequency", frequency.status());
    spec->hotspots.frequency_hz = *frequency;
  }
  if (!flags.overhead.empty()) {
    const auto overhead = ParsePercent(flags.overhead);
    if (!overhead.ok()) return Named("--overhead", overhead.status());
    spec->budget.overhead_ratio = *overhead;
  }
  if (!flags.ranks.empty()) {
    const auto ranks = ParseRanks(flags.ranks);
    if (!ranks.ok()) return Named("--ranks", ranks.status());
    spec->ranks = *ranks;
  }
  return absl::OkStatus();
}

absl::Status Apply(const SpecFlags& flags, ProfileSpec* spec) {
  RETURN_IF_ERROR(ApplyQuantities(flags, spec));
  const TargetSpec& target = flags.target;
  if (!target.pids.empty()) spec->target.pids = target.pids;
  if (target.tree) spec->target.tree = true;
  if (target.command.has_value()) spec->target.command = target.command;
  if (target.slurm_job.has_value()) spec->target.slurm_job = target.slurm_job;
  if (!target.user.empty()) spec->target.user = target.user;
  if (!target.node.empty()) spec->target.node = target.node;
  if (!flags.name.empty()) spec->name = flags.name;
  if (!flags.mode.empty()) spec->variants.mode = flags.mode;
  if (!flags.event.empty()) spec->hotspots.event = flags.event;
  if (flags.variants == std::vector<std::string>{"none"})
    spec->variants.set.clear();
  else if (!flags.variants.empty())
    spec->variants.set = flags.variants;
  if (!flags.callpaths.empty()) {
    ASSIGN_OR_RETURN(spec->hotspots.callpaths, ParseCallPaths(flags.callpaths));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadSpecText(const std::string& file, std::istream& in) {
  std::string text(kMaxYamlBytes + 1, '\0');
  std::ifstream opened;
  if (file != "-") opened.open(file, std::ios::binary);
  std::istream& source = file == "-" ? in : opened;
  if (file != "-" && !opened.is_open())
    return Contradiction(absl::StrCat("cannot open '", file, "': ", strerror(errno)));
  errno = 0;
  source.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (source.bad()) return Contradiction(absl::StrCat("cannot read '", file, "'"));
  // A folder can be opened but not read.
  if (file != "-" && source.gcount() == 0 && errno == EISDIR)
    return Contradiction(absl::StrCat("'", file, "' is a folder"));
  text.resize(static_cast<size_t>(source.gcount()));
  return text;
}

absl::StatusOr<ProfileSpec> MakeSpec(const SpecFlags& flags, std::istream& in) {
  if (flags.file.empty() && !HasTarget(flags))
    return Contradiction("give a job file, or one of --pid, --command and --slurm-job");
  if (!flags.file.empty() && HasTarget(flags))
    return Contradiction("give a job file or --pid, --command, --slurm-job, not both");
  ProfileSpec spec;
  if (!flags.file.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadSpecText(flags.file, in));
    auto parsed = ParseProfileSpec(text);
    if (!parsed.ok())
      return absl::InvalidArgumentError(
          absl::StrCat(flags.file == "-" ? "standard input" : flags.file,
                       " is not a valid profile:\n", parsed.status().message()));
    spec = *std::move(parsed);
  }
  RETURN_IF_ERROR(Apply(flags, &spec));
  RETURN_IF_ERROR(ValidateProfileSpec(spec));
  return spec;
}

}  // namespace perfd::client
