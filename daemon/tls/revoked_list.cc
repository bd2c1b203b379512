#include "daemon/tls/revoked_list.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/service/trusted_file.h"

namespace perfd::daemon {
namespace {

constexpr size_t kMaxSerialDigits = 40;
constexpr size_t kMaxName = 255;
constexpr size_t kMaxShown = 80;

absl::Status Wrong(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", text.substr(0, kMaxShown), "' ", why));
}

// Also with colons, as `openssl x509 -text` prints it.
absl::StatusOr<std::string> SerialOf(absl::string_view text) {
  std::string digits = absl::AsciiStrToUpper(absl::StrReplaceAll(text, {{":", ""}}));
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit))
    return Wrong(text, "is not a serial: give its hexadecimal digits");
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  if (digits.size() > kMaxSerialDigits)
    return Wrong(text, absl::StrCat("has more than ", kMaxSerialDigits, " digits"));
  return digits;
}

absl::StatusOr<std::string> NameOf(absl::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '/';
  });
  if (text.empty() || text.size() > kMaxName || !plain)
    return Wrong(text, "is not the name of a node or user, as after perfd://agent/");
  return std::string(text);
}

}  // namespace

absl::Status RevokedList::AddLine(absl::string_view line) {
  // `serial=HEX` is what openssl prints.
  const std::vector<absl::string_view> words =
      absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r="), absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  if (words.size() != 2) return Wrong(line, "is not an entry: `serial HEX` or `name NAME`");
  if (words[0] == "serial") {
    ASSIGN_OR_RETURN(std::string serial, SerialOf(words[1]));
    serials_.insert(std::move(serial));
    return absl::OkStatus();
  }
  if (words[0] == "name") {
    ASSIGN_OR_RETURN(std::string name, NameOf(words[1]));
    names_.insert(std::move(name));
    return absl::OkStatus();
  }
  return Wrong(words[0], "begins no entry: say `serial HEX` or `name NAME`");
}

absl::StatusOr<RevokedList> RevokedList::Parse(absl::string_view text) {
  RevokedList list;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (const absl::Status status = list.AddLine(line); !status.ok())
      return absl::Status(status.code(), absl::StrCat("line ", number, ": ", status.message()));
  }
  return list;
}

absl::StatusOr<RevokedList> RevokedList::Read(const std::string& path) {
  if (path.empty()) return RevokedList();
  ASSIGN_OR_RETURN(const std::string text, ReadTrustedFile(path, kMaxBytes));
  if (text.size() > kMaxBytes)
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than ", kMaxBytes, " bytes"));
  absl::StatusOr<RevokedList> list = Parse(text);
  if (list.ok()) return list;
  return absl::Status(list.status().code(), absl::StrCat(path, ": ", list.status().message()));
}

RevokedBy RevokedList::Find(const Certificate& certificate) const {
  if (serials_.contains(certificate.serial)) return RevokedBy::kSerial;
  for (absl::string_view name : certificate.uris) {
    const bool ours =
        absl::ConsumePrefix(&name, "perfd://agent/") || absl::ConsumePrefix(&name, "perfd://user/");
    if (ours && names_.contains(std::string(name))) return RevokedBy::kName;
  }
  return RevokedBy::kNothing;
}

}  // namespace perfd::daemon
