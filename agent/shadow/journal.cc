#include "agent/shadow/journal.h"

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "agent/shadow/protocol.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr absl::string_view kFirstLine = "perfd injection 1\n";
constexpr absl::string_view kSuffix = ".injection";
constexpr size_t kMaxJournal = 16 << 20;

// FNV-1a, 64 bits: tells a torn file; it is no protection against a malicious one.
uint64_t Checksum(absl::string_view text) {
  uint64_t sum = 0xcbf29ce484222325;
  for (char c : text) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return sum;
}

std::string Hex(const std::vector<uint8_t>& bytes) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

bool Number(absl::string_view text, uint64_t* value) {
  return absl::SimpleHexAtoi(text, value);
}

// The fields of one line, the first is the key.
using Fields = std::vector<absl::string_view>;

bool ReadRange(const Fields& fields, PcRange* range) {
  return fields.size() == 3 && Number(fields[1], &range->start) && Number(fields[2], &range->end) &&
         range->start <= range->end;
}

std::vector<uint8_t> Bytes(absl::string_view hex) {
  std::string bytes = absl::HexStringToBytes(hex);
  return {bytes.begin(), bytes.end()};
}

bool IsHex(absl::string_view text) {
  return text.size() % 2 == 0 &&
         text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

// site HEADER ORIGINAL WRITTEN INODE MAJOR MINOR BIAS PATH LOOP; strings are hex
bool ReadSite(const Fields& fields, InjectedSite* site) {
  if (fields.size() != 10) return false;
  uint64_t major = 0, minor = 0;
  for (size_t i : std::array<size_t, 4>{2, 3, 8, 9}) {
    if (!IsHex(fields[i])) return false;
  }
  if (!Number(fields[1], &site->header) || !Number(fields[4], &site->text.inode) ||
      !Number(fields[5], &major) || !Number(fields[6], &minor) ||
      !Number(fields[7], &site->text.bias))
    return false;
  site->original = Bytes(fields[2]);
  site->written = Bytes(fields[3]);
  site->text.device_major = static_cast<uint32_t>(major);
  site->text.device_minor = static_cast<uint32_t>(minor);
  site->text.path = absl::HexStringToBytes(fields[8]);
  site->loop_id = absl::HexStringToBytes(fields[9]);
  return site->original.size() == site->written.size() && site->original.size() <= kMaxStolenBytes;
}

bool ReadLine(const Fields& fields, Injection* injection) {
  uint64_t number = 0;
  if (fields[0] == "process") {
    if (fields.size() != 4 || !Number(fields[1], &number) ||
        !Number(fields[2], &injection->start_ticks))
      return false;
    injection->pid = static_cast<int32_t>(number);
    injection->boot_id = std::string(fields[3]);
    return injection->pid > 0;
  }
  if (fields[0] == "region") return ReadRange(fields, &injection->region);
  if (fields[0] == "cache")
    return injection->caches.size() < kMaxCaches &&
           ReadRange(fields, &injection->caches.emplace_back());
  if (fields[0] == "site")
    return injection->sites.size() < kMaxSites &&
           ReadSite(fields, &injection->sites.emplace_back());
  if (fields[0] != "pair" || injection->sites.empty() || fields.size() != 3) return false;
  AddressPair pair;
  if (!Number(fields[1], &pair.original) || !Number(fields[2], &pair.copy)) return false;
  injection->sites.back().pairs.push_back(pair);
  return true;
}

std::string NameOf(int32_t pid, uint64_t start_ticks) {
  return absl::StrCat(pid, "-", start_ticks, kSuffix);
}

}  // namespace

std::string EncodeInjection(const Injection& injection) {
  std::string text(kFirstLine);
  absl::StrAppendFormat(&text, "process %x %x %s\n", injection.pid, injection.start_ticks,
                        injection.boot_id.empty() ? "-" : injection.boot_id);
  absl::StrAppendFormat(&text, "region %x %x\n", injection.region.start, injection.region.end);
  for (const PcRange& cache : injection.caches)
    absl::StrAppendFormat(&text, "cache %x %x\n", cache.start, cache.end);
  for (const InjectedSite& site : injection.sites) {
    absl::StrAppendFormat(&text, "site %x %s %s %x %x %x %x %s %s\n", site.header,
                          Hex(site.original), Hex(site.written), site.text.inode,
                          site.text.device_major, site.text.device_minor, site.text.bias,
                          absl::BytesToHexString(site.text.path),
                          absl::BytesToHexString(site.loop_id));
    for (const AddressPair& pair : site.pairs)
      absl::StrAppendFormat(&text, "pair %x %x\n", pair.original, pair.copy);
  }
  absl::StrAppendFormat(&text, "end %016x\n", Checksum(text));
  return text;
}

absl::StatusOr<Injection> DecodeInjection(absl::string_view text) {
  constexpr size_t kLastLine = sizeof("end 0123456789abcdef\n") - 1;
  if (!absl::StartsWith(text, kFirstLine) || text.size() < kFirstLine.size() + kLastLine ||
      text.back() != '\n')
    return absl::InvalidArgumentError("no injection journal");
  absl::string_view body = text.substr(0, text.size() - kLastLine);
  if (text.substr(body.size()) != absl::StrFormat("end %016x\n", Checksum(body)))
    return absl::InvalidArgumentError("cut off or changed: the checksum is wrong");
  body.remove_prefix(kFirstLine.size());
  Injection injection;
  for (absl::string_view line : absl::StrSplit(body, '\n', absl::SkipEmpty())) {
    const Fields fields = absl::StrSplit(line, ' ');
    if (!ReadLine(fields, &injection))
      return absl::InvalidArgumentError(absl::StrCat("bad line: ", line));
  }
  if (injection.pid <= 0) return absl::InvalidArgumentError("names no process");
  return injection;
}

absl::StatusOr<Journal> Journal::Make(const std::string& directory) {
  ASSIGN_OR_RETURN(OwnFolder folder, OwnFolder::Make(directory));
  RETURN_IF_ERROR(folder.MakePrivate());
  return Journal(std::move(folder));
}

absl::StatusOr<Journal> Journal::Open(const std::string& directory) {
  ASSIGN_OR_RETURN(OwnFolder folder, OwnFolder::Open(directory));
  return Journal(std::move(folder));
}

absl::StatusOr<UniqueFd> Journal::Lock() const {
  auto held = folder_.Lock();
  if (!absl::IsFailedPrecondition(held.status())) return held;
  return absl::FailedPreconditionError(
      absl::StrCat("the journals in ", folder_.path(), " belong to a perf-agent that runs"));
}

absl::StatusOr<Injection> Journal::Read(int32_t pid, uint64_t start_ticks) const {
  ASSIGN_OR_RETURN(const std::string text, folder_.Read(NameOf(pid, start_ticks), kMaxJournal));
  return DecodeInjection(text);
}

absl::Status Journal::Write(const Injection& injection) const {
  return folder_.Replace(NameOf(injection.pid, injection.start_ticks), EncodeInjection(injection));
}

absl::Status Journal::Remove(const Injection& injection) const {
  RETURN_IF_ERROR(folder_.Remove(NameOf(injection.pid, injection.start_ticks)));
  return folder_.Sync();
}

std::vector<Injection> Journal::ReadAll(std::vector<std::string>* damaged) const {
  std::vector<Injection> all;
  const auto names = folder_.Names();
  if (!names.ok()) damaged->push_back(std::string(names.status().message()));
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    if (!absl::EndsWith(name, kSuffix)) continue;
    auto text = folder_.Read(name, kMaxJournal);
    auto injection = text.ok() ? DecodeInjection(*text) : absl::StatusOr<Injection>(text.status());
    if (injection.ok()) {
      all.push_back(*std::move(injection));
    } else {
      damaged->push_back(absl::StrCat(folder_.PathOf(name), ": ", injection.status().message()));
    }
  }
  return all;
}

}  // namespace perfd::agent
