#include "agent/spawn/helper_host.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/spawn/helper_process.h"
#include "core/base/clock.h"
#include "core/base/frame.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kAnswerNs = 5 * kNsPerSecond;
constexpr char kBetweenWords = '\0';  // no argument has it

// One byte with a descriptor.
struct Parcel {
  Parcel() {
    part = {&byte, 1};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  char byte = 'f';
  iovec part{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};

absl::Status SendDescriptor(int socket, int descriptor) {
  Parcel parcel;
  cmsghdr* const label = CMSG_FIRSTHDR(&parcel.header);
  label->cmsg_level = SOL_SOCKET;
  label->cmsg_type = SCM_RIGHTS;
  label->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(label), &descriptor, sizeof descriptor);
  if (::sendmsg(socket, &parcel.header, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("helper host: ", strerror(errno)));
}

// Waits for the agent. Invalid: it has gone.
UniqueFd ReceiveDescriptor(int socket) {
  Parcel parcel;
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &parcel.header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* const label = got == 1 ? CMSG_FIRSTHDR(&parcel.header) : nullptr;
  if (label == nullptr || label->cmsg_type != SCM_RIGHTS) return {};
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(label), sizeof descriptor);
  return UniqueFd(descriptor);
}

// As fork, but the new process is a child of this one's parent: the agent reaps it and knows what it used.
pid_t ForkSibling() {
  return static_cast<pid_t>(::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, 0, 0, 0));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HelperHost>> HelperHost::Start(const std::string& name,
                                                              const std::string& program) {
  ASSIGN_OR_RETURN(Helper host, StartWithSocket(name, [&](int socket) {
                     return StartHelper({name, program, {kHostMode}}, socket);
                   }));
  return std::unique_ptr<HelperHost>(new HelperHost(host.pid, std::move(host.socket)));
}

HelperHost::~HelperHost() {
  EndHelper(pid_, 0);  // it holds nothing
}

absl::StatusOr<pid_t> HelperHost::Spawn(const std::vector<std::string>& arguments, int socket) {
  const int64_t deadline_ns = SystemClock().MonotonicNs() + kAnswerNs;
  RETURN_IF_ERROR(SendDescriptor(socket_.get(), socket));
  RETURN_IF_ERROR(SendFrame(
      socket_.get(), absl::StrJoin(arguments, absl::string_view(&kBetweenWords, 1)), deadline_ns));
  ASSIGN_OR_RETURN(const std::string answer, ReceiveFrame(socket_.get(), deadline_ns));
  pid_t pid = 0;
  if (!absl::SimpleAtoi(answer, &pid) || pid <= 0)
    return absl::InternalError(absl::StrCat("helper host: ", answer));
  AdoptHelper(pid);
  return pid;
}

std::optional<std::vector<std::string>> ServeHelpers() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (true) {
    UniqueFd theirs = ReceiveDescriptor(kHelperSocket);
    if (!theirs.valid()) return std::nullopt;
    const auto words = ReceiveFrame(kHelperSocket, kNoDeadline);
    if (!words.ok()) return std::nullopt;
    const pid_t pid = ForkSibling();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // not inherited
      ::dup2(theirs.get(), kHelperSocket);
      return absl::StrSplit(*words, kBetweenWords);
    }
    const std::string answer =
        pid > 0 ? absl::StrCat(pid) : absl::StrCat("fork: ", strerror(errno));
    if (!SendFrame(kHelperSocket, answer, kNoDeadline).ok()) return std::nullopt;
  }
}

}  // namespace perfd::agent
