#include "tests/unit/variant/native_run.h"

#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

extern "C" {
void perfd_native_run();
void perfd_native_back();
uint64_t perfd_native_state;
uint64_t perfd_native_target;
uint64_t perfd_native_spare;
uint64_t perfd_native_stack;
}

// Offsets: general 0, flags 128, vector 160, wide 672, mask 2720, whole 2784.
asm(R"(
    .text
    .globl perfd_native_run, perfd_native_back
perfd_native_run:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, perfd_native_stack(%rip)
    mov perfd_native_state(%rip), %rdi
    cmpb $0, 2784(%rdi)
    jne 1f
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmovups 160+32*\n(%rdi), %ymm\n
    .endr
    jmp 2f
1:
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovups 672+64*\n(%rdi), %zmm\n
    .endr
    .irp n,0,1,2,3,4,5,6,7
    kmovq 2720+8*\n(%rdi), %k\n
    .endr
2:
    pushq 128(%rdi)
    popfq
    mov 0(%rdi), %rax
    mov 8(%rdi), %rcx
    mov 16(%rdi), %rdx
    mov 24(%rdi), %rbx
    mov 40(%rdi), %rbp
    mov 48(%rdi), %rsi
    mov 64(%rdi), %r8
    mov 72(%rdi), %r9
    mov 80(%rdi), %r10
    mov 88(%rdi), %r11
    mov 96(%rdi), %r12
    mov 104(%rdi), %r13
    mov 112(%rdi), %r14
    mov 120(%rdi), %r15
    mov 56(%rdi), %rdi
    jmp *perfd_native_target(%rip)
perfd_native_back:
    mov perfd_native_stack(%rip), %rsp
    mov %rdi, perfd_native_spare(%rip)
    mov perfd_native_state(%rip), %rdi
    mov %rax, 0(%rdi)
    mov %rcx, 8(%rdi)
    mov %rdx, 16(%rdi)
    mov %rbx, 24(%rdi)
    mov %rbp, 40(%rdi)
    mov %rsi, 48(%rdi)
    mov %r8, 64(%rdi)
    mov %r9, 72(%rdi)
    mov %r10, 80(%rdi)
    mov %r11, 88(%rdi)
    mov %r12, 96(%rdi)
    mov %r13, 104(%rdi)
    mov %r14, 112(%rdi)
    mov %r15, 120(%rdi)
    mov perfd_native_spare(%rip), %rax
    mov %rax, 56(%rdi)
    pushfq
    popq 128(%rdi)
    cmpb $0, 2784(%rdi)
    jne 3f
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmovups %ymm\n, 160+32*\n(%rdi)
    .endr
    jmp 4f
3:
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovups %zmm\n, 672+64*\n(%rdi)
    .endr
    .irp n,0,1,2,3,4,5,6,7
    kmovq %k\n, 2720+8*\n(%rdi)
    .endr
4:
    cld
    vzeroupper
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
)");

namespace perfd::agent {

static_assert(offsetof(MachineState, flags) == 128);
static_assert(offsetof(MachineState, vector) == 160);
static_assert(offsetof(MachineState, wide) == 672);
static_assert(offsetof(MachineState, mask) == 2720);
static_assert(offsetof(MachineState, whole) == 2784);

bool HasAvx2() {
  return __builtin_cpu_supports("avx2") != 0;
}

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0;
}

Arena::Arena() {
  constexpr uint64_t kBytes = 2 * kTextBytes + kDataBytes + 0x1000 + kBlockBytes;
  void* at =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) std::abort();
  base_ = reinterpret_cast<uint64_t>(at);
  At<uint64_t>(back()) = reinterpret_cast<uint64_t>(&perfd_native_back);
}

Arena::~Arena() {
  munmap(reinterpret_cast<void*>(base_), 2 * kTextBytes + kDataBytes + 0x1000 + kBlockBytes);
}

std::span<uint8_t> Arena::Bytes(uint64_t address, uint64_t count) const {
  return {reinterpret_cast<uint8_t*>(address), count};
}

void Arena::Write(uint64_t address, const std::vector<uint8_t>& bytes) const {
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(address));
}

void Arena::Run(uint64_t target, MachineState* state) const {
  syscall(SYS_arch_prctl, ARCH_SET_GS, block());
  perfd_native_state = reinterpret_cast<uint64_t>(state);
  perfd_native_target = target;
  perfd_native_run();
  state->general[4] = 0;
}

}  // namespace perfd::agent
