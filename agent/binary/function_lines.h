// agent/binary/function_lines.h - what debug information says about one function: lines, inlined calls.
//
// Shape    rows are sorted by address; a row holds from its address to the next row's. frames[0] is the function itself;
//          a frame comes after its parent and its ranges lie inside the parent's.
// Units    ELF virtual addresses; line 0: no line.
#ifndef AGENT_BINARY_FUNCTION_LINES_H_
#define AGENT_BINARY_FUNCTION_LINES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/binary/frames/eh_frame.h"
#include "core/model/code.h"

namespace perfd::agent {

struct LineRow {
  uint64_t address = 0;
  uint32_t file = 0;  // index into files
  int32_t line = 0;
};

struct InlineFrame {
  std::string name;     // as linked where known
  uint32_t parent = 0;  // index; the function's own frame is its own parent
  uint32_t call_file = 0;
  int32_t call_line = 0;  // in the parent's source; 0: unknown
  int32_t declaration_line = 0;
  std::vector<CodeRange> ranges;
};

struct FunctionLines {
  std::vector<std::string> files;  // files[0] is empty: unknown
  std::vector<LineRow> rows;
  std::vector<InlineFrame> frames;
  SourceRange declaration;
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FUNCTION_LINES_H_
