// agent/variant/gs_code.h - hand-made instructions on the thread block: 64-bit moves between registers and gs:[offset].
//
// Source   Intel SDM vol. 2: MOV 8B/89, CMP 3B, ADD 03, MOVSXD 63, segment prefix 65, ModRM and SIB tables 2-2 and 2-3 (absolute disp32).
#ifndef AGENT_VARIANT_GS_CODE_H_
#define AGENT_VARIANT_GS_CODE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace perfd::agent {

// Collects machine code.
class GsCode {
 public:
  GsCode& Raw(std::initializer_list<uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes);
    return *this;
  }
  GsCode& Load(int reg, uint32_t offset) {
    return Operate(0x8b, reg, offset);
  }  // mov gs:offset, reg
  GsCode& Store(int reg, uint32_t offset) {
    return Operate(0x89, reg, offset);
  }  // mov reg, gs:offset
  GsCode& Compare(int reg, uint32_t offset) {
    return Operate(0x3b, reg, offset);
  }  // reg - gs:offset

  std::vector<uint8_t> Release() { return std::move(bytes_); }
  size_t size() const { return bytes_.size(); }

  GsCode& Add(int reg, uint32_t offset) {
    return Operate(0x03, reg, offset);
  }  // add gs:offset, reg
  // movslq gs:offset, reg
  GsCode& LoadSigned32(int reg, uint32_t offset) { return Operate(0x63, reg, offset); }
  GsCode& Word(uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
    return *this;
  }
  GsCode& Append(const std::vector<uint8_t>& bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

 private:
  GsCode& Operate(uint8_t opcode, int reg, uint32_t offset) {
    Raw({0x65, static_cast<uint8_t>(reg < 8 ? 0x48 : 0x4c), opcode,
         static_cast<uint8_t>(0x04 | (reg & 7) << 3), 0x25});
    return Word(offset);
  }

  std::vector<uint8_t> bytes_;
};

inline constexpr int kRax = 0;
inline constexpr int kRcx = 1;

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_GS_CODE_H_
