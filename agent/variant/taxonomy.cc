#include "agent/variant/taxonomy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "agent/variant/instruction.h"

namespace perfd::agent {
namespace {

using absl::EndsWith;
using absl::StartsWith;

template <size_t N>
bool Among(absl::string_view word, const std::array<absl::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

template <size_t N>
bool StartsWithAny(absl::string_view word, const std::array<absl::string_view, N>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [word](absl::string_view p) { return StartsWith(word, p); });
}

constexpr std::array<absl::string_view, 6> kFloatSuffixes = {"ps", "pd", "ss", "sd", "ph", "sh"};

constexpr std::array<absl::string_view, 34> kFloatRoots = {
    "add",      "sub",    "mul",     "div",   "sqrt",    "min",    "max",      "rcp",  "rsqrt",
    "rcp14",    "rcp28",  "rsqrt14", "hadd",  "rsqrt28", "hsub",   "addsub",   "dp",   "round",
    "rndscale", "scalef", "getexp",  "range", "getmant", "reduce", "fixupimm", "exp2", "cmp",
    "comi",     "ucomi",  "and",     "andn",  "or",      "xor",    "fpclass"};

constexpr std::array<absl::string_view, 6> kFused = {"fmadd",  "fmsub",    "fnmadd",
                                                     "fnmsub", "fmaddsub", "fmsubadd"};

constexpr std::array<absl::string_view, 4> kBitwise = {"and", "andn", "or", "xor"};

constexpr std::array<absl::string_view, 5> kAccumulating = {"add", "sub", "mul", "min", "max"};

constexpr std::array<absl::string_view, 10> kIntegerAccumulating = {
    "padd", "psub", "pmul", "pmin", "pmax", "pand", "por", "pxor", "pmadd", "pdp"};

// Names that begin with p and only move data.
constexpr std::array<absl::string_view, 15> kShuffles = {
    "pshuf", "punpck",  "pack",     "pinsr",     "pextr",   "pmov",     "palignr",   "pblend",
    "perm",  "pgather", "pscatter", "pcompress", "pexpand", "prefetch", "pbroadcast"};

// A copy of the source, narrower, wider or repeated, and nothing else.
constexpr std::array<absl::string_view, 7> kMoveNames = {
    "mov", "lddqu", "broadcast", "pbroadcast", "pmovsx", "pmovzx", "maskmov"};

uint32_t FloatTraits(absl::string_view name) {
  if (StartsWith(name, "cvt")) return kArithmetic | kFloating;
  if (StartsWithAny(name, kFused)) return kArithmetic | kFloating | kAccumulates;
  absl::string_view root = name;
  for (absl::string_view suffix : kFloatSuffixes)
    if (EndsWith(name, suffix)) root = name.substr(0, name.size() - suffix.size());
  if (root.size() == name.size()) {
    return name == "comiss" || name == "ucomiss" ? kArithmetic | kFloating : 0u;
  }
  if (!Among(root, kFloatRoots)) return 0;
  // Bitwise operations run where arithmetic does, but what they make may be anything.
  const bool bitwise = Among(root, kBitwise);
  uint32_t traits = kArithmetic | (bitwise ? 0u : uint32_t{kFloating});
  if (root == "div") traits |= kDivides;
  if (root == "sqrt") traits |= kSquareRoots;
  if (Among(root, kAccumulating)) traits |= kAccumulates;
  return traits;
}

uint32_t IntegerTraits(absl::string_view name) {
  if (!StartsWith(name, "p") || StartsWithAny(name, kShuffles)) return 0;
  uint32_t traits = kArithmetic;
  if (StartsWithAny(name, kIntegerAccumulating)) traits |= kAccumulates;
  return traits;
}

}  // namespace

uint32_t VectorTraits(absl::string_view mnemonic) {
  uint32_t traits = kVectorOp;
  if (StartsWithAny(mnemonic, kMoveNames)) traits |= kMoves;
  if (StartsWith(mnemonic, "movnt")) traits |= kNonTemporal;
  if (StartsWith(mnemonic, "maskmov") || StartsWith(mnemonic, "pmaskmov")) {
    traits |= kMaskedMemory | kMoves;
  }
  if (StartsWith(mnemonic, "gather") || StartsWith(mnemonic, "pgather")) traits |= kGathers;
  if (StartsWith(mnemonic, "scatter") || StartsWith(mnemonic, "pscatter")) traits |= kScatters;
  for (absl::string_view name : {"compress", "expand", "pcompress", "pexpand"})
    if (StartsWith(mnemonic, name)) traits |= kMaskedMemory;
  if ((traits & (kMoves | kGathers | kScatters)) == 0) {
    traits |= FloatTraits(mnemonic);
    if ((traits & kArithmetic) == 0) traits |= IntegerTraits(mnemonic);
  }
  return traits;
}

bool MergesDestination(absl::string_view mnemonic, bool loads) {
  for (absl::string_view half : {"movlp", "movhp", "movlhps", "movhlps", "pinsr", "insertps"})
    if (StartsWith(mnemonic, half)) return true;
  if (mnemonic == "movss" || mnemonic == "movsd") return !loads;
  if (StartsWith(mnemonic, "cvt")) {
    return EndsWith(mnemonic, "2ss") || EndsWith(mnemonic, "2sd") ||
           StartsWith(mnemonic, "cvtpi2ps");
  }
  const bool scalar = EndsWith(mnemonic, "ss") || EndsWith(mnemonic, "sd");
  return scalar &&
         StartsWithAny(mnemonic, std::array<absl::string_view, 4>{"sqrt", "rcp", "rsqrt", "round"});
}

bool IsZeroIdiom(absl::string_view mnemonic) {
  const absl::string_view name = absl::StripPrefix(mnemonic, "v");
  constexpr std::array<absl::string_view, 5> kExact = {"xor", "sub", "xorps", "xorpd", "pandn"};
  return Among(name, kExact) || StartsWith(name, "pxor") || StartsWith(name, "pcmpeq") ||
         (StartsWith(name, "psub") && !StartsWith(name, "psubs") && !StartsWith(name, "psubus"));
}

absl::string_view MnemonicRefusal(absl::string_view mnemonic) {
  using Row = std::pair<absl::string_view, absl::string_view>;
  constexpr std::array<Row, 26> kRows = {{
      {"loop", "a branch that has only a short form"},
      {"loope", "a branch that has only a short form"},
      {"loopne", "a branch that has only a short form"},
      {"jcxz", "a branch that has only a short form"},
      {"jecxz", "a branch that has only a short form"},
      {"jrcxz", "a branch that has only a short form"},
      {"ldmxcsr", "changes the floating-point mode"},
      {"vldmxcsr", "changes the floating-point mode"},
      {"fldcw", "changes the floating-point mode"},
      {"xbegin", "starts a transaction"},
      {"xend", "ends a transaction"},
      {"xabort", "ends a transaction"},
      {"cpuid", "traps in virtual machines"},
      {"ud0", "traps"},
      {"ud1", "traps"},
      {"ud2", "traps"},
      {"hlt", "traps"},
      {"int3", "traps"},
      {"leave", "moves the stack pointer"},
      {"enter", "moves the stack pointer"},
      {"wrfsbase", "changes a segment"},
      {"wrgsbase", "changes a segment"},
      {"rdgsbase", "uses GS"},
      {"swapgs", "uses GS"},
      {"monitorx", "waits"},
      {"mwaitx", "waits"},
  }};
  for (const Row& row : kRows)
    if (row.first == mnemonic) return row.second;
  return {};
}

}  // namespace perfd::agent
