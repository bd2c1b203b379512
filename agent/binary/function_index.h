// agent/binary/function_index.h - which function an address belongs to, from everything but DWARF.
//
// Shape    Find: PLT stub, sized symbol, symbol without size (to the end of its unwind entry, else to the next symbol),
//          unwind entry. Guess: the gap between two known functions.
// Threads  thread-bound (call frame information is read when it is first needed).
#ifndef AGENT_BINARY_FUNCTION_INDEX_H_
#define AGENT_BINARY_FUNCTION_INDEX_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/binary/elf_file.h"
#include "agent/binary/frames/eh_frame.h"
#include "agent/binary/frames/exception_table.h"
#include "agent/binary/plt.h"
#include "agent/binary/symbol_table.h"
#include "core/model/code.h"

namespace perfd::agent {

struct FunctionBounds {
  uint64_t low = 0;
  uint64_t high = 0;
  absl::string_view symbol;  // as linked; empty: unknown
  FunctionSource source = FunctionSource::kSymbol;
};

class FunctionIndex {
 public:
  // `debug` may be null. Both must outlive the index.
  FunctionIndex(const ElfFile& main, const ElfFile* debug);

  std::optional<FunctionBounds> Find(uint64_t address);
  std::optional<FunctionBounds> Guess(uint64_t address);
  // Parts of functions, by their names.
  const NamedParts& named_parts() const { return named_parts_; }
  // Their names are local symbols: whether there are any of those.
  bool has_local_symbols() const { return has_local_symbols_; }
  // Name of the function that starts here, PLT stubs included; empty: unknown.
  absl::string_view NameAt(uint64_t address) const;
  // Where exceptions that come out of the calls of the part that starts here go on; sorted.
  std::vector<LandingPad> LandingPadsOf(uint64_t low);
  // Where an exception that comes out of the call at this address goes on.
  std::optional<uint64_t> LandingPadAt(uint64_t call);

 private:
  const PltStub* StubAt(uint64_t address) const;
  std::optional<FunctionBounds> FindUnsized(uint64_t address);
  const CodeRange* EntryBefore(uint64_t address);
  const EhFrame& Frames();

  const ElfFile& main_;
  NamedParts named_parts_;
  bool has_local_symbols_ = false;
  SymbolTable symbols_;
  std::vector<PltStub> stubs_;
  std::optional<EhFrame> frames_;
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FUNCTION_INDEX_H_
