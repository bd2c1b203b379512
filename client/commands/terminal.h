// client/commands/terminal.h - everything a command touches outside itself, so that tests can give it something else.
//
// Shape    data goes to `out`, diagnostics to `err`; with `json` both are JSON.
#ifndef CLIENT_COMMANDS_TERMINAL_H_
#define CLIENT_COMMANDS_TERMINAL_H_

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/commands/program_name.h"
#include "client/render/text_style.h"
#include "client/rpc/daemon_client.h"
#include "core/base/clock.h"

namespace perfd::client {

enum class VersionCheck { kSameProtocol, kAny };

struct Terminal {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  const Clock& clock;
  TextStyle style;  // of `out`
  bool json = false;
  bool out_is_tty = false;
  bool err_is_tty = false;
  std::function<absl::StatusOr<std::unique_ptr<DaemonClient>>(VersionCheck)> connect;
  // From now on an interrupt does not end the process but makes `interrupted` true.
  std::function<void()> catch_interrupts = [] {};
  std::function<bool()> interrupted = [] { return false; };
  std::string program = kProgramName;  // the name we were started by
};

// What the environment says about a terminal. Source: no-color.org; locale(7) LC_ALL, LC_CTYPE, LANG.
struct StyleInputs {
  bool is_tty = false;
  int columns = 0;  // 0: unknown
  std::string term;
  std::string locale;     // the first set of LC_ALL, LC_CTYPE, LANG
  bool no_color = false;  // NO_COLOR is set and not empty, or --no-color
};
TextStyle ChooseStyle(const StyleInputs& inputs);

// The inputs for file descriptor `fd` of this process.
StyleInputs DetectStyleInputs(int fd);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_TERMINAL_H_
