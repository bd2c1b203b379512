#include "agent/binary/symbol_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

struct Free {
  void operator()(char* text) const { std::free(text); }  // __cxa_demangle allocates with malloc
};

std::string Demangle(absl::string_view mangled) {
  if (mangled.size() > kMaxMangledName) return std::string(mangled);
  int status = 0;
  const std::string terminated(mangled);
  const std::unique_ptr<char, Free> text(
      abi::__cxa_demangle(terminated.c_str(), nullptr, nullptr, &status));
  return status == 0 && text != nullptr ? std::string(text.get()) : terminated;
}

size_t LeadingUnderscores(absl::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

}  // namespace

std::string ReadableName(absl::string_view symbol) {
  if (const size_t at = symbol.find('@'); at != absl::string_view::npos && at > 0)
    symbol = symbol.substr(0, at);
  std::string name(symbol);
  if (absl::StartsWith(symbol, "_Z")) {
    // Suffixes such as ".constprop.0" or ".cold" are no part of the mangled name.
    const size_t dot = std::min(symbol.find('.'), symbol.size());
    name = absl::StrCat(Demangle(symbol.substr(0, dot)), symbol.substr(dot));
  }
  if (name.size() > kMaxReadableName) name = name.substr(0, kMaxReadableName - 3) + "...";
  return name;
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
