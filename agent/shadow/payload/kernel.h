// agent/shadow/payload/kernel.h - system calls, time and futexes without a library.
//
// Errors   calls return -errno, as the kernel does.
// Threads  a call uses eight bytes below the stack pointer: the payload is built without a red zone.
// Source   Linux x86-64 system call table (arch/x86/entry/syscalls/syscall_64.tbl).
#ifndef AGENT_SHADOW_PAYLOAD_KERNEL_H_
#define AGENT_SHADOW_PAYLOAD_KERNEL_H_

#include <cstdint>

namespace perfd::agent {

enum : int64_t {
  kSysMmap = 9,
  kSysMprotect = 10,
  kSysMunmap = 11,
  kSysBrk = 12,
  kSysSigaction = 13,
  kSysSigprocmask = 14,
  kSysSigreturn = 15,
  kSysSchedYield = 24,
  kSysMremap = 25,
  kSysMadvise = 28,
  kSysNanosleep = 35,
  kSysSetitimer = 38,
  kSysGetpid = 39,
  kSysExit = 60,
  kSysWait4 = 61,
  kSysKill = 62,
  kSysGetTimeOfDay = 96,
  kSysGetrusage = 98,
  kSysGetresuid = 118,
  kSysGetresgid = 120,
  kSysCapget = 125,
  kSysSigaltstack = 131,
  kSysPrctl = 157,
  kSysArchPrctl = 158,
  kSysGettid = 186,
  kSysTime = 201,
  kSysFutex = 202,
  kSysSetAffinity = 203,
  kSysGetAffinity = 204,
  kSysClockGettime = 228,
  kSysExitGroup = 231,
  kSysOpenat = 257,
  kSysPrlimit = 302,
  kSysGetcpu = 309,
  kSysSeccomp = 317,
};

// Through payload_system_call (entry.S), the only place from which a shadow may ask for everything.
inline int64_t SysCall(int64_t number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0,
                       uint64_t d = 0, uint64_t e = 0, uint64_t f = 0) {
  int64_t result;
  register uint64_t r10 asm("r10") = d;
  register uint64_t r8 asm("r8") = e;
  register uint64_t r9 asm("r9") = f;
  asm volatile("call payload_system_call"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

template <typename T>
uint64_t AddressOf(T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

template <typename T>
T* At(uint64_t address) {
  return reinterpret_cast<T*>(address);
}

inline uint64_t Ticks() {
  uint32_t low, high;
  asm volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
  return uint64_t{high} << 32 | low;
}

// Linux keeps node << 12 | cpu in the limit of this segment for the vDSO, on every x86-64. RDTSCP would tell it, too, but where
// a virtual machine does not offer it, it tells the number of the host's CPU.
inline uint32_t CurrentCpu() {
  uint32_t number = 0;
  bool there = false;
  asm volatile("lsl %2, %0" : "+r"(number), "=@ccz"(there) : "r"(0x7b));
  if (!there) SysCall(kSysGetcpu, AddressOf(&number));
  return number & 0xfff;
}

struct KernelTime {
  int64_t seconds;
  int64_t nanoseconds;
};

inline KernelTime ToKernelTime(uint64_t ns) {
  return {static_cast<int64_t>(ns / 1000000000), static_cast<int64_t>(ns % 1000000000)};
}

inline uint64_t MonotonicNs() {
  KernelTime now{};
  SysCall(kSysClockGettime, 1, AddressOf(&now));
  return static_cast<uint64_t>(now.seconds) * 1000000000 + static_cast<uint64_t>(now.nanoseconds);
}

inline void SleepNs(uint64_t ns) {
  KernelTime time = ToKernelTime(ns);
  SysCall(kSysNanosleep, AddressOf(&time), 0);
}

// Sleeps while *word == value, at most until `deadline_ns`. The word may be shared between processes.
inline void FutexWait(void* word, uint32_t value, uint64_t deadline_ns) {
  KernelTime time = ToKernelTime(deadline_ns);
  constexpr uint64_t kWaitBitset = 9;  // takes an absolute time
  SysCall(kSysFutex, AddressOf(word), kWaitBitset, value, AddressOf(&time), 0, 0xffffffff);
}

inline void FutexWakeAll(void* word) {
  constexpr uint64_t kWake = 1;
  SysCall(kSysFutex, AddressOf(word), kWake, 0x7fffffff);
}

template <typename T>
T Load(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_SEQ_CST);
}

template <typename T, typename V>
void Store(T& word, V value) {
  __atomic_store_n(&word, static_cast<T>(value), __ATOMIC_SEQ_CST);
}

template <typename T, typename V>
T FetchAdd(T& word, V value) {
  return __atomic_fetch_add(&word, static_cast<T>(value), __ATOMIC_SEQ_CST);
}

template <typename T>
bool Exchange(T& word, T expected, T desired) {
  return __atomic_compare_exchange_n(&word, &expected, desired, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

inline void CopyBytes(uint64_t to, uint64_t from, uint64_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
}

inline void ZeroBytes(uint64_t to, uint64_t bytes) {
  asm volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(0) : "memory");
}

inline void Pause() {
  asm volatile("pause" ::: "memory");
}

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_PAYLOAD_KERNEL_H_
