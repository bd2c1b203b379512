#include "agent/variant/flow/body.h"

#include <algorithm>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "agent/variant/decode.h"
#include "agent/variant/flow/edges.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// Bytes of one function; larger ones are not read.
constexpr size_t kMaxFunctionBytes = size_t{4} << 20;

absl::StatusOr<std::vector<CodeRange>> FunctionOf(const LoopBytes& loop) {
  std::vector<CodeRange> parts;
  size_t bytes = 0;
  for (const CodeText& text : loop.function) {
    bytes += text.bytes.size();
    if (text.bytes.empty() || bytes > kMaxFunctionBytes || text.end() < text.address)
      return absl::InvalidArgumentError("the function is empty or larger than 4 MiB");
    if (!parts.empty() && text.address < parts.back().high)
      return absl::InvalidArgumentError("parts of the function overlap");
    parts.push_back({text.address, text.end()});
  }
  return parts;
}

bool Within(const std::vector<CodeRange>& parts, const CodeRange& range) {
  return std::any_of(parts.begin(), parts.end(), [&range](const CodeRange& part) {
    return part.low <= range.low && range.high <= part.high;
  });
}

absl::StatusOr<std::vector<CodeRange>> Body(const LoopBytes& loop,
                                            const std::vector<CodeRange>& function) {
  std::vector<CodeRange> sorted = loop.body;
  std::sort(sorted.begin(), sorted.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.low < b.low; });
  std::vector<CodeRange> body;
  for (const CodeRange& r : sorted) {
    if (r.low >= r.high || !Within(function, r))
      return absl::InvalidArgumentError("a range of the loop lies outside its function");
    if (!body.empty() && r.low < body.back().high)
      return absl::InvalidArgumentError("ranges of the loop overlap");
    if (!body.empty() && r.low == body.back().high) {
      body.back().high = r.high;
    } else {
      body.push_back(r);
    }
  }
  if (body.empty()) return absl::InvalidArgumentError("the loop has no range");
  return body;
}

absl::Status TooLong() {
  return absl::FailedPreconditionError(
      absl::StrCat("the loop has more than ", kMaxLoopInstructions, " instructions"));
}

// However long its instructions are. Source: Intel SDM vol. 2, 2.3.11: at most 15 bytes.
bool SurelyTooLong(const std::vector<CodeRange>& body) {
  uint64_t bytes = 0;
  for (const CodeRange& range : body) bytes += range.high - range.low;
  return bytes > uint64_t{15} * kMaxLoopInstructions;
}

absl::Status DecodeRange(const LoopBytes& bytes, const CodeRange& range, LoopCode* loop) {
  uint64_t at = range.low;
  while (at < range.high) {
    const std::span<const uint8_t> part = BytesAt(bytes, at);  // parts may touch
    const std::span<const uint8_t> rest = part.first(std::min(part.size(), range.high - at));
    std::optional<LoopInstruction> instruction = DecodeLoopInstruction(rest, at, bytes.bias);
    if (!instruction) {
      return absl::FailedPreconditionError(
          absl::StrCat("0x", absl::Hex((RuntimeAddress(at) - bytes.bias).value()),
                       ": the bytes are no known instruction"));
    }
    at = instruction->end();
    loop->instructions.push_back(*std::move(instruction));
    if (loop->instructions.size() > static_cast<size_t>(kMaxLoopInstructions)) return TooLong();
  }
  return absl::OkStatus();
}

// An instruction of 64 bits with a ModRM byte; the numbers of its registers.
struct WideInstruction {
  uint8_t opcode = 0;
  int reg = 0;
  int rm = 0;  // of memory: its base; kNoRegister where its address has an index or no base
  bool memory = false;
};

std::optional<WideInstruction> WideAt(std::span<const uint8_t> code) {
  if (code.size() < 4 || (code[0] & 0xF8) != 0x48) return std::nullopt;
  const auto extended = [&](int low, int bit) { return (low & 7) | (code[0] >> bit & 1) << 3; };
  const int mod = code[2] >> 6;
  const bool sib = mod != 3 && (code[2] & 7) == 4;
  WideInstruction wide{.opcode = code[1],
                       .reg = extended(code[2] >> 3, 2),
                       .rm = extended(sib ? code[3] : code[2], 0),
                       .memory = mod != 3};
  const bool no_base = mod == 0 && ((sib ? code[3] : code[2]) & 7) == 5;  // or RIP
  const bool index = sib && extended(code[3] >> 3, 1) != kStackPointer;
  if (wide.memory && (no_base || index)) wide.rm = kNoRegister;
  return wide;
}

constexpr uint8_t kStoreRegister = 0x89, kLoadRegister = 0x8B, kLoadAddress = 0x8D;
constexpr uint8_t kExchange = 0x87, kExchangeRax = 0x94;
constexpr int kFramePointer = 5;

// What RSP would be made of if an instruction began here: a register that it is copied from, or that its address is counted from.
std::optional<int> MakesStackPointer(std::span<const uint8_t> code) {
  if (code.size() > 1 && code[0] == 0x48 && code[1] == kExchangeRax) return 0;
  const auto wide = WideAt(code);
  if (!wide) return std::nullopt;
  const bool to_rm = wide->opcode == kStoreRegister || wide->opcode == kExchange;
  const bool to_reg =
      wide->opcode == kLoadRegister || wide->opcode == kLoadAddress || wide->opcode == kExchange;
  if (to_rm && !wide->memory && wide->rm == kStackPointer) return wide->reg;
  if (to_reg && wide->reg == kStackPointer) return wide->rm;
  return std::nullopt;
}

// Which register is a copy of RSP, or an address beside it, behind an instruction that begins here.
std::optional<int> SavesStackPointer(std::span<const uint8_t> code) {
  const auto wide = WideAt(code);
  if (!wide) return std::nullopt;
  if (wide->opcode == kStoreRegister && !wide->memory && wide->reg == kStackPointer)
    return wide->rm;
  const bool copies = (wide->opcode == kLoadRegister && !wide->memory) ||
                      (wide->opcode == kLoadAddress && wide->memory);
  return copies && wide->rm == kStackPointer ? std::optional(wide->reg) : std::nullopt;
}

// The registers that hold the stack: RSP, RBP, and what is saved of RSP somewhere in the function.
RegisterSet RegistersOfStack(const LoopBytes& bytes) {
  RegisterSet registers = Bit(kStackPointer) | Bit(kFramePointer);
  for (const CodeText& text : bytes.function) {
    const std::span<const uint8_t> code(text.bytes);
    for (size_t at = 0; at < code.size(); ++at) {
      if (const auto saved = SavesStackPointer(code.subspan(at)); saved) registers |= Bit(*saved);
    }
  }
  return registers;
}

// The first of these addresses, which are sorted, that an instruction begins at.
std::optional<uint64_t> FirstInstruction(const CodeText& text,
                                         std::span<const uint64_t> addresses) {
  uint64_t at = text.address;
  for (const uint64_t address : addresses) {
    while (at < address) {
      const auto step = DecodeFlow(std::span(text.bytes).subspan(at - text.address), at);
      at += step ? step->length : 1;
    }
    if (at == address) return address;
  }
  return std::nullopt;
}

}  // namespace

absl::Status CheckStackPointer(const LoopBytes& bytes) {
  const RegisterSet stack = RegistersOfStack(bytes);
  for (const CodeText& text : bytes.function) {
    const std::span<const uint8_t> code(text.bytes);
    std::vector<uint64_t> others;
    for (size_t at = 0; at < code.size(); ++at) {
      const auto source = MakesStackPointer(code.subspan(at));
      if (source && (*source == kNoRegister || (stack & Bit(*source)) == 0))
        others.push_back(text.address + at);
    }
    const std::optional<uint64_t> at = FirstInstruction(text, others);
    if (!at) continue;
    const auto instruction =
        DecodeLoopInstruction(code.subspan(*at - text.address), *at, bytes.bias);
    if (instruction)
      return Refuse(*instruction, "its function uses the stack pointer for something else");
  }
  return absl::OkStatus();
}

std::span<const uint8_t> BytesAt(const LoopBytes& bytes, uint64_t address) {
  for (const CodeText& text : bytes.function) {
    if (address >= text.address && address < text.end())
      return std::span(text.bytes).subspan(address - text.address);
  }
  return {};
}

absl::Status ReadBody(const LoopBytes& bytes, LoopCode* loop) {
  loop->bias = bytes.bias;
  ASSIGN_OR_RETURN(loop->function, FunctionOf(bytes));
  ASSIGN_OR_RETURN(loop->body, Body(bytes, loop->function));
  if (SurelyTooLong(loop->body)) return TooLong();
  for (const CodeRange& range : loop->body) RETURN_IF_ERROR(DecodeRange(bytes, range, loop));
  return absl::OkStatus();
}

}  // namespace perfd::agent
