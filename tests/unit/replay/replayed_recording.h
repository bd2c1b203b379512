// A recording of two processes, written byte by byte, in a file of its own.
#ifndef TESTS_UNIT_REPLAY_REPLAYED_RECORDING_H_
#define TESTS_UNIT_REPLAY_REPLAYED_RECORDING_H_

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/perfdata/record_builder.h"
#include "tests/unit/perfdata/recording_builder.h"

namespace perfd::agent {

inline constexpr uint64_t kSecond = 1'000'000'000;
inline constexpr uint64_t kCycles = 1, kLoads = 2;  // identifiers of events
// A load that was found in L3: PERF_MEM_OP_LOAD, PERF_MEM_LVL_HIT | PERF_MEM_LVL_L3.
inline constexpr uint64_t kFromL3 = 2 | (0x2ull | 0x40) << 5;

class ReplayedRecording {
 public:
  ReplayedRecording() {
    int fd = ::mkstemp(path_.data());
    if (fd >= 0) ::close(fd);
    perf_event_attr attr{};
    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                       PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD |
                       PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC;
    attr.sample_id_all = 1;
    attr.freq = 1;
    attr.sample_freq = 100;
    builder_.Event(attr, {kCycles}).Event(attr, {kLoads});
  }
  ~ReplayedRecording() { ::unlink(path_.c_str()); }
  ReplayedRecording(const ReplayedRecording&) = delete;
  ReplayedRecording& operator=(const ReplayedRecording&) = delete;

  void Process(uint32_t pid, const std::string& name) {
    builder_.Record(RecordBuilder(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC)
                        .U32(pid).U32(pid).Text(name).U32(pid).U32(pid).U64(0).U64(kCycles).Build());
  }
  void Map(uint32_t pid, uint64_t start, uint64_t bytes, const std::string& path, uint64_t time_ns = 0) {
    builder_.Record(RecordBuilder(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER)
                        .U32(pid).U32(pid).U64(start).U64(bytes).U64(0).U32(8).U32(1).U64(42).U64(0)
                        .U32(5).U32(2).Text(path).U32(pid).U32(pid).U64(time_ns).U64(kCycles).Build());
  }
  void Fork(uint32_t parent, uint32_t child) {
    builder_.Record(RecordBuilder(PERF_RECORD_FORK, 0)
                        .U32(child).U32(parent).U32(child).U32(parent).U64(1).U32(child).U32(child)
                        .U64(1).U64(kCycles).Build());
  }
  void Sample(uint64_t event, uint32_t pid, uint64_t time_ns, uint64_t ip, uint64_t latency = 0,
              uint64_t period = 10) {
    builder_.Record(RecordBuilder(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
                        .U64(event).U64(ip).U32(pid).U32(pid).U64(time_ns)
                        .U64(latency > 0 ? 0x7000 : 0).U64(period).U64(latency)
                        .U64(latency > 0 ? kFromL3 : 0).Build());
  }
  const std::string& Write() {
    const std::vector<std::byte> bytes = builder_.File();
    FILE* file = std::fopen(path_.c_str(), "wb");
    if (file != nullptr) {
      std::fwrite(bytes.data(), 1, bytes.size(), file);
      std::fclose(file);
    }
    return path_;
  }

 private:
  std::string path_ = "/tmp/perfd-replay-XXXXXX";
  RecordingBuilder builder_;
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_REPLAY_REPLAYED_RECORDING_H_
