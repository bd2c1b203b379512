// Journals of injections and what shadows leave in the region: foreign bytes must be refused or hold what is promised.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_format.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/journal.h"
#include "agent/shadow/shadow_reading.h"

namespace {

// FNV-1a, as the journal ends; without it nothing would get past the checksum.
std::string Signed(const std::string& text) {
  uint64_t sum = 0xcbf29ce484222325;
  for (char c : text) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return text + absl::StrFormat("end %016x\n", sum);
}

void Decode(const std::string& text) {
  const auto injection = perfd::agent::DecodeInjection(text);
  if (!injection.ok()) return;
  const std::string again = perfd::agent::EncodeInjection(*injection);
  const auto same = perfd::agent::DecodeInjection(again);
  if (!same.ok() || perfd::agent::EncodeInjection(*same) != again) std::abort();
}

void ReadAnswer(const uint8_t* data, size_t size) {
  perfd::agent::ShadowReading reading;
  const std::vector<perfd::agent::CodeCopy> copies(1);
  reading.copies = {&copies[0]};
  if (size < 8) return;
  reading.team = static_cast<uint32_t>(data[0]) | static_cast<uint32_t>(data[1]) << 8;
  reading.runs = data[2];
  reading.results.resize((reading.runs + perfd::agent::kProbeRuns) * (reading.team % 300));
  data += 3;
  size -= 3;
  std::memcpy(&reading.child, data, std::min(size, sizeof(reading.child)));
  std::memcpy(&reading.site, data, std::min(size, sizeof(reading.site)));
  reading.site.last_outcome %= 12;
  const auto answer = perfd::agent::ReadAnswer(reading);
  if (answer.ok() && answer->runs.size() != reading.runs * reading.team) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Decode(text);
  Decode(Signed(text));
  Decode(Signed("perfd injection 1\n" + text));
  perfd::agent::ParseKbLines(text);
  (void)perfd::agent::ParseNamespacePid(text);
  ReadAnswer(data, size);
  return 0;
}
