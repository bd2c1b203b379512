#include "client/commands/program_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"

namespace perfd::client {
namespace {

constexpr size_t kMaxNameBytes = 64;

bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
}

}  // namespace

std::string ProgramName(absl::string_view argv0) {
  const absl::string_view name = argv0.substr(argv0.rfind('/') + 1);
  const bool plain = !name.empty() && name.size() <= kMaxNameBytes && name[0] != '-' &&
                     std::all_of(name.begin(), name.end(), IsPlain);
  return std::string(plain ? name : absl::string_view(kProgramName));
}

std::string Named(absl::string_view text, absl::string_view program) {
  return absl::StrReplaceAll(text, {{kProgramName, program}});
}

}  // namespace perfd::client
