// agent/shadow/payload_blob.h - the code that is put into a rank, as bytes.
//
// Shape    flat and position independent; its doors are at kPayloadExitStub and kPayloadSlowEntry (agent/shadow/protocol.h).
// Source   agent/shadow/payload, built apart from the agent without libc (agent/shadow/CMakeLists.txt).
#ifndef AGENT_SHADOW_PAYLOAD_BLOB_H_
#define AGENT_SHADOW_PAYLOAD_BLOB_H_

#include <cstdint>
#include <span>

namespace perfd::agent {

std::span<const uint8_t> PayloadBlob();

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_PAYLOAD_BLOB_H_
