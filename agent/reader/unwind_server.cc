#include "agent/reader/unwind_server.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "agent/binary/stack_unwinder.h"
#include "agent/reader/confine.h"
#include "agent/reader/module_open.h"
#include "core/base/clock.h"
#include "core/base/frame.h"
#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/wire.h"

namespace perfd::agent {
namespace {

constexpr int64_t kTargetWaitNs = 10 * kNsPerSecond;

ModuleFile FileOf(const UnwindProcess& process, const CodeMapping& mapping) {
  return {.pid = process.pid,
          .uid = process.uid,
          .gid = process.gid,
          .path = mapping.path,
          .device_major = mapping.device_major,
          .device_minor = mapping.device_minor,
          .inode = mapping.inode,
          .map_start = mapping.start.value(),
          .map_end = mapping.end.value()};
}

// One mapping for each copy of a file in the process: parts of one copy have the same distance to their file offset.
std::vector<CodeMapping> Distinct(std::vector<CodeMapping> mappings) {
  absl::flat_hash_set<std::pair<std::string, uint64_t>> seen;
  std::vector<CodeMapping> distinct;
  for (CodeMapping& mapping : mappings) {
    if (distinct.size() == kMaxUnwindFiles) break;
    if (!mapping.path.empty() &&
        seen.emplace(mapping.path, mapping.start.value() - mapping.file_offset.value()).second)
      distinct.push_back(std::move(mapping));
  }
  return distinct;
}

absl::StatusOr<std::unique_ptr<StackUnwinder>> OpenConfined(int socket,
                                                            const UnwindArguments& arguments) {
  ASSIGN_OR_RETURN(const std::string message,
                   ReceiveFrame(socket, SystemClock().MonotonicNs() + kTargetWaitNs));
  v1::UnwindTarget target;
  if (!target.ParseFromString(message))
    return absl::InvalidArgumentError("reader: the list of mappings does not parse");
  ASSIGN_OR_RETURN(std::vector<CodeMapping> mappings, wire::FromProto(target));
  mappings = Distinct(std::move(mappings));
  std::vector<ModuleFile> files;
  files.reserve(mappings.size());
  for (const CodeMapping& mapping : mappings) files.push_back(FileOf(arguments.process, mapping));
  ASSIGN_OR_RETURN(auto opened, OpenModules(files));
  RETURN_IF_ERROR(Confine({.memory_bytes = arguments.memory_limit_bytes}));
  std::vector<UnwindModule> modules;
  for (size_t i = 0; i < mappings.size(); ++i) {
    UniqueFd file = opened[i].ok() ? std::move(*opened[i]) : UniqueFd();
    modules.push_back({std::move(file), std::move(mappings[i])});
  }
  return StackUnwinder::Create(std::move(modules));
}

absl::Status Reply(int socket, const v1::UnwindReply& reply) {
  return SendFrame(socket, reply.SerializeAsString(), kNoDeadline);
}

}  // namespace

absl::Status ServeUnwind(int socket, const UnwindArguments& arguments) {
  auto unwinder = OpenConfined(socket, arguments);
  v1::UnwindReply first;
  if (!unwinder.ok()) {
    first.set_error_code(static_cast<int>(unwinder.status().code()));
    first.set_error(wire::CleanText(unwinder.status().message()));
    return Reply(socket, first);
  }
  first.set_opened(static_cast<uint32_t>((*unwinder)->modules()));
  RETURN_IF_ERROR(Reply(socket, first));
  while (true) {
    ASSIGN_OR_RETURN(const std::string message, ReceiveFrame(socket, kNoDeadline));
    v1::UnwindRequest request;
    if (!request.ParseFromString(message))
      return absl::InvalidArgumentError("reader: request does not parse");
    ASSIGN_OR_RETURN(const StackCopy copy, wire::FromProto(request));
    RETURN_IF_ERROR(Reply(socket, wire::ToProto((*unwinder)->Unwind(copy))));
  }
}

}  // namespace perfd::agent
