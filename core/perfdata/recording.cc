#include "core/perfdata/recording.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/byte_reader.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

constexpr uint64_t kMagic = 0x32454c4946524550;         // "PERFILE2"
constexpr uint64_t kForeignMagic = 0x50455246494c4532;  // the same of the other byte order
constexpr uint64_t kOldMagic = 0x454c494646524550;      // "PERFFILE", before Linux 3.2
constexpr uint64_t kMostAttrBytes = 4096;
constexpr uint64_t kMostFeatureBytes = 64u << 20;

struct Section {  // struct perf_file_section
  uint64_t offset, size;
};

struct PipeHeader {  // struct perf_pipe_file_header
  uint64_t magic, size;
};

struct FileHeader {  // struct perf_file_header, after what a pipe has as well
  uint64_t attr_size;
  Section attrs, data, event_types;
  uint64_t features[kFeatureBits / 64];
};
static_assert(sizeof(PipeHeader) + sizeof(FileHeader) == 104);

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the recording is damaged: ", what));
}

absl::Status CheckMagic(uint64_t magic) {
  if (magic == kMagic) return absl::OkStatus();
  if (magic == kForeignMagic)
    return absl::InvalidArgumentError(
        "this is a recording of a machine of the other byte order, which is not read");
  if (magic == kOldMagic)
    return absl::InvalidArgumentError(
        "this is a recording of perf before Linux 3.2, which is not read");
  return absl::InvalidArgumentError(
      "this is no recording of perf: it does not begin with PERFILE2");
}

// Exactly so many bytes from there.
absl::StatusOr<std::vector<std::byte>> ReadExactly(RecordingBytes& bytes, uint64_t offset,
                                                   uint64_t size, absl::string_view what) {
  std::vector<std::byte> out;
  // Foreign sizes are believed piece by piece.
  constexpr uint64_t kPiece = 1u << 20;
  while (out.size() < size) {
    const size_t part = std::min(kPiece, size - out.size());
    const size_t before = out.size();
    out.resize(before + part);
    ASSIGN_OR_RETURN(const size_t got,
                     bytes.ReadAt(offset + before, std::span<std::byte>(out).subspan(before)));
    if (got != part) return Damaged(absl::StrCat(what, " is beyond its end"));
  }
  return out;
}

template <typename T>
T ReadAs(std::span<const std::byte> bytes) {
  return ByteReader(bytes).Read<T>();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Recording>> Recording::Open(std::unique_ptr<RecordingBytes> bytes) {
  std::unique_ptr<Recording> recording(new Recording(std::move(bytes)));
  std::array<std::byte, sizeof(PipeHeader)> head{};
  ASSIGN_OR_RETURN(const size_t got, recording->bytes_->Read(head));
  const auto header = ReadAs<PipeHeader>(head);
  if (got == 0) return absl::InvalidArgumentError("the recording is empty");
  RETURN_IF_ERROR(CheckMagic(header.magic));
  if (got < head.size()) return Damaged("it ends amid its header");
  if (header.size == sizeof(PipeHeader)) {
    recording->counts_.piped = true;
    recording->stream_ = std::make_unique<RecordStream>(recording->bytes_.get(), UINT64_MAX);
    return recording;
  }
  if (header.size < sizeof(PipeHeader) + sizeof(FileHeader))
    return Damaged(absl::StrCat("a header of ", header.size, " bytes cannot be one"));
  RETURN_IF_ERROR(recording->ReadFileHeader());
  return recording;
}

absl::Status Recording::ReadFileHeader() {
  ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                   ReadExactly(*bytes_, sizeof(PipeHeader), sizeof(FileHeader), "its header"));
  const auto header = ReadAs<FileHeader>(bytes);
  RETURN_IF_ERROR(ReadAttrs(header.attrs.offset, header.attrs.size, header.attr_size));
  counts_.unfinished = header.data.size == 0;
  const uint64_t data_bytes = counts_.unfinished ? UINT64_MAX : header.data.size;
  if (header.data.offset > UINT64_MAX - data_bytes && !counts_.unfinished)
    return Damaged("its records are beyond its end");
  if (!counts_.unfinished)
    RETURN_IF_ERROR(ReadFeatures(header.features, header.data.offset + header.data.size));
  RETURN_IF_ERROR(MakeSet());
  RETURN_IF_ERROR(bytes_->SeekTo(header.data.offset));
  stream_ = std::make_unique<RecordStream>(bytes_.get(), data_bytes);
  return absl::OkStatus();
}

absl::Status Recording::ReadAttrs(uint64_t offset, uint64_t size, uint64_t attr_bytes) {
  if (attr_bytes < PERF_ATTR_SIZE_VER0 + sizeof(Section) || attr_bytes > kMostAttrBytes)
    return Damaged(absl::StrCat("descriptions of events of ", attr_bytes, " bytes"));
  if (size / attr_bytes > EventTable::kMostEvents) return Damaged("it has too many events");
  ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                   ReadExactly(*bytes_, offset, size / attr_bytes * attr_bytes, "an event"));
  for (size_t at = 0; at < bytes.size(); at += attr_bytes) {
    ByteReader reader(std::span<const std::byte>(bytes).subspan(at, attr_bytes));
    const std::optional<perf_event_attr> attr = ReadAttr(reader);
    const auto ids = reader.Read<Section>();
    if (!attr.has_value() || !reader.ok()) return Damaged("the description of an event is cut off");
    ASSIGN_OR_RETURN(std::vector<uint64_t> of_event, ReadIds(ids.offset, ids.size));
    events_.Add(*attr, std::move(of_event));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> Recording::ReadIds(uint64_t offset, uint64_t size) {
  const uint64_t count = size / sizeof(uint64_t);
  if (count > events_.RoomForIds()) return Damaged("its events have too many identifiers");
  ASSIGN_OR_RETURN(
      const std::vector<std::byte> bytes,
      ReadExactly(*bytes_, offset, count * sizeof(uint64_t), "the identifiers of an event"));
  ByteReader reader(bytes);
  std::vector<uint64_t> ids(count);
  std::generate(ids.begin(), ids.end(), [&] { return reader.Read<uint64_t>(); });
  return ids;
}

// One section for each bit that is set, in their order.
absl::Status Recording::ReadFeatures(std::span<const uint64_t> bits, uint64_t offset) {
  for (uint32_t feature = 0; feature < kFeatureBits; ++feature) {
    if ((bits[feature / 64] >> feature % 64 & 1) == 0) continue;
    if (feature == static_cast<uint32_t>(Feature::kDirectory))
      return absl::UnimplementedError(
          "this is one file of a recording of several (perf record --threads), which is not read");
    const auto where = ReadExactly(*bytes_, offset, sizeof(Section), "a feature");
    offset += sizeof(Section);
    if (!where.ok()) {
      ++counts_.damaged_features;
      continue;
    }
    const auto section = ReadAs<Section>(*where);
    if (section.size > kMostFeatureBytes) {
      ++counts_.damaged_features;
      continue;
    }
    const auto bytes = ReadExactly(*bytes_, section.offset, section.size, "a feature");
    if (!bytes.ok() || !ReadFeature(feature, *bytes, &facts_, &events_.all()))
      ++counts_.damaged_features;
  }
  return absl::OkStatus();
}

absl::Status Recording::MakeSet() {
  std::vector<IdentifiedEvent> events;
  std::transform(events_.all().begin(), events_.all().end(), std::back_inserter(events),
                 [](const RecordedEvent& event) {
                   return IdentifiedEvent{EventLayout::Of(event.attr), event.ids};
                 });
  ASSIGN_OR_RETURN(EventSet set, EventSet::Create(events));
  set_ = std::move(set);
  return absl::OkStatus();
}

absl::Status Recording::OnAttr(std::span<const std::byte> body) {
  ByteReader reader(body);
  const std::optional<perf_event_attr> attr = ReadAttr(reader);
  const size_t count = reader.remaining() / sizeof(uint64_t);
  const bool too_many = events_.full() || count > events_.RoomForIds();
  if (!attr.has_value() || too_many || set_.has_value())
    return absl::DataLossError(
        "the recording is damaged: an event cannot be one, or is described after its samples");
  std::vector<uint64_t> ids(count);
  std::generate(ids.begin(), ids.end(), [&] { return reader.Read<uint64_t>(); });
  events_.Add(*attr, std::move(ids));
  return absl::OkStatus();
}

// struct perf_record_event_update: what of it is new, the event, and, of kind 2, its name.
void Recording::OnEventUpdate(std::span<const std::byte> body) {
  constexpr uint64_t kName = 2;
  ByteReader reader(body);
  const auto kind = reader.Read<uint64_t>();
  const auto id = reader.Read<uint64_t>();
  if (!reader.ok() || kind != kName) return;
  std::string name;
  while (reader.remaining() > 0) {
    const char c = reader.Read<char>();
    if (c == '\0') break;
    name += c;
  }
  RecordedEvent* event = events_.Find(id);
  if (event != nullptr) event->name = name;
}

void Recording::OnFeature(std::span<const std::byte> body) {
  ByteReader reader(body);
  const auto feature = reader.Read<uint64_t>();
  // Each is said once.
  const bool again = feature < kFeatureBits && said_.test(feature);
  if (feature < kFeatureBits) said_.set(feature);
  if (feature >= kFeatureBits || again ||
      !ReadFeature(static_cast<uint32_t>(feature), reader.ReadSpan(reader.remaining()), &facts_,
                   &events_.all()))
    ++counts_.damaged_features;
}

absl::Status Recording::OnUserRecord(uint32_t kind, std::span<const std::byte> record) {
  const std::span<const std::byte> body = record.subspan(sizeof(perf_event_header));
  switch (static_cast<UserRecord>(kind)) {
    case UserRecord::kAttr:
      return OnAttr(body);
    case UserRecord::kEventUpdate:
      OnEventUpdate(body);
      break;
    case UserRecord::kFeature:
      OnFeature(body);
      break;
    case UserRecord::kBuildId:
      if (!ReadFeature(static_cast<uint32_t>(Feature::kBuildId), record, &facts_, &events_.all()))
        ++counts_.damaged_features;
      break;
    case UserRecord::kFinishedRound:
      sorter_.FinishRound();
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

// Reads on until a record may go out.
absl::Status Recording::ReadOne() {
  ASSIGN_OR_RETURN(const std::optional<std::span<const std::byte>> record, stream_->Next());
  counts_.truncated = stream_->truncated();
  counts_.compression = stream_->compression();
  if (!record.has_value()) {
    ended_ = true;
    sorter_.Finish();
    return absl::OkStatus();
  }
  const uint32_t kind = ReadAs<perf_event_header>(*record).type;
  ++counts_.records[std::min<size_t>(kind, RecordingCounts::kKinds - 1)];
  if (kind >= kFirstUserRecord) return OnUserRecord(kind, *record);
  if (!set_.has_value()) RETURN_IF_ERROR(MakeSet());
  sorter_.Add(set_->TimeOf(*record), *record);
  return absl::OkStatus();
}

void Recording::Count(const PerfRecord& record) {
  if (std::holds_alternative<MalformedRecord>(record)) ++counts_.malformed;
  counts_.late = sorter_.late();
  const auto* lost = std::get_if<LostRecord>(&record);
  if (lost == nullptr) return;
  losses_.Add(*lost);
  counts_.lost = losses_.total();
}

absl::StatusOr<std::optional<EventSet::Decoded>> Recording::Next() {
  while (true) {
    std::optional<std::vector<std::byte>> record = sorter_.Pop();
    if (record.has_value()) {
      if (!set_.has_value()) RETURN_IF_ERROR(MakeSet());
      current_ = *std::move(record);
      EventSet::Decoded decoded = set_->Decode(current_);
      Count(decoded.record);
      return decoded;
    }
    if (!failed_.ok()) return failed_;
    if (ended_) return std::nullopt;
    failed_ = ReadOne();
    // What was read before it is good.
    if (!failed_.ok()) sorter_.Finish();
  }
}

}  // namespace perfd
