#include "agent/kernel/kernel_causes.h"

#include <algorithm>
#include <array>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace perfd::agent {
namespace {

struct CallsOf {
  KernelCause cause;
  absl::string_view names;  // of system calls, as the kernel's functions have them
  // Functions that those end in by a jump: then they are the outermost ones of a chain.
  absl::string_view ends_in;
};

// What is in none of them is kOther.
constexpr auto kCalls = std::to_array<CallsOf>({
    {KernelCause::kMemoryReturn, "munmap madvise process_madvise brk shmdt",
     "__vm_munmap vm_munmap do_madvise ksys_shmdt"},
    {KernelCause::kMemoryMap,
     "mmap mremap mprotect pkey_mprotect mlock mlock2 mlockall munlock munlockall mbind "
     "set_mempolicy set_mempolicy_home_node migrate_pages move_pages remap_file_pages shmat "
     "mincore",
     "ksys_mmap_pgoff vm_mmap_pgoff do_mprotect_pkey do_mremap do_mlock kernel_mbind "
     "kernel_migrate_pages kernel_move_pages"},
    {KernelCause::kIo,
     "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 fsync fdatasync "
     "sync syncfs sync_file_range msync sendfile64 copy_file_range splice tee open openat openat2 "
     "creat close close_range newstat newlstat newfstat newfstatat statx access faccessat "
     "faccessat2 readlink readlinkat lseek truncate ftruncate fallocate getdents getdents64 unlink "
     "unlinkat rename renameat renameat2 mkdir mkdirat rmdir link linkat symlink symlinkat flock "
     "fadvise64 readahead sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg socket connect accept "
     "accept4 shutdown io_uring_enter io_submit io_getevents io_pgetevents pipe pipe2",
     "ksys_read ksys_write ksys_pread64 ksys_pwrite64 ksys_lseek ksys_fallocate ksys_sync "
     "ksys_sync_file_range ksys_readahead ksys_fadvise64_64 do_readv do_writev do_preadv "
     "do_pwritev do_fsync do_sendfile do_sys_open do_sys_openat2 do_sys_truncate do_sys_ftruncate "
     "do_unlinkat do_renameat2 do_mkdirat __sys_sendto __sys_recvfrom __sys_sendmsg __sys_recvmsg "
     "__sys_sendmmsg __sys_recvmmsg"},
    {KernelCause::kCopy, "process_vm_readv process_vm_writev vmsplice", "process_vm_rw"},
    {KernelCause::kWaiting,
     "futex futex_wait futex_wake futex_waitv futex_requeue nanosleep clock_nanosleep sched_yield "
     "poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 wait4 waitid pause "
     "rt_sigtimedwait rt_sigsuspend semop semtimedop",
     "do_futex hrtimer_nanosleep common_nsleep do_sched_yield do_sys_poll core_sys_select "
     "kern_select do_pselect do_epoll_wait do_epoll_pwait kernel_wait4 kernel_waitid "
     "do_semtimedop"},
});

using Causes = absl::flat_hash_map<absl::string_view, KernelCause>;

Causes CausesOf(absl::string_view CallsOf::*names) {
  Causes causes;
  for (const CallsOf& calls : kCalls) {
    for (absl::string_view name : absl::StrSplit(calls.*names, ' '))
      causes.emplace(name, calls.cause);
  }
  return causes;
}

bool BeginsWithAny(absl::string_view symbol, std::initializer_list<absl::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](absl::string_view prefix) { return absl::StartsWith(symbol, prefix); });
}

}  // namespace

KernelCauses::Range KernelCauses::Judge(uint64_t start, absl::string_view symbol) {
  static const auto* const calls = new Causes(CausesOf(&CallsOf::names));
  static const auto* const ends = new Causes(CausesOf(&CallsOf::ends_in));
  symbol = symbol.substr(0, symbol.find('.'));  // of its parts, too
  absl::string_view call = symbol;
  if (absl::ConsumePrefix(&call, "__x64_sys_") || absl::ConsumePrefix(&call, "__ia32_sys_") ||
      absl::ConsumePrefix(&call, "__ia32_compat_sys_") || absl::ConsumePrefix(&call, "__do_sys_") ||
      absl::ConsumePrefix(&call, "__se_sys_")) {
    const auto known = calls->find(call);
    return {start, Says::kCause, known == calls->end() ? KernelCause::kOther : known->second};
  }
  if (const auto end = ends->find(symbol); end != ends->end())
    return {start, Says::kCause, end->second};
  if (symbol == "asm_exc_page_fault" || symbol == "exc_page_fault")
    return {start, Says::kCause, KernelCause::kPageFault};
  if (BeginsWithAny(symbol, {"asm_sysvec_", "asm_common_interrupt", "asm_spurious_interrupt",
                             "sysvec_", "common_interrupt", "asm_exc_nmi", "asm_fred_"}))
    return {start, Says::kCause, KernelCause::kInterrupt};
  if (absl::StartsWith(symbol, "asm_exc_")) return {start, Says::kCause, KernelCause::kOther};
  if (BeginsWithAny(symbol, {"entry_SYSCALL_", "do_syscall_64", "x64_sys_call",
                             "syscall_enter_from_user_mode", "syscall_exit_to_user_mode",
                             "syscall_return_via_sysret", "ret_from_fork"}))
    return {start, Says::kEntered, KernelCause::kOther};
  return {start, Says::kNothing, KernelCause::kUnknown};
}

KernelCauses KernelCauses::Parse(absl::string_view kallsyms) {
  std::vector<Range> all;
  while (!kallsyms.empty()) {
    const size_t end = std::min(kallsyms.find('\n'), kallsyms.size());
    const absl::string_view line = kallsyms.substr(0, end);
    kallsyms.remove_prefix(std::min(end + 1, kallsyms.size()));
    // "ffffffff81000000 T name", and "\t[module]" after those of modules.
    const size_t space = line.find(' ');
    uint64_t start = 0;
    if (space == line.npos || line.size() < space + 4 ||
        !absl::StrContains("tTwW", line.substr(space + 1, 1)) ||
        !absl::SimpleHexAtoi(line.substr(0, space), &start) || start == 0)
      continue;
    const absl::string_view name = line.substr(space + 3);
    all.push_back(Judge(start, name.substr(0, name.find('\t'))));
  }
  // Of several names of one address the one that says something.
  std::stable_sort(all.begin(), all.end(), [](const Range& a, const Range& b) {
    return a.start != b.start ? a.start < b.start : a.says > b.says;
  });
  KernelCauses causes;
  for (const Range& range : all) {
    std::vector<Range>& kept = causes.ranges_;
    if (!kept.empty() && kept.back().start == range.start) continue;
    if (!kept.empty() && kept.back().says == range.says && kept.back().cause == range.cause)
      continue;
    kept.push_back(range);
  }
  return causes;
}

KernelCause KernelCauses::Of(std::span<const uint64_t> chain) const {
  KernelCause cause = KernelCause::kUnknown;
  for (size_t i = chain.size(); i-- > 0;) {
    // A return address may already belong to the next function.
    const uint64_t address = i == 0 ? chain[i] : chain[i] - 1;
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                        [](uint64_t a, const Range& r) { return a < r.start; });
    if (after == ranges_.begin()) continue;
    const Range& range = *std::prev(after);
    if (range.says == Says::kCause) return range.cause;
    if (range.says == Says::kEntered) cause = range.cause;
  }
  return cause;
}

}  // namespace perfd::agent
