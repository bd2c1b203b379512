// core/base/byte_reader.h - reads little-endian values from foreign bytes without ever leaving them.
//
// Shape    ByteReader r(bytes); r.Read<uint32_t>(); r.Skip(n); if (!r.ok()) the input was too short.
// Errors   sticky: after the first short read every value is zero and ok() is false.
#ifndef CORE_BASE_BYTE_READER_H_
#define CORE_BASE_BYTE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace perfd {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T Read() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!Has(sizeof(T))) return value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  std::span<const std::byte> ReadSpan(size_t count) {
    if (!Has(count)) return {};
    auto span = bytes_.subspan(offset_, count);
    offset_ += count;
    return span;
  }

  void Skip(size_t count) {
    if (Has(count)) offset_ += count;
  }

  size_t offset() const { return offset_; }
  size_t remaining() const { return bytes_.size() - offset_; }
  bool ok() const { return ok_; }

 private:
  bool Has(size_t count) {
    if (ok_ && count <= bytes_.size() - offset_) return true;
    ok_ = false;
    return false;
  }

  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
  bool ok_ = true;
};

}  // namespace perfd

#endif  // CORE_BASE_BYTE_READER_H_
