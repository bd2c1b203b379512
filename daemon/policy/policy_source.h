// daemon/policy/policy_source.h - the policy in force, read from its file.
//
// Shape    Reload reads the file anew; a file that is not right leaves the policy as it was, and error() says why.
// Errors   Reload: kInvalidArgument (line and column), kNotFound, kPermissionDenied; all name the file.
// Threads  thread-safe.
#ifndef DAEMON_POLICY_POLICY_SOURCE_H_
#define DAEMON_POLICY_POLICY_SOURCE_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "core/model/node.h"
#include "core/model/policy.h"

namespace perfd::daemon {

class PolicySource {
 public:
  // Empty: no policy, which Reload accepts.
  explicit PolicySource(std::string path) : path_(std::move(path)) {}

  absl::Status Reload();
  // Null: there is none. Shared with calls that go on while another one is read.
  std::shared_ptr<const Policy> Get() const;
  // Of the last Reload; empty: it went well.
  std::string error() const;
  // For people: "every 3rd job, at most 4 at a time and 100 a day (/etc/perfd/policy.yaml)".
  std::string Describe() const;
  // For `doctor`; of the file, when there is one.
  DoctorCheck Check() const;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  mutable Mutex mutex_;
  std::shared_ptr<const Policy> policy_ ABSL_GUARDED_BY(mutex_);
  std::string error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd::daemon

#endif  // DAEMON_POLICY_POLICY_SOURCE_H_
