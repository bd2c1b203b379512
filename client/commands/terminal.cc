#include "client/commands/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace perfd::client {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

TextStyle ChooseStyle(const StyleInputs& inputs) {
  TextStyle style;
  if (!inputs.is_tty) return style;
  const std::string locale = absl::AsciiStrToLower(inputs.locale);
  style.utf8 = absl::StrContains(locale, "utf-8") || absl::StrContains(locale, "utf8");
  style.color = !inputs.no_color && !inputs.term.empty() && inputs.term != "dumb";
  if (inputs.columns > 0) style.width = std::clamp(inputs.columns, 60, 240);
  return style;
}

StyleInputs DetectStyleInputs(int fd) {
  StyleInputs inputs;
  inputs.is_tty = isatty(fd) == 1;
  winsize size{};
  if (inputs.is_tty && ioctl(fd, TIOCGWINSZ, &size) == 0) inputs.columns = size.ws_col;
  inputs.term = Environment("TERM");
  inputs.no_color = !Environment("NO_COLOR").empty();
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    inputs.locale = Environment(name);
    if (!inputs.locale.empty()) break;
  }
  return inputs;
}

}  // namespace perfd::client
