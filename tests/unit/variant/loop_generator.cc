#include "tests/unit/variant/loop_generator.h"

#include <algorithm>
#include <map>

namespace perfd::agent {
namespace {

constexpr int kPointer = 6;  // RSI: the array
constexpr int kIndex = kLoopIndex;
constexpr int kCounter = kLoopCounter;
constexpr int kFree[] = {0, 2, 3, 5, 7, 9, 10, 11, 12, 13, 14, 15};

// A label and the branches to it; two sizes.
struct Branch {
  size_t at = 0;  // of the displacement
  int size = 4;
  int label = 0;
};

class Writer {
 public:
  Writer(const Arena& arena, std::mt19937* random, Floats floats, Nest nest)
      : arena_(arena), random_(*random), floats_(floats), nest_(nest), at_(arena.text()) {}

  int Pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  uint64_t here() const { return at_ + bytes_.size(); }
  std::vector<uint8_t>& bytes() { return bytes_; }

  void Raw(std::initializer_list<int> bytes) {
    for (int b : bytes) bytes_.push_back(static_cast<uint8_t>(b));
  }
  void Word(uint64_t value) {
    for (int i = 0; i < 4; ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  void Bind(int label) { labels_[label] = bytes_.size(); }
  void Jump(int label, bool near) {
    Raw({near ? 0xe9 : 0xeb});
    Displacement(label, near);
  }
  void JumpIf(int condition, int label, bool near) {
    if (near) Raw({0x0f, 0x80 | condition});
    if (!near) Raw({0x70 | condition});
    Displacement(label, near);
  }
  // False when a short branch does not reach.
  bool Resolve() {
    for (const Branch& b : branches_) {
      const int64_t distance =
          static_cast<int64_t>(labels_.at(b.label)) - static_cast<int64_t>(b.at) - b.size;
      if (b.size == 1 && (distance < -128 || distance > 127)) return false;
      for (int i = 0; i < b.size; ++i)
        bytes_[b.at + static_cast<size_t>(i)] = static_cast<uint8_t>(distance >> (8 * i));
    }
    return true;
  }

  // An exit: notes `id`, leaves.
  void Exit(int id) {
    Raw({0xc7, 0x05});
    Word(arena_.exit_id() - (here() + 8));
    Word(static_cast<uint64_t>(id));
    RestoreStack();
  }
  void RestoreStack() {
    Raw({0xff, 0x25});
    Word(arena_.back() - (here() + 4));
  }

  int FreeRegister() {
    int r = kFree[Pick(12)];
    while (IsTaken(r)) r = kFree[Pick(12)];
    return r;
  }
  bool nests() const { return nest_ == Nest::kLoops; }
  int NewLabel() { return next_label_++; }
  // Floating-point instructions are long: few short branches would reach.
  bool Near(int one_in) { return floats_ == Floats::kNone ? Pick(one_in) == 0 : Pick(3) != 0; }
  // ModRM and the rest for `reg` with a random memory operand; rex/vex bits are for low registers only.
  void Memory(int reg) {
    if (Pick(4) == 0) {
      Raw({(reg & 7) << 3 | 5});
      Word(arena_.data() + static_cast<uint64_t>(Pick(64)) * 32 - (here() + 4) - tail_);
    } else {
      Raw({0x44 | (reg & 7) << 3, Pick(4) << 6 | kIndex << 3 | kPointer, Pick(4) * 32});
    }
  }
  void Integer();
  void Vector();
  void Any() {
    if (floats_ != Floats::kNone && Pick(3) != 0)
      return AppendFloat(floats_, arena_, at_, &random_, &bytes_);
    if (Pick(2) == 0) return Integer();
    Vector();
  }
  // Sometimes a comparison of two values, and a branch to `label` upon it.
  void MaybeCompare(int label) {
    if (floats_ == Floats::kNone || Pick(8) != 0) return;
    AppendFloatComparison(floats_, arena_, at_, &random_, &bytes_);
    JumpIf(Pick(2) == 0 ? 7 : 2, label, true);  // ja, jb
  }

 private:
  bool IsTaken(int r) const {
    const bool counts = r == kInnerCounters[0] || r == kInnerCounters[1];
    return (floats_ != Floats::kNone && r == kFloatPointer) || (nests() && counts);
  }
  void Displacement(int label, bool near) {
    branches_.push_back({bytes_.size(), near ? 4 : 1, label});
    bytes_.resize(bytes_.size() + (near ? 4 : 1));
  }

  const Arena& arena_;
  std::mt19937& random_;
  const Floats floats_;
  const Nest nest_;
  uint64_t at_;
  std::vector<uint8_t> bytes_;
  std::map<int, size_t> labels_;
  std::vector<Branch> branches_;
  uint64_t tail_ = 0;  // immediate bytes behind a displacement
  int next_label_ = 1000;
};

void Writer::Integer() {
  const int a = FreeRegister();
  const int b = FreeRegister();
  const int rex = 0x48 | (b >> 3) << 2 | a >> 3;
  const int modrm = 0xc0 | (b & 7) << 3 | (a & 7);
  constexpr int kBinary[] = {0x01, 0x29, 0x31, 0x21, 0x09, 0x11, 0x19, 0x39, 0x85, 0x89};
  switch (Pick(9)) {
    case 0:
    case 1:
      return Raw({rex, kBinary[Pick(10)], modrm});  // add sub xor and or adc sbb cmp test mov
    case 2:
      return Raw({0x48 | a >> 3, 0x83, 0xc0 | Pick(8) << 3 | (a & 7), Pick(256)});  // op $imm8
    case 3:
      return Raw({0x48 | (a >> 3) << 2 | b >> 3, 0x0f, 0x40 | Pick(16),
                  0xc0 | (a & 7) << 3 | (b & 7)});  // cmov
    case 4:
      return Raw({0x48 | (a >> 3) << 2 | b >> 3, 0x0f, 0xaf, 0xc0 | (a & 7) << 3 | (b & 7)});
    case 5:
      Raw({0x48 | (a >> 3) << 2, 0x8b});  // load
      return Memory(a);
    case 6:
      Raw({0x48 | (a >> 3) << 2, 0x01});  // add to memory
      return Memory(a);
    case 7:
      Raw({0x48, 0x81});  // op $imm32, memory
      tail_ = 4;
      Memory(Pick(7));
      tail_ = 0;
      return Word(random_());
    default:
      Raw({0x48 | (a >> 3) << 2, 0x8d});  // lea
      return Memory(a);
  }
}

void Writer::Vector() {
  const int a = Pick(8);
  const int b = Pick(8);
  const int c = Pick(8);
  constexpr int kOps[] = {0x54, 0x55, 0x56, 0x57, 0xfe, 0xfa};
  switch (Pick(7)) {
    case 0:
      return Raw({0x66, 0x0f, 0xfe, 0xc0 | a << 3 | b});  // paddd
    case 1:
      return Raw({0x0f, 0x57, 0xc0 | a << 3 | b});  // xorps
    case 2:
      Raw({0x0f, 0x10});  // movups load
      return Memory(a);
    case 3:
      Raw({0x0f, 0x11});  // movups store
      return Memory(a);
    case 4:
      return Raw({0xc5, 0x85 | ((~b & 15) << 3 & 0x78), kOps[Pick(6)], 0xc0 | a << 3 | c});
    case 5:
      Raw({0xc5, 0x85 | ((~b & 15) << 3 & 0x78), kOps[Pick(6)]});
      return Memory(a);
    default:
      Raw({0xc5, 0xfc, 0x11});  // vmovups store
      return Memory(a);
  }
}

constexpr int kHeader = 0, kBottom = 1, kSecond = 2, kExit = 10, kBlock = 20;

// test $imm32, of a register that is free.
void Test(Writer* w, uint64_t mask) {
  const int r = w->FreeRegister();
  w->Raw({0x49 - (r < 8), 0xf7, 0xc0 | (r & 7)});
  w->Word(mask);
}

// Sets the counter of a loop inside to a number from 0 to 3.
void StartInner(Writer* w, int counter) {
  const int low = counter & 7;
  switch (w->Pick(4)) {
    case 0:  // the loop's own index
      w->Raw({0x49, 0x89, 0xc0 | kIndex << 3 | low});
      break;
    case 1: {  // whatever was computed
      const int r = w->FreeRegister();
      w->Raw({0x49 | (r >> 3) << 2, 0x89, 0xc0 | (r & 7) << 3 | low});
      break;
    }
    default:
      w->Raw({0x41, 0xb8 | low});
      return w->Word(static_cast<uint64_t>(w->Pick(4)));
  }
  w->Raw({0x49, 0x83, 0xe0 | low, 3});  // and $3
}

void Inner(Writer* w, int depth, int exits) {
  const int counter = kInnerCounters[depth];
  const int header = w->NewLabel(), bottom = w->NewLabel(), after = w->NewLabel();
  const bool tests_first = w->Pick(2) == 0;
  StartInner(w, counter);
  w->Bind(header);
  if (tests_first) {
    w->Raw({0x4d, 0x85, 0xc0 | (counter & 7) << 3 | (counter & 7)});  // test
    w->JumpIf(4, after, w->Near(2));
  }
  for (int n = w->Pick(4); n >= 0; --n) w->Any();
  if (w->Pick(3) == 0) w->JumpIf(w->Pick(16), bottom, true);  // the next pass
  if (depth == 0 && w->Pick(3) == 0) Inner(w, 1, exits);
  for (int n = w->Pick(3); n > 0; --n) w->Any();
  if (w->Pick(4) == 0) {
    Test(w, 0x3000);
    w->JumpIf(4, w->Pick(3) == 0 ? kExit + w->Pick(exits) : after, true);
  }
  w->Bind(bottom);
  w->Raw({0x49, 0x83, 0xe8 | (counter & 7), 1});  // sub $1
  if (tests_first)
    w->Jump(header, w->Near(2));
  else
    w->JumpIf(9, header, w->Near(2));  // jns
  w->Bind(after);
}

void Blocks(Writer* w, int first, int last, int exits) {
  for (int block = first; block < last; ++block) {
    w->Bind(kBlock + block);
    for (int n = w->Pick(6); n >= 0; --n) w->Any();
    if (w->nests() && w->Pick(2) == 0) Inner(w, 0, exits);
    const int later = block + 1 + w->Pick(last - block);
    if (later < last && w->Pick(2) == 0) w->JumpIf(w->Pick(16), kBlock + later, w->Near(3));
    w->MaybeCompare(later < last ? kBlock + later : kExit);
    if (w->Pick(3) == 0) {
      Test(w, 0xf000);
      w->JumpIf(4, kExit + w->Pick(exits), w->Near(3));
    }
  }
}

void Bottom(Writer* w) {
  w->Bind(kBottom);
  w->Raw({0x48, 0x8d, 0x49, 0x01});  // lea 1(%rcx), %rcx
  w->Raw({0x49, 0xff, 0xc8});        // dec %r8
  w->JumpIf(5, kHeader, w->Near(2));
}

bool Write(Writer* w, GeneratedLoop* loop) {
  const int blocks = 2 + w->Pick(4);
  const int excluded = 1 + w->Pick(blocks - 1);
  const int exits = 1 + w->Pick(3);
  const bool turned = w->Pick(3) == 0;
  const bool gap = w->Pick(2) == 0;
  w->bytes().insert(w->bytes().end(), static_cast<size_t>(w->Pick(64)), 0x90);
  w->Jump(kHeader, true);
  const uint64_t low = w->here();
  uint64_t middle = low;
  uint64_t resume = low;
  if (turned) {
    w->Bind(kSecond);
    Blocks(w, excluded, blocks, exits);
    Bottom(w);
    if (!gap) w->Jump(kExit, w->Near(2));
    middle = w->here();
    if (gap) w->Exit(7);
    resume = w->here();
    w->Bind(kHeader);
    Blocks(w, 0, excluded, exits);
    w->Jump(kSecond, w->Near(2));
  } else {
    w->Bind(kHeader);
    Blocks(w, 0, blocks, exits);
    Bottom(w);
  }
  loop->bytes.body = {{low, middle}, {resume, w->here()}};
  if (!turned) loop->bytes.body = {{low, w->here()}};
  for (int e = 0; e < 3; ++e) {
    w->Bind(kExit + e);
    w->Exit(e + 1);
  }
  loop->stub = w->here();
  w->RestoreStack();
  return w->Resolve();
}

// Every other function whose loop has two pieces is in two parts, as if a compiler had moved the second one away.
std::vector<CodeText> PartsOf(const LoopBytes& loop, uint64_t text,
                              const std::vector<uint8_t>& bytes) {
  if (loop.body.size() < 2 || bytes.size() % 2 == 0) return {{text, bytes}};
  const auto second = bytes.begin() + static_cast<std::ptrdiff_t>(loop.body[1].low - text);
  return {{text, {bytes.begin(), second}}, {loop.body[1].low, {second, bytes.end()}}};
}

}  // namespace

GeneratedLoop GenerateLoop(const Arena& arena, std::mt19937* random, Floats floats, Nest nest) {
  while (true) {
    Writer w(arena, random, floats, nest);
    GeneratedLoop loop;
    if (!Write(&w, &loop)) continue;
    loop.bytes.function = PartsOf(loop.bytes, arena.text(), w.bytes());
    arena.Write(arena.text(), w.bytes());
    // The entry is the first jump after the leading NOPs.
    const size_t jump = static_cast<size_t>(std::find(w.bytes().begin(), w.bytes().end(), 0xe9) -
                                            w.bytes().begin());
    uint64_t distance = 0;
    for (size_t i = 0; i < 4; ++i) distance |= uint64_t{w.bytes()[jump + 1 + i]} << (8 * i);
    loop.bytes.header = arena.text() + jump + 5 + distance;
    // Nests do the work of forty passes in fewer: floating-point values must stay far from the ends of their range.
    loop.trips = 1 + static_cast<int>((*random)() % (nest == Nest::kNone ? 40 : 8));
    return loop;
  }
}

MachineState GenerateState(const Arena& arena, const GeneratedLoop& loop, std::mt19937* random,
                           Floats floats) {
  MachineState state;
  for (uint64_t& r : state.general) r = (*random)() | uint64_t{(*random)()} << 32;
  state.general[4] = 0;
  state.general[kPointer] = arena.data() + 4096;
  state.general[kIndex] = 0;
  state.general[kCounter] = static_cast<uint64_t>(loop.trips);
  state.flags = 0x202 | ((*random)() & 0x8d5);
  for (auto& v : state.vector)
    for (uint8_t& b : v) b = static_cast<uint8_t>((*random)());
  for (uint8_t& b : arena.Bytes(arena.data(), Arena::kDataBytes))
    b = static_cast<uint8_t>((*random)());
  if (floats != Floats::kNone) FillFloats(floats, arena, random, &state);
  return state;
}

}  // namespace perfd::agent
