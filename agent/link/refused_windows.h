// agent/link/refused_windows.h - which window to give up when the daemon keeps ending the stream for it.
//
// Shape    a stream that ends with kInvalidArgument or kResourceExhausted was ended for one of our messages (any other
//          code: come again). From then on the windows it had been sent go one at a time, so that the next such end
//          points at one of them; after kTries in a row for the same window that window is given up. kResourceExhausted also says that
//          perfd has no memory for requests just now (docs/limits.md), so it takes kTriesForSize.
// Errors   none: a wrong guess costs one window, which stays on disk.
// Threads  thread-compatible.
// Source   daemon/service/agent_stream.h, Errors.
#ifndef AGENT_LINK_REFUSED_WINDOWS_H_
#define AGENT_LINK_REFUSED_WINDOWS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"

namespace perfd::agent {

// How far a stream had come when it ended, in sequences. 0: none.
struct StreamEnd {
  uint64_t oldest = 0;  // the oldest window that is not acknowledged
  uint64_t sent = 0;    // the highest window sent
  uint64_t stored = 0;  // what the daemon said it had at the beginning
};

class RefusedWindows {
 public:
  static constexpr int kTries = 3;
  static constexpr int kTriesForSize = 100;

  // How many windows may be under way when the highest sent so far is `sent`.
  uint64_t Ahead(uint64_t sent, uint64_t usual) const { return sent <= careful_ ? 1 : usual; }
  // The window to give up, if any.
  std::optional<uint64_t> Ended(const absl::Status& why, const StreamEnd& end);

 private:
  uint64_t careful_ = 0;  // up to here one at a time
  uint64_t suspect_ = 0;
  int tries_ = 0;           // ends with the suspect alone under way
  int tries_for_size_ = 0;  // the same, of kResourceExhausted
};

}  // namespace perfd::agent

#endif  // AGENT_LINK_REFUSED_WINDOWS_H_
