// tests/unit/perfdata/recording_builder.h - writes recordings byte by byte, in file and in pipe form.
//
// Source   tools/perf/Documentation/perf.data-file-format.txt.
#ifndef TESTS_UNIT_PERFDATA_RECORDING_BUILDER_H_
#define TESTS_UNIT_PERFDATA_RECORDING_BUILDER_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace perfd {

class Bytes {
 public:
  template <typename T>
  Bytes& Add(const T& value) {
    return Raw(&value, sizeof value);
  }
  Bytes& Raw(const void* data, size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), first, first + size);
    return *this;
  }
  Bytes& Append(const std::vector<std::byte>& more) { return Raw(more.data(), more.size()); }
  // perf_header_string: its length with what fills it up.
  Bytes& Text(const std::string& text) {
    const size_t length = (text.size() + 1 + 63) / 64 * 64;
    Add(static_cast<uint32_t>(length));
    Raw(text.data(), text.size());
    bytes.resize(bytes.size() + length - text.size());
    return *this;
  }

  std::vector<std::byte> bytes;
};

class RecordingBuilder {
 public:
  // `bytes` of the description: of another version when not ours.
  RecordingBuilder& Event(const perf_event_attr& attr, std::vector<uint64_t> ids,
                          uint32_t bytes = sizeof(perf_event_attr)) {
    std::vector<std::byte> raw(bytes);
    perf_event_attr sized = attr;
    sized.size = bytes;
    std::memcpy(raw.data(), &sized, std::min<size_t>(bytes, sizeof sized));
    attrs_.push_back({std::move(raw), std::move(ids)});
    return *this;
  }
  RecordingBuilder& Record(const std::vector<std::byte>& record) {
    data_.Append(record);
    return *this;
  }
  RecordingBuilder& Feature(uint32_t number, const Bytes& contents) {
    features_[number] = contents.bytes;
    return *this;
  }
  RecordingBuilder& Round() { return Record(User(68, {})); }

  static std::vector<std::byte> User(uint32_t kind, const std::vector<std::byte>& body) {
    Bytes out;
    out.Add(kind).Add(uint16_t{0}).Add(static_cast<uint16_t>(8 + body.size())).Append(body);
    return out.bytes;
  }

  std::vector<std::byte> File() const {
    const uint64_t attr_bytes = attrs_.empty() ? 144 : attrs_[0].raw.size() + 16;
    Bytes ids;
    constexpr uint64_t kHeader = 104;
    Bytes attrs;
    for (const Attr& attr : attrs_) {
      attrs.Append(attr.raw).Add(kHeader + ids.bytes.size()).Add(uint64_t{8} * attr.ids.size());
      for (const uint64_t id : attr.ids) ids.Add(id);
    }
    const uint64_t attrs_at = kHeader + ids.bytes.size();
    const uint64_t data_at = attrs_at + attrs.bytes.size();
    Bytes out;
    out.Raw("PERFILE2", 8).Add(kHeader).Add(attr_bytes);
    out.Add(attrs_at).Add(uint64_t{attrs.bytes.size()});
    out.Add(data_at).Add(uint64_t{data_.bytes.size()}).Add(uint64_t{0}).Add(uint64_t{0});
    uint64_t bits[4] = {};
    for (const auto& [number, contents] : features_)
      bits[number / 64] |= uint64_t{1} << number % 64;
    out.Add(bits).Append(ids.bytes).Append(attrs.bytes).Append(data_.bytes);
    uint64_t at = out.bytes.size() + 16 * features_.size();
    for (const auto& [number, contents] : features_) {
      out.Add(at).Add(uint64_t{contents.size()});
      at += contents.size();
    }
    for (const auto& [number, contents] : features_) out.Append(contents);
    return out.bytes;
  }

  std::vector<std::byte> Pipe() const {
    Bytes out;
    out.Raw("PERFILE2", 8).Add(uint64_t{16});
    for (const Attr& attr : attrs_) {
      Bytes body;
      body.Append(attr.raw);
      for (const uint64_t id : attr.ids) body.Add(id);
      out.Append(User(64, body.bytes));
    }
    for (const auto& [number, contents] : features_) {
      Bytes body;
      body.Add(uint64_t{number}).Append(contents);
      out.Append(User(80, body.bytes));
    }
    return out.Append(data_.bytes).bytes;
  }

  // A zstd frame of blocks that are not compressed. Source: RFC 8878, 3.1.1.
  static std::vector<std::byte> Frame(const std::vector<std::byte>& contents) {
    Bytes out;
    out.Add(uint32_t{0xfd2fb528}).Add(uint8_t{0}).Add(uint8_t{0x50});  // a window of 1 MiB
    const auto header = static_cast<uint32_t>(contents.size() << 3 | 1);
    out.Raw(&header, 3);
    return out.Append(contents).bytes;
  }

 private:
  struct Attr {
    std::vector<std::byte> raw;
    std::vector<uint64_t> ids;
  };
  std::vector<Attr> attrs_;
  Bytes data_;
  std::map<uint32_t, std::vector<std::byte>> features_;
};

}  // namespace perfd

#endif  // TESTS_UNIT_PERFDATA_RECORDING_BUILDER_H_
