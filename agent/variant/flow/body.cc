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
  int rm = 0;  // of mod 3; else what an address begins with, kInstructionPointer included
  bool memory = false;
};

std::optional<WideInstruction> WideAt(std::span<const uint8_t> code) {
  if (code.size() < 4 || (code[0] & 0xF8) != 0x48) return std::nullopt;
  const auto extended = [&](uint8_t low, int bit) { return (low & 7) | (code[0] >> bit & 1) << 3; };
  const uint8_t modrm = code[2];
  const bool sib = modrm >> 6 != 3 && (modrm & 7) == 4;
  WideInstruction wide{.opcode = code[1],
                       .reg = extended(static_cast<uint8_t>(modrm >> 3), 2),
                       .rm = extended(sib ? code[3] : modrm, 0),
                       .memory = modrm >> 6 != 3};
  if (wide.memory && modrm >> 6 == 0 && (modrm & 7) == 5) wide.rm = kInstructionPointer;
  return wide;
}

constexpr uint8_t kStoreRegister = 0x89, kLoadRegister = 0x8B, kLoadAddress = 0x8D,
                  kExchange = 0x87;
constexpr int kFramePointer = 5;

// What RSP would be made of if an instruction began here.
std::optional<int> MakesStackPointer(std::span<const uint8_t> code) {
  const auto wide = WideAt(code);
  if (!wide) return std::nullopt;
  int source = kStackPointer;
  if (wide->opcode == kStoreRegister && !wide->memory && wide->rm == kStackPointer)
    source = wide->reg;
  if ((wide->opcode == kLoadRegister || wide->opcode == kLoadAddress) && wide->reg == kStackPointer)
    source = wide->rm;
  if (wide->opcode == kExchange && !wide->memory &&
      (wide->reg == kStackPointer || wide->rm == kStackPointer))
    source = wide->reg == kStackPointer ? wide->rm : wide->reg;
  if (source == kStackPointer || source == kFramePointer) return std::nullopt;
  return source;
}

// A copy of RSP, or an address beside it.
bool SavesStackPointer(std::span<const uint8_t> code, int in) {
  const auto wide = WideAt(code);
  if (!wide) return false;
  if (wide->opcode == kStoreRegister)
    return !wide->memory && wide->reg == kStackPointer && wide->rm == in;
  const bool copies = (wide->opcode == kLoadRegister && !wide->memory) ||
                      (wide->opcode == kLoadAddress && wide->memory);
  return copies && wide->reg == in && wide->rm == kStackPointer;
}

bool IsSaved(const LoopBytes& bytes, int in) {
  return std::any_of(bytes.function.begin(), bytes.function.end(), [in](const CodeText& text) {
    const std::span<const uint8_t> code(text.bytes);
    for (size_t at = 0; at < code.size(); ++at)
      if (SavesStackPointer(code.subspan(at), in)) return true;
    return false;
  });
}

bool BeginsAt(const CodeText& text, uint64_t address) {
  uint64_t at = text.address;
  while (at < address) {
    const auto step = DecodeFlow(std::span(text.bytes).subspan(at - text.address), at);
    at += step ? step->length : 1;
  }
  return at == address;
}

}  // namespace

absl::Status CheckStackPointer(const LoopBytes& bytes) {
  for (const CodeText& text : bytes.function) {
    const std::span<const uint8_t> code(text.bytes);
    for (size_t at = 0; at < code.size(); ++at) {
      const auto source = MakesStackPointer(code.subspan(at));
      if (!source || !BeginsAt(text, text.address + at)) continue;
      const auto instruction =
          DecodeLoopInstruction(code.subspan(at), text.address + at, bytes.bias);
      const bool loads = instruction && (instruction->traits & kLoads) != 0;
      if (!instruction || (!loads && IsSaved(bytes, *source))) continue;
      return Refuse(*instruction, "its function uses the stack pointer for something else");
    }
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
