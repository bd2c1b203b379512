// tests/unit/variant/native_run.h - runs machine code in this process: given registers in, registers and memory out.
//
// Shape    an Arena is memory near each other: text (writable and executable), data, and a thread block that GS points to.
//          Code leaves by jumping through Arena::back(); exits note which one was taken in exit_id().
#ifndef TESTS_UNIT_VARIANT_NATIVE_RUN_H_
#define TESTS_UNIT_VARIANT_NATIVE_RUN_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace perfd::agent {

struct MachineState {
  std::array<uint64_t, 16> general{};  // RSP is ignored
  uint64_t flags = 0;
  alignas(32) std::array<std::array<uint8_t, 32>, 16> vector{};
  // Instead of `vector`, where the CPU has AVX-512.
  std::array<std::array<uint8_t, 64>, 32> wide{};
  std::array<uint64_t, 8> mask{};
  bool whole = false;

  bool operator==(const MachineState&) const = default;
};

bool HasAvx2();
bool HasAvx512();  // F, DQ, VL and BW

class Arena {
 public:
  static constexpr uint64_t kTextBytes = 1 << 16;
  static constexpr uint64_t kDataBytes = 1 << 14;
  static constexpr uint64_t kBlockBytes = 0x10000;

  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  uint64_t text() const { return base_; }
  uint64_t copy() const { return base_ + kTextBytes; }
  uint64_t data() const { return base_ + 2 * kTextBytes; }
  uint64_t exit_id() const { return data() + kDataBytes; }   // u32
  uint64_t back() const { return data() + kDataBytes + 8; }  // u64: where to jump through
  uint64_t block() const { return data() + kDataBytes + 0x1000; }

  std::span<uint8_t> Bytes(uint64_t address, uint64_t count) const;
  void Write(uint64_t address, const std::vector<uint8_t>& bytes) const;
  template <typename T>
  T& At(uint64_t address) const {
    return *reinterpret_cast<T*>(address);
  }

  // Runs from `target` until the code leaves.
  void Run(uint64_t target, MachineState* state) const;

 private:
  uint64_t base_ = 0;
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_VARIANT_NATIVE_RUN_H_
