// daemon/relay/refusal_frames.h - what a client is told in gRPC's place when its connection ends.
//
// Shape    RefusalFrames: the end of one call with its status, then GOAWAY.
// Source   RFC 9113, sections 6.2 and 6.8; RFC 7541, sections 5.1 and 6.2.2 (literals without indexing: they change no table);
//          gRPC's PROTOCOL-HTTP2.md, Trailers.
#ifndef DAEMON_RELAY_REFUSAL_FRAMES_H_
#define DAEMON_RELAY_REFUSAL_FRAMES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace perfd::daemon {

// stream 0: no call is ended, only the connection. answered: the call has had the headers of its answer. newest: no later call was seen; a
// client may take one beyond it up anew by itself.
std::string RefusalFrames(const absl::Status& why, uint32_t stream, bool answered, uint32_t newest);

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_REFUSAL_FRAMES_H_
