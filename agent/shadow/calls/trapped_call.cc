#include "agent/shadow/calls/trapped_call.h"

#include <sys/syscall.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

// What programs are seen to call in loops; others are told by their number.
constexpr std::pair<uint32_t, const char*> kNames[] = {
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_open, "open"},
    {SYS_close, "close"},
    {SYS_stat, "stat"},
    {SYS_fstat, "fstat"},
    {SYS_poll, "poll"},
    {SYS_lseek, "lseek"},
    {SYS_mmap, "mmap"},
    {SYS_mprotect, "mprotect"},
    {SYS_rt_sigaction, "rt_sigaction"},
    {SYS_rt_sigprocmask, "rt_sigprocmask"},
    {SYS_ioctl, "ioctl"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_pipe, "pipe"},
    {SYS_select, "select"},
    {SYS_mremap, "mremap"},
    {SYS_msync, "msync"},
    {SYS_madvise, "madvise"},
    {SYS_shmat, "shmat"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_sendto, "sendto"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_clone, "clone"},
    {SYS_fork, "fork"},
    {SYS_vfork, "vfork"},
    {SYS_execve, "execve"},
    {SYS_exit, "exit"},
    {SYS_wait4, "wait4"},
    {SYS_kill, "kill"},
    {SYS_semop, "semop"},
    {SYS_fcntl, "fcntl"},
    {SYS_fsync, "fsync"},
    {SYS_unlink, "unlink"},
    {SYS_futex, "futex"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_exit_group, "exit_group"},
    {SYS_tgkill, "tgkill"},
    {SYS_openat, "openat"},
    {SYS_newfstatat, "newfstatat"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
    {SYS_getrandom, "getrandom"},
    {SYS_clone3, "clone3"},
};

std::string NameOf(uint32_t number) {
  const auto* name = std::find_if(std::begin(kNames), std::end(kNames),
                                  [number](const auto& entry) { return entry.first == number; });
  return name == std::end(kNames) ? absl::StrCat("system call ", number)
                                  : absl::StrCat(name->second, "()");
}

}  // namespace

TrappedCall LocateCall(uint32_t number, uint64_t address, const std::vector<MapEntry>& maps) {
  TrappedCall call{number, address, "", 0};
  const auto map = std::find_if(maps.begin(), maps.end(), [address](const MapEntry& entry) {
    return entry.start <= address && address < entry.end;
  });
  if (map == maps.end() || map->inode == 0) return call;
  const auto first = std::find_if(maps.begin(), maps.end(), [&map](const MapEntry& other) {
    return other.inode == map->inode && other.device_major == map->device_major &&
           other.device_minor == map->device_minor;
  });
  call.file = map->path.substr(map->path.rfind('/') + 1);
  call.offset = address - first->start;
  return call;
}

std::string TextOf(const TrappedCall& call) {
  const std::string name = NameOf(call.number);
  if (call.file.empty()) return absl::StrCat("calls ", name, " from 0x", absl::Hex(call.address));
  return absl::StrCat("calls ", name, " from ", call.file, "+0x", absl::Hex(call.offset));
}

}  // namespace perfd::agent
