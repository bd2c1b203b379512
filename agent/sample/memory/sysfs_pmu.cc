#include "agent/sample/memory/sysfs_pmu.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/files/own_file.h"

namespace perfd::agent {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = 4096;  // a page: no file there is larger
constexpr size_t kMostFiles = 4096;
constexpr int kBitsOfWord = 64;

absl::StatusOr<std::string> ReadLine(const fs::path& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadBoundedFile(path.string(), kMostBytes));
  return std::string(absl::StripAsciiWhitespace(text));
}

// The files of a folder by their names, without those that say something about another ("mem-loads.unit").
std::map<std::string, std::string> ReadFolder(const fs::path& folder) {
  std::map<std::string, std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.find('.') != std::string::npos || out.size() >= kMostFiles) continue;
    absl::StatusOr<std::string> text = ReadLine(it->path());
    if (text.ok()) out[name] = *std::move(text);
  }
  return out;
}

std::optional<uint64_t> Number(absl::string_view text) {
  uint64_t value = 0;
  const bool hex = absl::ConsumePrefix(&text, "0x");
  const bool ok = hex ? absl::SimpleHexAtoi(text, &value) : absl::SimpleAtoi(text, &value);
  return ok ? std::optional(value) : std::nullopt;
}

}  // namespace

absl::StatusOr<EventTerms> ParseTerms(absl::string_view text) {
  EventTerms out;
  for (const absl::string_view term : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(absl::StripAsciiWhitespace(term), absl::MaxSplits('=', 1));
    const std::optional<uint64_t> value =
        parts.second.empty() ? std::optional<uint64_t>(1) : Number(parts.second);
    if (!value.has_value())
      return absl::InvalidArgumentError(absl::StrCat("the term '", term, "' is no number"));
    out[std::string(parts.first)] = *value;
  }
  return out;
}

absl::StatusOr<SysfsPmu> SysfsPmu::Read(const std::string& sys_root, const std::string& name) {
  const fs::path folder = fs::path(sys_root) / "bus/event_source/devices" / name;
  SysfsPmu pmu;
  pmu.name_ = name;
  ASSIGN_OR_RETURN(const std::string type, ReadLine(folder / "type"));
  if (!absl::SimpleAtoi(type, &pmu.type_))
    return absl::InvalidArgumentError(absl::StrCat((folder / "type").string(), " is no number"));
  pmu.events_ = ReadFolder(folder / "events");
  for (const auto& [term, text] : ReadFolder(folder / "format")) {
    absl::StatusOr<Format> format = ParseFormat(text);
    if (format.ok()) pmu.formats_[term] = *std::move(format);
  }
  return pmu;
}

absl::StatusOr<SysfsPmu::Format> SysfsPmu::ParseFormat(absl::string_view text) {
  constexpr std::array<absl::string_view, 3> kWords = {"config", "config1", "config2"};
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, ':');
  const auto word = std::find(kWords.begin(), kWords.end(), parts.first);
  Format format;
  format.word = static_cast<int>(word - kWords.begin());
  bool good = word != kWords.end();
  for (const absl::string_view range : absl::StrSplit(parts.second, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(range, '-');
    int low = 0;
    int high = 0;
    good = good && absl::SimpleAtoi(ends.first, &low);
    high = low;
    good = good && (ends.second.empty() || absl::SimpleAtoi(ends.second, &high));
    good = good && low >= 0 && low <= high && high < kBitsOfWord;
    format.ranges.emplace_back(low, high);
  }
  if (!good) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no format"));
  return format;
}

absl::Status SysfsPmu::Place(const Format& format, uint64_t value, EventEncoding* encoding) {
  uint64_t& word = format.word == 0   ? encoding->config
                   : format.word == 1 ? encoding->config1
                                      : encoding->config2;
  for (const auto& [low, high] : format.ranges) {
    const int width = high - low + 1;
    const uint64_t mask = width == kBitsOfWord ? UINT64_MAX : (uint64_t{1} << width) - 1;
    word |= (value & mask) << low;
    value = width == kBitsOfWord ? 0 : value >> width;
  }
  return value == 0 ? absl::OkStatus() : absl::InvalidArgumentError("it is too large");
}

absl::StatusOr<EventEncoding> SysfsPmu::Encode(const EventTerms& terms,
                                               absl::string_view name) const {
  EventEncoding encoding;
  encoding.name = absl::StrCat(name_, "/", name, "/");
  encoding.type = type_;
  for (const auto& [term, value] : terms) {
    const auto format = formats_.find(term);
    if (format == formats_.end())
      return absl::UnimplementedError(
          absl::StrCat(encoding.name, ": this kernel's PMU ", name_, " has no term '", term, "'"));
    const absl::Status placed = Place(format->second, value, &encoding);
    if (!placed.ok())
      return absl::InvalidArgumentError(
          absl::StrCat(encoding.name, ": ", term, "=", value, ": ", placed.message()));
  }
  return encoding;
}

absl::StatusOr<EventEncoding> SysfsPmu::EncodeNamed(const std::string& event,
                                                    const EventTerms& changed) const {
  const auto found = events_.find(event);
  if (found == events_.end())
    return absl::NotFoundError(absl::StrCat("the PMU ", name_, " has no event ", event));
  ASSIGN_OR_RETURN(EventTerms terms, ParseTerms(found->second));
  for (const auto& [term, value] : changed) terms[term] = value;
  return Encode(terms, event);
}

}  // namespace perfd::agent
