// agent/sample/memory/sysfs_pmu.h - one PMU as the kernel describes it in sysfs: its events, and where their terms go.
//
// Shape    Read(sys root, "cpu"); Encode("event=0xcd,umask=0x1,ldlat=3") -> type and config words.
// Errors   Read: kNotFound when there is no such PMU. Encode: kUnimplemented for a term that it has no format of,
//          kInvalidArgument for one that is no number or does not fit.
// Threads  thread-compatible.
// Source   Documentation/ABI/testing/sysfs-bus-event_source-devices-{events,format}: "config1:1,6-10,44" names bits from the lowest
//          of the value on.
#ifndef AGENT_SAMPLE_MEMORY_SYSFS_PMU_H_
#define AGENT_SAMPLE_MEMORY_SYSFS_PMU_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/sample/event_names.h"

namespace perfd::agent {

using EventTerms = std::map<std::string, uint64_t>;

class SysfsPmu {
 public:
  static absl::StatusOr<SysfsPmu> Read(const std::string& sys_root, const std::string& name);

  const std::string& name() const { return name_; }
  bool HasFormat(const std::string& term) const { return formats_.contains(term); }
  bool HasEvent(const std::string& event) const { return events_.contains(event); }
  // `changed` replaces or adds terms.
  absl::StatusOr<EventEncoding> EncodeNamed(const std::string& event,
                                            const EventTerms& changed) const;
  absl::StatusOr<EventEncoding> Encode(const EventTerms& terms, absl::string_view name) const;

 private:
  struct Format {
    int word = 0;                             // config, config1, config2
    std::vector<std::pair<int, int>> ranges;  // of bits, both ends included
  };
  static absl::StatusOr<Format> ParseFormat(absl::string_view text);
  static absl::Status Place(const Format& format, uint64_t value, EventEncoding* encoding);

  std::string name_;
  uint32_t type_ = 0;
  std::map<std::string, Format> formats_;
  std::map<std::string, std::string> events_;
};

// "event=0xcd,umask=0x1,ldlat=3" -> terms; a term without a value is 1.
absl::StatusOr<EventTerms> ParseTerms(absl::string_view text);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_MEMORY_SYSFS_PMU_H_
