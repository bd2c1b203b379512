// Stacks to unwind, and the answers. A stack is the user's memory, an answer comes from a process that read their files.
#include <algorithm>
#include <cstring>
#include <span>

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/wire.h"

namespace perfd::wire {
namespace {

absl::StatusOr<CodeMapping> ReadMapping(const v1::CodeMapping& mapping) {
  RETURN_IF_ERROR(
      CheckRange(static_cast<int64_t>(mapping.path().size()), 0, kMaxTextBytes, "mapping.path"));
  if (mapping.end() <= mapping.start())
    return absl::InvalidArgumentError("mapping.end: not above mapping.start");
  if (mapping.file_offset() > UINT64_MAX - (mapping.end() - mapping.start()))
    return absl::InvalidArgumentError("mapping.file_offset: beyond the end of any file");
  return CodeMapping{.start = mapping.start(),
                     .end = mapping.end(),
                     .file_offset = mapping.file_offset(),
                     .device_major = mapping.device_major(),
                     .device_minor = mapping.device_minor(),
                     .inode = mapping.inode(),
                     .path = mapping.path()};
}

}  // namespace

v1::UnwindTarget ToProto(const std::vector<CodeMapping>& mappings) {
  v1::UnwindTarget out;
  for (const CodeMapping& mapping : mappings) {
    if (out.mappings_size() == kMaxMappings) break;
    v1::CodeMapping* to = out.add_mappings();
    to->set_start(mapping.start.value());
    to->set_end(mapping.end.value());
    to->set_file_offset(mapping.file_offset.value());
    to->set_device_major(mapping.device_major);
    to->set_device_minor(mapping.device_minor);
    to->set_inode(mapping.inode);
    to->set_path(mapping.path);
  }
  return out;
}

absl::StatusOr<std::vector<CodeMapping>> FromProto(const v1::UnwindTarget& target) {
  RETURN_IF_ERROR(CheckCount(target.mappings_size(), kMaxMappings, "target.mappings"));
  std::vector<CodeMapping> out;
  for (const v1::CodeMapping& mapping : target.mappings()) {
    ASSIGN_OR_RETURN(CodeMapping read, ReadMapping(mapping));
    if (!out.empty() && read.start < out.back().end)
      return absl::InvalidArgumentError("target.mappings: not sorted and disjoint");
    out.push_back(std::move(read));
  }
  return out;
}

v1::UnwindRequest ToProto(const StackCopy& copy) {
  v1::UnwindRequest out;
  out.mutable_registers()->Add(copy.registers.begin(), copy.registers.end());
  const size_t size = std::min(copy.bytes.size(), kMaxStackCopyBytes);
  out.mutable_stack()->resize(size);
  if (size > 0) std::memcpy(out.mutable_stack()->data(), copy.bytes.data(), size);
  return out;
}

absl::StatusOr<StackCopy> FromProto(const v1::UnwindRequest& request) {
  RETURN_IF_ERROR(
      CheckRange(request.registers_size(), kStackRegisters, kStackRegisters, "request.registers"));
  RETURN_IF_ERROR(CheckRange(static_cast<int64_t>(request.stack().size()), 0, kMaxStackCopyBytes,
                             "request.stack"));
  StackCopy out;
  std::copy(request.registers().begin(), request.registers().end(), out.registers.begin());
  out.bytes.resize(request.stack().size());
  if (!out.bytes.empty()) std::memcpy(out.bytes.data(), request.stack().data(), out.bytes.size());
  return out;
}

v1::UnwindReply ToProto(const CallPath& path) {
  v1::UnwindReply out;
  const size_t frames = std::min(path.addresses.size(), kMaxCallPathFrames);
  for (RuntimeAddress address : std::span(path.addresses).first(frames))
    out.add_addresses(address.value());
  out.set_complete(path.complete && frames == path.addresses.size());
  out.set_unknown_address(path.unknown_address.value());
  return out;
}

absl::StatusOr<CallPath> FromProto(const v1::UnwindReply& reply) {
  if (reply.error_code() != 0) {
    RETURN_IF_ERROR(CheckRange(reply.error_code(), 1,
                               static_cast<int>(absl::StatusCode::kUnauthenticated),
                               "reply.error_code"));
    RETURN_IF_ERROR(CheckText(reply.error(), "reply.error"));
    return absl::Status(static_cast<absl::StatusCode>(reply.error_code()), reply.error());
  }
  RETURN_IF_ERROR(CheckCount(reply.addresses_size(), kMaxCallPathFrames, "reply.addresses"));
  CallPath out;
  out.addresses.assign(reply.addresses().begin(), reply.addresses().end());
  out.complete = reply.complete();
  out.unknown_address = reply.unknown_address();
  return out;
}

}  // namespace perfd::wire
