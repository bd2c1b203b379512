// Loops with known truth. Each has a header of at least five bytes that no branch enters in its middle, relative branches only.

        .macro loop_function name
        .globl \name, \name\()_header, \name\()_exit
        .type \name, @function
\name:
        .endm

        .macro load_zmm n
        vmovdqu64 64*\n(%rdi), %zmm\n
        .endm
        .macro load_k n
        kmovq 2048+8*\n(%rdi), %k\n
        .endm
        .macro store_zmm n
        vmovdqu64 %zmm\n, 64*\n(%rdi)
        .endm
        .macro store_k n
        kmovq %k\n, 2048+8*\n(%rdi)
        .endm
        .altmacro

        .text
// double loop_sum(const double* values, long n)
        .balign 64
loop_function loop_sum
        xorpd %xmm0, %xmm0
        .balign 64
loop_sum_header:
1:
        addsd (%rdi), %xmm0
        add $8, %rdi
        dec %rsi
        jne 1b
loop_sum_exit:
        ret

// void loop_update(long* values, long n): values[i] += 3
        .balign 64
loop_function loop_update
        .balign 64
loop_update_header:
1:
        addq $3, (%rdi)
        nopl (%rax)
        add $8, %rdi
        dec %rsi
        jne 1b
loop_update_exit:
        ret

// void loop_state(void* in_out, long n): at the entry 32 ZMM, k1-k7, CF, and two words of the red zone are live; all come back.
// in_out: 32 x 64 bytes of ZMM, then 8 x 8 of k, then red zone words, then flags, then rax rdx rbx rbp r8-r15, rcx.
        .balign 64
loop_function loop_state
        push %rbx
        push %rbp
        push %r12
        push %r13
        push %r14
        push %r15
        .set i, 0
        .rept 32
        load_zmm %i
        .set i, i+1
        .endr
        .set i, 1
        .rept 7
        load_k %i
        .set i, i+1
        .endr
        mov 2112(%rdi), %rax
        mov %rax, -8(%rsp)
        mov 2120(%rdi), %rax
        mov %rax, -128(%rsp)
        mov $0x1111, %eax
        mov $0x2222, %edx
        mov $0x3333, %ebx
        mov $0x4444, %ebp
        mov $0x5555, %r8d
        mov $0x6666, %r9d
        mov $0x7777, %r10d
        mov $0x8888, %r11d
        mov $0x9999, %r12d
        mov $0xaaaa, %r13d
        mov $0xbbbb, %r14d
        mov $0xcccc, %r15d
        mov $0xdddd, %ecx
        stc
        .balign 64
loop_state_header:
1:
        nopl 0x100(%rax)
        dec %rsi
        jne 1b
loop_state_exit:
        mov %rax, 2144(%rdi)
        mov -8(%rsp), %rax
        mov %rax, 2112(%rdi)
        mov -128(%rsp), %rax
        mov %rax, 2120(%rdi)
        setc 2128(%rdi)
        mov %rdx, 2152(%rdi)
        mov %rbx, 2160(%rdi)
        mov %rbp, 2168(%rdi)
        mov %r8, 2176(%rdi)
        mov %r9, 2184(%rdi)
        mov %r10, 2192(%rdi)
        mov %r11, 2200(%rdi)
        mov %r12, 2208(%rdi)
        mov %r13, 2216(%rdi)
        mov %r14, 2224(%rdi)
        mov %r15, 2232(%rdi)
        mov %rcx, 2240(%rdi)
        .set i, 0
        .rept 32
        store_zmm %i
        .set i, i+1
        .endr
        .set i, 1
        .rept 7
        store_k %i
        .set i, i+1
        .endr
        pop %r15
        pop %r14
        pop %r13
        pop %r12
        pop %rbp
        pop %rbx
        vzeroupper
        ret

        .section .note.GNU-stack, "", @progbits
