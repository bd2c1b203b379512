#include "agent/binary/symbol_name.h"

#define HAVE_DECL_BASENAME 1  // of <string.h>, which libiberty.h would declare in another way
#include <libiberty/demangle.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace perfd::agent {
namespace {

// Without DMGL_NO_RECURSE_LIMIT: names nested too deeply are refused. Without DMGL_VERBOSE: std::string stays that.
constexpr int kStyle = DMGL_PARAMS | DMGL_ANSI;
constexpr size_t kMaxSuffixes = 64;

struct BoundedText {
  std::string text;
  bool only_at_ascii = false;
  std::jmp_buf enough;
};

// A name of 400 bytes can stand for gigabytes, and the demangler knows no limit: it is left where there is enough.
void Append(const char* text, size_t size, void* opaque) {
  auto& out = *static_cast<BoundedText*>(opaque);
  out.text.append(text, std::min(size, kMaxReadableName + 1 - out.text.size()));
  if (out.text.size() <= kMaxReadableName) return;
  if (out.only_at_ascii && !std::all_of(text, text + size, absl::ascii_isascii)) return;
  std::longjmp(out.enough, 1);  // nothing with a destructor is alive between here and Demangled
}

using Demangle = int (*)(const char*, int, demangle_callbackref, void*);

// `only_at_ascii`: that of Rust holds memory while it hands over a name that it decoded from Punycode.
std::optional<std::string> Demangled(Demangle demangle, bool only_at_ascii,
                                     const std::string& mangled) {
  BoundedText out;
  out.only_at_ascii = only_at_ascii;
  if (setjmp(out.enough) != 0 || demangle(mangled.c_str(), kStyle, Append, &out) != 0)
    return std::move(out.text);
  return std::nullopt;
}

std::optional<std::string> Demangled(const std::string& mangled) {
  const bool rust = absl::StartsWith(mangled, "_R");
  if (!rust && !absl::StartsWith(mangled, "_Z")) return std::nullopt;
  // Rust's older names are C++ names that end in a hash.
  auto name = Demangled(rust_demangle_callback, true, mangled);
  if (rust || name.has_value()) return name;
  return Demangled(cplus_demangle_v3_callback, false, mangled);
}

// Suffixes such as ".constprop.0" or ".cold" are no part of the mangled name. A dot may be: of a name inside it.
std::string DemangleWithSuffix(absl::string_view symbol) {
  size_t end = 0;
  for (size_t i = 0; i < kMaxSuffixes && end < symbol.size(); ++i) {
    end = std::min(symbol.find('.', end + 1), symbol.size());
    if (const auto name = Demangled(std::string(symbol.substr(0, end))))
      return absl::StrCat(*name, symbol.substr(end));
  }
  return std::string(symbol);
}

// At most kMaxReadableName bytes, and no half letter.
std::string Shortened(std::string name) {
  if (name.size() <= kMaxReadableName) return name;
  size_t end = kMaxReadableName - 3;
  const auto continues = [&](size_t i) {
    return (static_cast<unsigned char>(name[i]) & 0xC0) == 0x80;
  };
  while (end > 0 && continues(end)) --end;
  return name.substr(0, end) + "...";
}

size_t LeadingUnderscores(absl::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

// Without one suffix that names a part of a function.
absl::string_view WithoutPart(absl::string_view name) {
  absl::string_view rest = name;
  if (absl::ConsumeSuffix(&rest, ".cold")) return rest;
  rest = rest.substr(0, rest.find_last_not_of("0123456789") + 1);
  const bool numbered = rest.size() < name.size();
  if (numbered && (absl::ConsumeSuffix(&rest, ".cold.") || absl::ConsumeSuffix(&rest, ".__part.")))
    return rest;
  return name;
}

}  // namespace

std::string ReadableName(absl::string_view symbol) {
  if (const size_t at = symbol.find('@'); at != absl::string_view::npos && at > 0)
    symbol = symbol.substr(0, at);
  return Shortened(symbol.size() > kMaxMangledName ? std::string(symbol)
                                                   : DemangleWithSuffix(symbol));
}

OpenMpKind OpenMpOf(absl::string_view symbol) {
  static constexpr std::array<absl::string_view, 7> kMarks = {
      "._omp_fn.",  ".omp_outlined", "__omp_outlined__", ".DIR.OMP.",
      "__par_loop", "__par_region",  "__par_section"};
  const bool outlined = std::any_of(kMarks.begin(), kMarks.end(), [symbol](absl::string_view mark) {
    return absl::StrContains(symbol, mark);
  });
  return outlined ? OpenMpKind::kOutlined : OpenMpKind::kNone;
}

absl::string_view WholeOf(absl::string_view symbol) {
  absl::string_view whole = symbol;
  for (absl::string_view next = WithoutPart(whole); next != whole; next = WithoutPart(whole))
    whole = next;
  return whole == symbol ? absl::string_view() : whole;
}

bool IsBetterName(absl::string_view a, absl::string_view b) {
  const auto rank = [](absl::string_view name) {
    const bool mangled = absl::StartsWith(name, "_Z");
    return mangled ? 0 : LeadingUnderscores(name);
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

bool NeverReturns(absl::string_view symbol) {
  static constexpr std::array<absl::string_view, 22> kNames = {"abort",
                                                               "exit",
                                                               "_exit",
                                                               "_Exit",
                                                               "quick_exit",
                                                               "__stack_chk_fail",
                                                               "__fortify_fail",
                                                               "__chk_fail",
                                                               "__assert_fail",
                                                               "__assert_perror_fail",
                                                               "_Unwind_Resume",
                                                               "__cxa_throw",
                                                               "__cxa_rethrow",
                                                               "__cxa_bad_cast",
                                                               "__cxa_call_unexpected",
                                                               "__clang_call_terminate",
                                                               "_ZSt9terminatev",
                                                               "longjmp",
                                                               "siglongjmp",
                                                               "__longjmp_chk",
                                                               "pthread_exit",
                                                               "_ZSt10unexpectedv"};
  static constexpr std::array<absl::string_view, 4> kPrefixes = {
      "_gfortran_stop_", "_gfortran_error_stop_", "_gfortran_runtime_error", "_gfortran_os_error"};
  symbol = symbol.substr(0, symbol.find('@'));
  // std::__throw_length_error(char const*) and its kin.
  if (absl::StartsWith(symbol, "_ZSt") && absl::StrContains(symbol, "__throw_")) return true;
  if (std::find(kNames.begin(), kNames.end(), symbol) != kNames.end()) return true;
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [symbol](absl::string_view prefix) {
    return absl::StartsWith(symbol, prefix);
  });
}

}  // namespace perfd::agent
