// agent/link/link_codec.h - the agent's stream messages to and from the pipeline's values.
//
// Errors   DecodeStart: kInvalidArgument, naming the field.
#ifndef AGENT_LINK_LINK_CODEC_H_
#define AGENT_LINK_LINK_CODEC_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/doctor/node_checks.h"
#include "agent/pipeline/session_update.h"
#include "perfd/v1/agent.pb.h"

namespace perfd::agent {

v1::SessionUpdate EncodeUpdate(const SessionUpdate& update);
absl::StatusOr<SessionRequest> DecodeStart(const v1::StartCommand& start);
v1::DoctorResult EncodeDoctor(uint64_t request_id, const std::vector<NodeCheck>& checks);

// A session that could not even begin.
SessionUpdate FailedUpdate(const std::string& profile_id, const std::string& node,
                           const absl::Status& status);

}  // namespace perfd::agent

#endif  // AGENT_LINK_LINK_CODEC_H_
