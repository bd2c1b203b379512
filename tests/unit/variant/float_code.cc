#include "tests/unit/variant/float_code.h"

#include <cmath>
#include <cstring>
#include <span>

namespace perfd::agent {
namespace {

// Offsets into Arena::data(), away from what integer instructions address.
constexpr uint32_t kFloatData = 8192;
constexpr uint32_t kRegionBytes = 512;
constexpr uint32_t kConstants = 0, kVariables = 1024;  // doubles; singles follow

// One family of instructions: doubles or singles, one or several.
struct Lane {
  bool is_double = false;
  bool packed = false;
  int length = 0;  // of packed ones: 16, 32 or 64 bytes as 0, 1, 2

  // None, 66, F3, F2: singles, doubles, one single, one double.
  int Prefix() const { return packed ? (is_double ? 1 : 0) : (is_double ? 3 : 2); }
  uint32_t Region(uint32_t first) const { return first + (is_double ? 0 : kRegionBytes); }
};

struct Place {
  bool memory = false;
  int reg = 0;
  bool indexed = false;  // by RCX, times the size of a value
  uint32_t offset = 0;   // from kFloatData
};

// What EVEX adds.
struct Extra {
  int mask = 0;
  bool zero = false;
  bool broadcast_or_round = false;
  int rounding = -1;  // takes the place of the length
};

struct Opcode {
  int map = 1;  // 0F, 2: 0F 38
  int code = 0;
  int prefix = 0;  // none, 66, F3, F2
  bool wide = false;
};

constexpr int kAdd = 0x58, kMultiply = 0x59, kDivide = 0x5e, kMaximum = 0x5f, kMinimum = 0x5d,
              kRoot = 0x51, kLoad = 0x10, kStore = 0x11, kCompare = 0x2e;

class FloatWriter {
 public:
  FloatWriter(Floats floats, const Arena& arena, uint64_t start, std::mt19937* random,
              std::vector<uint8_t>* bytes)
      : floats_(floats), arena_(arena), start_(start), random_(*random), bytes_(*bytes) {}

  void Any() {
    const Lane lane = AnyLane();
    switch (Pick(10)) {
      case 0:
        return Move(lane, kLoad, Variable(lane), Memory(lane, Pick(2) == 0, false));
      case 1:
        return Move(lane, kStore, Variable(lane), Memory(lane, true, false));
      case 2:
      case 3:
        return Operate(lane, Pick(2) == 0 ? kAdd : kMultiply);
      case 4:
        return Operate(lane, Pick(2) == 0 ? kMaximum : kMinimum);
      case 5:
        return Operate(lane, kDivide);
      case 6:
        return Root(lane);
      default:
        return floats_ == Floats::kSse ? Operate(lane, Pick(2) == 0 ? kAdd : kDivide) : Fused(lane);
    }
  }

  void Compare() {
    Lane lane = AnyLane();
    lane.packed = false;
    lane.length = 0;
    const Opcode opcode = {1, kCompare, lane.is_double ? 1 : 0,
                           lane.is_double && floats_ == Floats::kEvex};
    const Place target = Pick(2) == 0 ? Memory(lane, false, false) : Register(Constant(lane));
    Emit(opcode, lane, Variable(lane), 0, target, {});
  }

 private:
  int Pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  Lane AnyLane() {
    Lane lane{Pick(2) == 0, Pick(2) == 0, 0};
    if (lane.packed && floats_ != Floats::kSse) lane.length = Pick(floats_ == Floats::kVex ? 2 : 3);
    return lane;
  }
  int First(const Lane& lane) const {
    const int first = floats_ == Floats::kEvex ? 16 : 8;
    return first + (lane.is_double ? 0 : 3);
  }
  int Variable(const Lane& lane) { return First(lane) + Pick(3); }
  int Constant(const Lane& lane) const {
    return (floats_ == Floats::kEvex ? 22 : 14) + (lane.is_double ? 0 : 1);
  }
  static Place Register(int reg) { return {false, reg, false, 0}; }

  // aligned: the operand of a packed SSE operation.
  Place Memory(const Lane& lane, bool variable, bool aligned) {
    Place target{true, 0, !aligned && Pick(3) != 0,
                 lane.Region(variable ? kVariables : kConstants)};
    target.offset += static_cast<uint32_t>(Pick(target.indexed ? 4 : 14)) * 32;
    return target;
  }
  Place ConstantOperand(const Lane& lane) {
    if (Pick(2) == 0) return Register(Constant(lane));
    return Memory(lane, false, floats_ == Floats::kSse && lane.packed);
  }

  Extra AnyExtra(const Lane& lane, const Place& target, bool rounds) {
    Extra extra;
    if (floats_ != Floats::kEvex) return extra;
    extra.mask = Pick(2) == 0 ? 1 + Pick(3) : 0;
    extra.zero = extra.mask != 0 && Pick(2) == 0;
    const bool broadcast = target.memory && lane.packed && Pick(3) == 0;
    const bool rounding = !target.memory && rounds && Pick(3) == 0;
    extra.broadcast_or_round = broadcast || rounding;
    if (rounding) extra.rounding = Pick(4);
    return extra;
  }

  bool Wide(const Lane& lane) const { return lane.is_double && floats_ == Floats::kEvex; }

  // movups, movupd, movss, movsd between a register and memory.
  void Move(const Lane& lane, int code, int reg, const Place& target) {
    Extra extra = AnyExtra(lane, target, false);
    extra.broadcast_or_round = false;
    if (code == kStore) extra.zero = false;
    Emit({1, code, lane.Prefix(), Wide(lane)}, lane, reg, 0, target, extra);
  }

  void Operate(const Lane& lane, int code) {
    const Place target = ConstantOperand(lane);
    const bool rounds = code != kMaximum && code != kMinimum;
    Emit({1, code, lane.Prefix(), Wide(lane)}, lane, Variable(lane), Variable(lane), target,
         AnyExtra(lane, target, rounds));
  }

  void Root(const Lane& lane) {
    const bool aligned = floats_ == Floats::kSse && lane.packed;
    const Place target =
        Pick(3) == 0 ? Memory(lane, Pick(2) == 0, aligned) : Register(Variable(lane));
    // Packed forms have no second source.
    const int other = lane.packed ? 0 : Variable(lane);
    Emit({1, kRoot, lane.Prefix(), Wide(lane)}, lane, Variable(lane), other, target,
         AnyExtra(lane, target, true));
  }

  // vfmadd132, 213, 231: of the destination, a constant, and a constant in a register or memory.
  void Fused(const Lane& lane) {
    constexpr int kForms[] = {0x98, 0xa8, 0xb8};
    const Place target = ConstantOperand(lane);
    Emit({2, kForms[Pick(3)] + (lane.packed ? 0 : 1), 1, lane.is_double}, lane, Variable(lane),
         Constant(lane), target, AnyExtra(lane, target, true));
  }

  void Byte(int value) { bytes_.push_back(static_cast<uint8_t>(value)); }
  void Word(uint64_t value) {
    for (int i = 0; i < 4; ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }

  void Emit(const Opcode& opcode, const Lane& lane, int reg, int other, const Place& target,
            const Extra& extra) {
    if (floats_ == Floats::kSse) Legacy(opcode, reg, target);
    if (floats_ == Floats::kVex) Vex(opcode, lane, reg, other, target);
    if (floats_ == Floats::kEvex) Evex(opcode, lane, reg, other, target, extra);
    Byte(opcode.code);
    Operand(lane, reg, target);
  }

  void Legacy(const Opcode& opcode, int reg, const Place& target) {
    constexpr int kPrefixes[] = {0, 0x66, 0xf3, 0xf2};
    if (opcode.prefix != 0) Byte(kPrefixes[opcode.prefix]);
    const int rex = 0x40 | (reg >> 3) << 2 | (target.memory ? 0 : target.reg >> 3);
    if (rex != 0x40) Byte(rex);
    Byte(0x0f);
  }

  // Bits of registers are stored inverted; zero as `other` gives the pattern of an unused field.
  void Vex(const Opcode& opcode, const Lane& lane, int reg, int other, const Place& target) {
    const int r = (~reg >> 3 & 1) << 7;
    const int b = target.memory ? 1 : ~target.reg >> 3 & 1;
    const int rest = (~other & 15) << 3 | lane.length << 2 | opcode.prefix;
    if (opcode.map == 1 && b == 1 && Pick(2) == 0) {
      Byte(0xc5);
      return Byte(r | rest);
    }
    Byte(0xc4);
    Byte(r | 0x40 | b << 5 | opcode.map);
    Byte((opcode.wide ? 0x80 : 0) | rest);
  }

  void Evex(const Opcode& opcode, const Lane& lane, int reg, int other, const Place& target,
            const Extra& extra) {
    const int x = target.memory ? 1 : ~target.reg >> 4 & 1;
    const int b = target.memory ? 1 : ~target.reg >> 3 & 1;
    const int length = extra.rounding >= 0 ? extra.rounding : lane.length;
    Byte(0x62);
    Byte((~reg >> 3 & 1) << 7 | x << 6 | b << 5 | (~reg >> 4 & 1) << 4 | opcode.map);
    Byte((opcode.wide ? 0x80 : 0) | (~other & 15) << 3 | 4 | opcode.prefix);
    Byte((extra.zero ? 0x80 : 0) | length << 5 | (extra.broadcast_or_round ? 0x10 : 0) |
         (~other >> 4 & 1) << 3 | extra.mask);
  }

  // ModRM and what follows; displacements of four bytes, which EVEX does not scale.
  void Operand(const Lane& lane, int reg, const Place& target) {
    if (!target.memory) return Byte(0xc0 | (reg & 7) << 3 | (target.reg & 7));
    if (target.indexed) {
      Byte(0x84 | (reg & 7) << 3);
      Byte((lane.is_double ? 3 : 2) << 6 | 1 << 3 | kFloatPointer);
      return Word(target.offset);
    }
    Byte(0x05 | (reg & 7) << 3);
    const uint64_t end = start_ + bytes_.size() + 4;
    Word(arena_.data() + kFloatData + target.offset - end);
  }

  const Floats floats_;
  const Arena& arena_;
  const uint64_t start_;
  std::mt19937& random_;
  std::vector<uint8_t>& bytes_;
};

template <typename T>
void Fill(std::span<uint8_t> bytes, std::mt19937* random) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = static_cast<T>(0.97 + static_cast<double>((*random)() % 60001) / 1e6);
    std::memcpy(&bytes[at], &value, sizeof(T));
  }
}

template <typename T>
bool Finite(std::span<const uint8_t> bytes) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, &bytes[at], sizeof(T));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

constexpr int kDoubles[] = {8, 9, 10, 14};  // 16, 17, 18, 22 with EVEX
constexpr int kSingles[] = {11, 12, 13, 15};

std::span<const uint8_t> RegisterBytes(Floats floats, const MachineState& state, int number) {
  if (floats == Floats::kEvex) return state.wide[static_cast<size_t>(number + 8)];
  return state.vector[static_cast<size_t>(number)];
}

std::span<uint8_t> RegisterBytes(Floats floats, MachineState* state, int number) {
  if (floats == Floats::kEvex) return state->wide[static_cast<size_t>(number + 8)];
  return state->vector[static_cast<size_t>(number)];
}

}  // namespace

bool CanRun(Floats floats) {
  if (floats == Floats::kVex) return HasAvx2() && __builtin_cpu_supports("fma") != 0;
  return floats != Floats::kEvex || HasAvx512();
}

void AppendFloat(Floats floats, const Arena& arena, uint64_t start, std::mt19937* random,
                 std::vector<uint8_t>* bytes) {
  FloatWriter(floats, arena, start, random, bytes).Any();
}

void AppendFloatComparison(Floats floats, const Arena& arena, uint64_t start, std::mt19937* random,
                           std::vector<uint8_t>* bytes) {
  FloatWriter(floats, arena, start, random, bytes).Compare();
}

void FillFloats(Floats floats, const Arena& arena, std::mt19937* random, MachineState* state) {
  state->general[kFloatPointer] = arena.data() + kFloatData;
  if (floats == Floats::kEvex) {
    state->whole = true;
    for (auto& v : state->wide)
      for (uint8_t& b : v) b = static_cast<uint8_t>((*random)());
    for (uint64_t& m : state->mask) m = (*random)() | uint64_t{(*random)()} << 32;
  }
  for (int number : kDoubles) Fill<double>(RegisterBytes(floats, state, number), random);
  for (int number : kSingles) Fill<float>(RegisterBytes(floats, state, number), random);
  for (uint32_t first : {kConstants, kVariables}) {
    const uint64_t at = arena.data() + kFloatData + first;
    Fill<double>(arena.Bytes(at, kRegionBytes), random);
    Fill<float>(arena.Bytes(at + kRegionBytes, kRegionBytes), random);
  }
}

bool AllFinite(Floats floats, const MachineState& state, const std::vector<uint8_t>& memory) {
  bool finite = true;
  for (int number : kDoubles) finite &= Finite<double>(RegisterBytes(floats, state, number));
  for (int number : kSingles) finite &= Finite<float>(RegisterBytes(floats, state, number));
  for (uint32_t first : {kConstants, kVariables}) {
    const std::span<const uint8_t> region = std::span(memory).subspan(kFloatData + first);
    finite &= Finite<double>(region.first(kRegionBytes));
    finite &= Finite<float>(region.subspan(kRegionBytes, kRegionBytes));
  }
  return finite;
}

}  // namespace perfd::agent
