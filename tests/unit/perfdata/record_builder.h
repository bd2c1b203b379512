// tests/unit/perfdata/record_builder.h - writes perf records byte by byte, independently of the decoder.
//
// Source   perf_event_open(2) "MMAP layout".
#ifndef TESTS_UNIT_PERFDATA_RECORD_BUILDER_H_
#define TESTS_UNIT_PERFDATA_RECORD_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace perfd {

class RecordBuilder {
 public:
  RecordBuilder(uint32_t type, uint16_t misc) { U32(type).U16(misc).U16(0); }

  RecordBuilder& U16(uint16_t v) { return Raw(&v, sizeof v); }
  RecordBuilder& U32(uint32_t v) { return Raw(&v, sizeof v); }
  RecordBuilder& U64(uint64_t v) { return Raw(&v, sizeof v); }
  RecordBuilder& Fill(size_t count, uint8_t value) {
    bytes_.insert(bytes_.end(), count, std::byte{value});
    return *this;
  }
  // NUL-terminated and padded to 8 bytes, as the kernel does.
  RecordBuilder& Text(const std::string& text) {
    Raw(text.data(), text.size());
    return Fill(8 - text.size() % 8, 0);
  }
  // The trailer of records that are no samples: TID, TIME, CPU, IDENTIFIER.
  RecordBuilder& SampleId() { return U32(1).U32(2).U64(3).U32(4).U32(0).U64(5); }

  std::vector<std::byte> Build() {
    const auto size = static_cast<uint16_t>(bytes_.size());
    std::memcpy(bytes_.data() + 6, &size, sizeof size);
    return bytes_;
  }

 private:
  RecordBuilder& Raw(const void* data, size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
    return *this;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace perfd

#endif  // TESTS_UNIT_PERFDATA_RECORD_BUILDER_H_
