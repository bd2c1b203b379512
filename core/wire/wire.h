// core/wire/wire.h - model values to protobuf messages and back; the only place that knows both.
//
// Shape    ToProto never fails; names that are no UTF-8 are cleaned. FromProto checks every enum,
//          range and index (limits.h): the bytes may come from anyone.
// Errors   kInvalidArgument, naming the field.
// Threads  thread-safe (pure).
#ifndef CORE_WIRE_WIRE_H_
#define CORE_WIRE_WIRE_H_

#include "absl/status/statusor.h"
#include "core/model/module.h"
#include "core/model/profile.h"
#include "core/model/profile_spec.h"
#include "core/model/report.h"
#include "core/model/stack.h"
#include "core/model/window.h"
#include "perfd/v1/agent.pb.h"
#include "perfd/v1/profile.pb.h"
#include "perfd/v1/reader.pb.h"
#include "perfd/v1/sample.pb.h"

namespace perfd::wire {

v1::ProfileSpec ToProto(const ProfileSpec& spec);
absl::StatusOr<ProfileSpec> FromProto(const v1::ProfileSpec& spec);

v1::Requester ToProto(const Requester& requester);
Requester FromProto(const v1::Requester& requester);

v1::Notice ToProto(const Notice& notice);
absl::StatusOr<Notice> FromProto(const v1::Notice& notice);

v1::NodePhase ToProto(NodeProgress::Phase phase);
absl::StatusOr<NodeProgress::Phase> FromProto(v1::NodePhase phase);

v1::ProfileStatus ToProto(const ProfileStatus& status);
absl::StatusOr<ProfileStatus> FromProto(const v1::ProfileStatus& status);

v1::RankInfo ToProto(const RankInfo& rank);
absl::StatusOr<RankInfo> FromProto(const v1::RankInfo& rank);

v1::CodeLocation ToProto(const CodeLocation& location);
absl::StatusOr<CodeLocation> FromProto(const v1::CodeLocation& location);

v1::Window ToProto(const Window& window);
absl::StatusOr<Window> FromProto(const v1::Window& window);

v1::ReportRow ToProto(const ReportRow& row);
absl::StatusOr<ReportRow> FromProto(const v1::ReportRow& row);

v1::Report ToProto(const Report& report);
absl::StatusOr<Report> FromProto(const v1::Report& report);

// The reader's first message and its answers. A reply that carries an error code becomes that
// status.
v1::ReaderReply ToProto(const ModuleFacts& facts);
v1::ReaderReply ToProto(const CodeFacts& facts);
absl::StatusOr<ModuleFacts> ModuleFactsFromProto(const v1::ReaderReply& reply);
absl::StatusOr<CodeFacts> CodeFactsFromProto(const v1::ReaderReply& reply);

// The conversation with a reader that unwinds stacks. A reply that carries an error code becomes
// that status.
v1::UnwindTarget ToProto(const std::vector<CodeMapping>& mappings);
absl::StatusOr<std::vector<CodeMapping>> FromProto(const v1::UnwindTarget& target);
v1::UnwindRequest ToProto(const StackCopy& copy);
absl::StatusOr<StackCopy> FromProto(const v1::UnwindRequest& request);
v1::UnwindReply ToProto(const CallPath& path);
absl::StatusOr<CallPath> FromProto(const v1::UnwindReply& reply);

}  // namespace perfd::wire

#endif  // CORE_WIRE_WIRE_H_
