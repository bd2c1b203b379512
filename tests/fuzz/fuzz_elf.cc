// A whole ELF file, symbols, DWARF and code included.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "agent/binary/module_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  perfd::UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC));
  if (!fd.valid() || ::write(fd.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  const auto reader = perfd::agent::ModuleReader::Open(std::move(fd));
  if (!reader.ok()) return 0;
  std::vector<perfd::ElfAddress> addresses = {0, UINT64_MAX};
  for (const perfd::ModuleSegment& segment : (*reader)->facts().segments) {
    if (!segment.executable || addresses.size() > 64) continue;
    for (uint64_t i = 0; i < 8; ++i)
      addresses.push_back(segment.virtual_address + segment.file_size / 8 * i);
  }
  for (const perfd::FunctionFacts& function : (*reader)->FunctionsAt(addresses).functions)
    if (function.high <= function.low) std::abort();
  return 0;
}
