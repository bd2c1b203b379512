// daemon/service/doors/grpc_log.h - what gRPC has to say goes into perfd's log, and no faster than one line a second of each kind.
//
// Shape    one GrpcLog, in main, before the first server; its destructor gives gRPC back what it had: the log ends with main.
// Why      whoever can reach a TCP port makes gRPC write a line for each failed handshake.
// Source   grpc/impl/codegen/log.h gpr_set_log_function.
#ifndef DAEMON_SERVICE_DOORS_GRPC_LOG_H_
#define DAEMON_SERVICE_DOORS_GRPC_LOG_H_

namespace perfd::daemon {

class GrpcLog {
 public:
  GrpcLog();
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_DOORS_GRPC_LOG_H_
