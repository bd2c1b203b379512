#include "client/render/memory/samples_csv.h"

#include "absl/strings/str_cat.h"
#include "client/render/csv.h"
#include "core/json/memory/memory_words.h"

namespace perfd::client {
namespace {

std::string Address(RuntimeAddress address) {
  return absl::StrCat("0x", absl::Hex(address.value()));
}

}  // namespace

std::string SamplesCsvHeader() {
  return "event,time_ns,pid,tid,cpu,kernel,ip,period,address,latency,instruction_latency,operation,"
         "level,"
         "missed,snoop,dtlb,locked,page_bytes\n";
}

std::string SamplesCsvRow(absl::string_view event, const Sample& sample) {
  const MemoryAccess access = sample.access.value_or(MemoryAccess{});
  const MemorySource& source = access.source;
  return absl::StrCat(
      CsvField(event), ",", sample.time_ns, ",", sample.pid, ",", sample.tid, ",", sample.cpu, ",",
      sample.kernel ? 1 : 0, ",", Address(sample.ip), ",", sample.period, ",",
      Address(access.address), ",", access.latency_cycles, ",",
      absl::StrCat(access.instruction_latency, ",", OperationWords(source.operation).key, ",",
                   LevelWords(source.level).key, ",", source.missed ? 1 : 0, ",",
                   SnoopWords(source.snoop).key, ",", TlbWords(source.tlb).key, ",",
                   LockWords(source.lock).key, ",", access.page_bytes, "\n"));
}

}  // namespace perfd::client
