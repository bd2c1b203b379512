// agent/shadow/payload/entry.S - the doors of the payload: what needs exact registers. No data, no relocations but relative ones.

#include "agent/shadow/payload/offsets.h"

        .section .text.entry, "ax", @progbits

// Offset 0: every exit of a copy that a shadow runs. GS holds the thread's block; all else is the copy's.
        .globl payload_exit_stub
        .hidden payload_exit_stub
payload_exit_stub:
        mov %rax, %gs:BLOCK_LEFT + 13 * 8
        mov %rdx, %gs:BLOCK_LEFT + 12 * 8
        lfence
        rdtsc
        lfence
        mov %eax, %gs:BLOCK_END
        mov %edx, %gs:BLOCK_END + 4
        jmp payload_exit

// Offset 0x48: the only place from which the payload asks the kernel, a call like any other but for its registers. The filter
// of a shadow knows it by its address (filter.cc); embed.cmake looks that there is no other.
        .org 0x48
        .globl payload_system_call
        .hidden payload_system_call
payload_system_call:
        syscall
        ret

        .globl payload_restorer
        .hidden payload_restorer
payload_restorer:
        mov $15, %eax
        jmp payload_system_call

// Offset 0x80: from a trampoline, rcx = address of the Site with the kind of entry in its low bits. On the stack: return
// address, rcx, 128 bytes of red zone. Everything but rcx comes back as it was; vector state is never touched.
        .org 0x80
        .globl payload_slow_entry
        .hidden payload_slow_entry
payload_slow_entry:
        // From here to the clock, and from the clock below to the return: agent/shadow/timing/live_reading.cc repeats it.
        pushfq
        push %rax
        push %rdx
        lfence
        rdtsc
        lfence
        push %rbx
        push %rbp
        push %rsi
        push %rdi
        push %r8
        push %r9
        push %r10
        push %r11
        push %r12
        push %r13
        push %r14
        push %r15
        cld
        shl $32, %rdx
        or %rax, %rdx
        mov %rcx, %rdi
        mov %rsp, %rsi
        mov %rsp, %rbx
        and $-16, %rsp
        call payload_enter
        test $3, %al
        jnz payload_elsewhere
payload_leave:
        mov %rbx, %rsp
        // Leave no return address into this code behind: whoever wants to unmap it looks for them on the stacks.
        mov %rax, %rdx
        lea -1024(%rbx), %rdi
        mov $128, %ecx
        xor %eax, %eax
        rep stosq
        mov %rdx, %rcx
        pop %r15
        pop %r14
        pop %r13
        pop %r12
        pop %r11
        pop %r10
        pop %r9
        pop %r8
        pop %rdi
        pop %rsi
        pop %rbp
        pop %rbx
        jrcxz 1f
        lfence
        rdtsc
        lfence
        mov %eax, (%rcx)
        mov %edx, 4(%rcx)
1:      pop %rdx
        pop %rax
        popfq
        ret

// rax = block + 2: the thread of a shadow, which goes on from what was saved of it. Its own stack belongs to the copies.
payload_elsewhere:
        test $1, %al
        jnz payload_recovery
        lea -2(%rax), %rdi
        lea BLOCK_STACK_TOP(%rdi), %rsp
        call payload_arrive
        ud2

// rax = block + 1, rbx = the saved registers: a copy is run first. It has the thread's own stack pointer, and a handler of the
// program may come in between: nothing that is still needed may lie below it, so this goes on on the block's stack.
payload_recovery:
        lea -1(%rax), %r12
        lea BLOCK_STACK_TOP(%r12), %rsp
        // As below, and the saved registers with their return address, which come back from the block: from here on an address
        // of this code or of a copy on the thread's stack means that a signal has interrupted the run.
        lea -1024(%rbx), %rdi
        mov $128 + 17, %ecx
        xor %eax, %eax
        rep stosq
        mov %r12, %rdi
        call payload_recover
        mov BLOCK_XSAVE_MASK(%r12), %eax
        mov BLOCK_XSAVE_MASK + 4(%r12), %edx
        xrstor64 BLOCK_XSAVE(%r12)
        mov %rbx, %rsp
        and $-16, %rsp
        mov %r12, %rdi
        mov %rbx, %rsi
        call payload_resume
        jmp payload_leave

        .text

// The rest of an exit. What the copy left in its registers is kept: another run may go on from there.
payload_exit:
        mov %r15, %gs:BLOCK_LEFT + 0 * 8
        mov %r14, %gs:BLOCK_LEFT + 1 * 8
        mov %r13, %gs:BLOCK_LEFT + 2 * 8
        mov %r12, %gs:BLOCK_LEFT + 3 * 8
        mov %r11, %gs:BLOCK_LEFT + 4 * 8
        mov %r10, %gs:BLOCK_LEFT + 5 * 8
        mov %r9, %gs:BLOCK_LEFT + 6 * 8
        mov %r8, %gs:BLOCK_LEFT + 7 * 8
        mov %rdi, %gs:BLOCK_LEFT + 8 * 8
        mov %rsi, %gs:BLOCK_LEFT + 9 * 8
        mov %rbp, %gs:BLOCK_LEFT + 10 * 8
        mov %rbx, %gs:BLOCK_LEFT + 11 * 8
        mov %rcx, %gs:BLOCK_LEFT + 16 * 8
        mov %rsp, %gs:BLOCK_LEFT + 17 * 8
        mov $0x7b, %ecx                 // CurrentCpu in kernel.h
        lsl %ecx, %ecx
        mov %ecx, %gs:BLOCK_END_CPU
        mov %gs:BLOCK_STACK_POINTER, %rsp
        pushq $2
        popfq
        pop %r15
        pop %r14
        pop %r13
        pop %r12
        pop %rbp
        pop %rbx
        ret

// void payload_run(uint64_t block): one timed run of block.target from the saved registers; returns through the exit stub.
        .globl payload_run
        .hidden payload_run
payload_run:
        push %rbx
        push %rbp
        push %r12
        push %r13
        push %r14
        push %r15
        mov %rsp, BLOCK_STACK_POINTER(%rdi)
        mov BLOCK_XSAVE_MASK(%rdi), %eax
        mov BLOCK_XSAVE_MASK + 4(%rdi), %edx
        xrstor64 BLOCK_XSAVE(%rdi)
        mov BLOCK_REGISTERS + 17 * 8(%rdi), %rsp
        mov BLOCK_REGISTERS + 0 * 8(%rdi), %r15
        mov BLOCK_REGISTERS + 1 * 8(%rdi), %r14
        mov BLOCK_REGISTERS + 2 * 8(%rdi), %r13
        mov BLOCK_REGISTERS + 3 * 8(%rdi), %r12
        mov BLOCK_REGISTERS + 4 * 8(%rdi), %r11
        mov BLOCK_REGISTERS + 5 * 8(%rdi), %r10
        mov BLOCK_REGISTERS + 6 * 8(%rdi), %r9
        mov BLOCK_REGISTERS + 7 * 8(%rdi), %r8
        mov BLOCK_REGISTERS + 9 * 8(%rdi), %rsi
        mov BLOCK_REGISTERS + 10 * 8(%rdi), %rbp
        mov BLOCK_REGISTERS + 11 * 8(%rdi), %rbx
        mov BLOCK_REGISTERS + 16 * 8(%rdi), %rcx
        // Below the red zone: the flags have no other way in.
        lea -128(%rsp), %rsp
        pushq BLOCK_REGISTERS + 14 * 8(%rdi)
        popfq
        lea 128(%rsp), %rsp
        lfence
        rdtsc
        lfence
        mov %eax, BLOCK_START(%rdi)
        mov %edx, BLOCK_START + 4(%rdi)
        mov BLOCK_REGISTERS + 12 * 8(%rdi), %rdx
        mov BLOCK_REGISTERS + 13 * 8(%rdi), %rax
        mov BLOCK_REGISTERS + 8 * 8(%rdi), %rdi
        jmp *%gs:BLOCK_TARGET

// int64_t payload_clone(flags, stack_top, tls, function, argument): the child starts in function(argument) on its own stack.
        .globl payload_clone
        .hidden payload_clone
payload_clone:
        sub $24, %rsi
        lea 1f(%rip), %rax              // where the child's system call returns to
        mov %rax, (%rsi)
        mov %rcx, 8(%rsi)
        mov %r8, 16(%rsi)
        mov %rdx, %r8
        xor %edx, %edx
        xor %r10d, %r10d
        mov $56, %eax
        jmp payload_system_call
1:      xor %ebp, %ebp
        pop %rax
        pop %rdi
        and $-16, %rsp
        call *%rax
        ud2

        .section .note.GNU-stack, "", @progbits
