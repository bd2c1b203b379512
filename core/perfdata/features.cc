#include "core/perfdata/features.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace perfd {
namespace {

// More of anything than this is a recording of a machine that nobody has, or none at all.
constexpr uint32_t kMostRows = 1u << 16;
constexpr uint16_t kBuildIdHasSize = 1u << 15;  // PERF_RECORD_MISC_BUILD_ID_SIZE, tools/perf

struct BuildIdBody {  // struct perf_record_header_build_id, without its header; the path follows
  int32_t pid;
  uint8_t id[20];
  uint8_t id_bytes;
  uint8_t reserved[3];
};
static_assert(sizeof(BuildIdBody) == 28);

std::string UpToNul(std::span<const std::byte> bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
  std::string text;
  std::transform(bytes.begin(), end, std::back_inserter(text),
                 [](std::byte b) { return static_cast<char>(b); });
  return text;
}

// struct perf_header_string: its length with what fills it up, then NUL-terminated text.
std::string ReadText(ByteReader& reader) {
  const auto length = reader.Read<uint32_t>();
  return UpToNul(reader.ReadSpan(length));
}

// Few enough, each with at least `row_bytes` of what is left.
bool Plausible(uint32_t rows, size_t row_bytes, const ByteReader& reader) {
  return reader.ok() && rows <= kMostRows && rows <= reader.remaining() / row_bytes;
}

bool ReadCommandLine(ByteReader& reader, std::string* out) {
  const auto count = reader.Read<uint32_t>();
  if (!Plausible(count, sizeof(uint32_t), reader)) return false;
  std::string line;
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0) line += ' ';
    line += ReadText(reader);
  }
  if (reader.ok()) *out = std::move(line);
  return reader.ok();
}

void NameEvents(const std::vector<RecordedEvent>& described, std::vector<RecordedEvent>* events) {
  absl::flat_hash_map<uint64_t, size_t> event_of_id;
  for (size_t i = 0; i < events->size(); ++i)
    for (const uint64_t id : (*events)[i].ids) event_of_id.try_emplace(id, i);
  for (size_t i = 0; i < described.size(); ++i) {
    const std::vector<uint64_t>& ids = described[i].ids;
    if (ids.empty()) {
      if (i < events->size()) (*events)[i].name = described[i].name;
      continue;
    }
    const auto event = event_of_id.find(ids[0]);
    if (event != event_of_id.end()) (*events)[event->second].name = described[i].name;
  }
}

bool ReadEventDescription(ByteReader& reader, std::vector<RecordedEvent>* events) {
  const auto count = reader.Read<uint32_t>();
  const auto attr_bytes = reader.Read<uint32_t>();
  if (attr_bytes < PERF_ATTR_SIZE_VER0 || !Plausible(count, attr_bytes, reader)) return false;
  std::vector<RecordedEvent> described;
  for (uint32_t i = 0; i < count; ++i) {
    reader.Skip(attr_bytes);
    const auto ids = reader.Read<uint32_t>();
    RecordedEvent& event = described.emplace_back();
    event.name = ReadText(reader);
    if (!reader.ok() || ids > reader.remaining() / sizeof(uint64_t)) return false;
    for (uint32_t k = 0; k < ids; ++k) event.ids.push_back(reader.Read<uint64_t>());
  }
  if (reader.ok()) NameEvents(described, events);
  return reader.ok();
}

bool ReadBuildIds(ByteReader& reader, std::vector<RecordedModule>* out) {
  std::vector<RecordedModule> modules;
  while (reader.remaining() > 0) {
    const auto header = reader.Read<perf_event_header>();
    const auto body = reader.Read<BuildIdBody>();
    constexpr size_t kFixed = sizeof header + sizeof body;
    if (!reader.ok() || header.size < kFixed) return false;
    if (out->size() + modules.size() >= kMostRows) return false;
    RecordedModule& module = modules.emplace_back();
    module.pid = body.pid;
    const size_t bytes = (header.misc & kBuildIdHasSize) != 0 ? body.id_bytes : sizeof body.id;
    if (bytes > sizeof body.id) return false;
    module.build_id.assign(reinterpret_cast<const char*>(body.id), bytes);
    module.path = UpToNul(reader.ReadSpan(header.size - kFixed));
  }
  if (reader.ok()) out->insert(out->end(), modules.begin(), modules.end());
  return reader.ok();
}

bool ReadNumaNodes(ByteReader& reader, std::vector<RecordedNumaNode>* out) {
  const auto count = reader.Read<uint32_t>();
  if (!Plausible(count, 24, reader)) return false;
  std::vector<RecordedNumaNode> nodes(count);
  for (RecordedNumaNode& node : nodes) {
    node.id = reader.Read<uint32_t>();
    node.memory_kib = reader.Read<uint64_t>();
    reader.Skip(sizeof(uint64_t));  // free, then
    node.cpus = ReadText(reader);
  }
  if (reader.ok()) *out = std::move(nodes);
  return reader.ok();
}

bool ReadCaches(ByteReader& reader, std::vector<RecordedCache>* out) {
  constexpr uint32_t kVersion = 1;
  const auto version = reader.Read<uint32_t>();
  const auto count = reader.Read<uint32_t>();
  if (version != kVersion) return reader.ok();  // said in a way that is not known yet
  if (!Plausible(count, 28, reader)) return false;
  std::vector<RecordedCache> caches(count);
  for (RecordedCache& cache : caches) {
    cache.level = reader.Read<uint32_t>();
    cache.line_bytes = reader.Read<uint32_t>();
    cache.sets = reader.Read<uint32_t>();
    cache.ways = reader.Read<uint32_t>();
    cache.type = ReadText(reader);
    cache.size = ReadText(reader);
    cache.cpus = ReadText(reader);
  }
  if (reader.ok()) *out = std::move(caches);
  return reader.ok();
}

bool ReadInto(ByteReader& reader, std::string* out) {
  std::string text = ReadText(reader);
  if (reader.ok()) *out = std::move(text);
  return reader.ok();
}

bool ReadCpuCounts(ByteReader& reader, RecordingFacts* facts) {
  reader.Skip(sizeof(uint32_t));  // that there could be, then
  const auto online = reader.Read<uint32_t>();
  if (!reader.ok()) return false;
  facts->cpus_online = online;
  return true;
}

bool ReadSampleTimes(ByteReader& reader, RecordingFacts* facts) {
  const auto first_ns = reader.Read<uint64_t>();
  const auto last_ns = reader.Read<uint64_t>();
  if (!reader.ok() || last_ns < first_ns) return false;
  facts->first_ns = first_ns;
  facts->last_ns = last_ns;
  return true;
}

}  // namespace

bool ReadFeature(uint32_t feature, std::span<const std::byte> bytes, RecordingFacts* facts,
                 std::vector<RecordedEvent>* events) {
  ByteReader reader(bytes);
  switch (static_cast<Feature>(feature)) {
    case Feature::kBuildId:
      return ReadBuildIds(reader, &facts->modules);
    case Feature::kHostName:
      return ReadInto(reader, &facts->host);
    case Feature::kArchitecture:
      return ReadInto(reader, &facts->machine);
    case Feature::kCpuCount:
      return ReadCpuCounts(reader, facts);
    case Feature::kCpuDescription:
      return ReadInto(reader, &facts->cpu);
    case Feature::kTotalMemory:
      facts->memory_kib = reader.Read<uint64_t>();
      return reader.ok();
    case Feature::kCommandLine:
      return ReadCommandLine(reader, &facts->command);
    case Feature::kEventDescription:
      return ReadEventDescription(reader, events);
    case Feature::kNumaTopology:
      return ReadNumaNodes(reader, &facts->numa_nodes);
    case Feature::kCache:
      return ReadCaches(reader, &facts->caches);
    case Feature::kSampleTime:
      return ReadSampleTimes(reader, facts);
    case Feature::kDirectory:
      return true;  // refused by whoever reads the recording
  }
  return true;
}

std::optional<perf_event_attr> ReadAttr(ByteReader& reader) {
  perf_event_attr attr{};
  ByteReader probe = reader;
  probe.Skip(offsetof(perf_event_attr, size));
  auto bytes = probe.Read<uint32_t>();
  if (bytes == 0) bytes = PERF_ATTR_SIZE_VER0;
  const std::span<const std::byte> all = reader.ReadSpan(bytes);
  if (!reader.ok() || bytes < PERF_ATTR_SIZE_VER0) return std::nullopt;
  std::memcpy(&attr, all.data(), std::min(all.size(), sizeof attr));
  return attr;
}

}  // namespace perfd
