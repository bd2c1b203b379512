// client/render/pprof_encoder.h - writes the message Profile of pprof, field by field, and packs it with gzip.
//
// Shape    strings, functions and locations are numbered as they are first used; Finish() -> the file's bytes.
// Source   github.com/google/pprof proto/profile.proto (field numbers); RFC 1952 (gzip).
#ifndef CLIENT_RENDER_PPROF_ENCODER_H_
#define CLIENT_RENDER_PPROF_ENCODER_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd::client {

class PprofEncoder {
 public:
  struct Frame {
    std::string function;
    std::string file;
    int32_t line = 0;
  };

  PprofEncoder();

  // Frames outermost first; `cpu_ns` is the time the samples stand for.
  void AddSample(const std::vector<Frame>& frames, int64_t samples, int64_t cpu_ns, int64_t rank);
  void SetTimes(int64_t start_unix_ns, int64_t duration_ns, int64_t period_ns);

  // The uncompressed message.
  std::string Message() const;
  absl::StatusOr<std::string> Gzip() const;

 private:
  uint64_t String(absl::string_view text);
  uint64_t Function(const Frame& frame);
  uint64_t Location(const Frame& frame);
  std::string ValueType(absl::string_view type, absl::string_view unit);

  std::map<std::string, uint64_t> strings_;
  std::vector<std::string> string_table_;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> functions_;
  std::map<std::pair<uint64_t, int32_t>, uint64_t> locations_;
  std::string body_;  // every field but the string table and the times
  std::string times_;
};

}  // namespace perfd::client

#endif  // CLIENT_RENDER_PPROF_ENCODER_H_
