// tests/unit/daemon/relay/frames.h - what a client of gRPC says over HTTP/2.
//
// Source   RFC 9113, sections 3.4 and 4.1; gRPC's PROTOCOL-HTTP2.md.
#ifndef TESTS_UNIT_DAEMON_RELAY_FRAMES_H_
#define TESTS_UNIT_DAEMON_RELAY_FRAMES_H_

#include <cstdint>
#include <string>

namespace perfd::daemon::testing_frames {

inline const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kGoAway = 7,
  kContinuation = 9
};
enum : uint8_t { kNone = 0, kEnd = 1, kWhole = 4, kPad = 8 };

inline std::string Number(uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    text += static_cast<char>(value >> shift & 0xff);
  return text;
}

inline std::string Frame(uint8_t type, uint8_t flags, uint32_t stream,
                         const std::string& payload = "") {
  return Number(payload.size(), 3) + Number(type, 1) + Number(flags, 1) + Number(stream, 4) +
         payload;
}

// The beginning of a message: what says how long it is.
inline std::string Prefix(uint32_t size, uint8_t compressed = 0) {
  return Number(compressed, 1) + Number(size, 4);
}

// A connection on which `calls` calls have begun: streams 1, 3, ...
inline std::string Calls(uint32_t calls = 1) {
  std::string bytes = kPreface + Frame(kSettings, kNone, 0);
  for (uint32_t i = 0; i < calls; ++i) bytes += Frame(kHeaders, kWhole, 2 * i + 1, "fields");
  return bytes;
}

}  // namespace perfd::daemon::testing_frames

#endif  // TESTS_UNIT_DAEMON_RELAY_FRAMES_H_
