// daemon/service/node_codec.h - nodes and doctor reports as messages.
#ifndef DAEMON_SERVICE_NODE_CODEC_H_
#define DAEMON_SERVICE_NODE_CODEC_H_

#include "core/model/node.h"
#include "perfd/v1/profiler.pb.h"

namespace perfd {

v1::NodeStatus ToProto(const NodeStatus& node);
v1::DoctorReport ToProto(const DoctorReport& report);

}  // namespace perfd

#endif  // DAEMON_SERVICE_NODE_CODEC_H_
