# Functions of another module, made as those of libm are: constants and a table beside them, rare paths that leave, one that goes on
# through the linkage table. Each adds one to far_left on its rare path, which no copy can hold.
    .text
    .macro function name
    .globl \name
    .type \name, @function
    .balign 16
\name:
    .endm

function far_leaf
    endbr64
    ucomisd limit(%rip), %xmm0
    jp 1f
    ja 1f
    lea table(%rip), %rdx
    cvttsd2si %xmm0, %eax
    and $3, %eax
    mulsd (%rdx,%rax,8), %xmm0
    addsd limit(%rip), %xmm0
    andpd mask(%rip), %xmm0
    ret
1:  mov $7, %edi
    jmp rare
    .size far_leaf, .-far_leaf

function far_chain
    jmp far_leaf@PLT
    .size far_chain, .-far_chain

function far_branch
    ucomisd limit(%rip), %xmm0
    ja rare_branch
    addsd limit(%rip), %xmm0
    ret
    .size far_branch, .-far_branch

function far_writable
    mulsd changing(%rip), %xmm0
    ret
    .size far_writable, .-far_writable

function far_pushes
    push %rbx
    mov $3, %ebx
    cvtsi2sd %ebx, %xmm1
    pop %rbx
    addsd %xmm1, %xmm0
    ret
    .size far_pushes, .-far_pushes

# What is on the stack when it comes is where it was called from.
    .fill 8192, 1, 0xcc
rare_branch:
    mov $5, %edi
    .type rare, @function
rare:
    push %rbx
    mov far_left@GOTPCREL(%rip), %rbx
    incq (%rbx)
    mov 8(%rsp), %rax
    mov far_back@GOTPCREL(%rip), %rbx
    mov %rax, (%rbx)
    pop %rbx
    cvtsi2sd %edi, %xmm1
    divsd %xmm1, %xmm0
    ret
    .size rare, .-rare

    .section .rodata
    .balign 16
mask:   .quad 0x7fffffffffffffff, 0
limit:  .double 3.5
table:  .double 1.5, -2.25, 0.125, 7
    .data
    .balign 8
changing: .double 1.5
    .globl far_left, far_back
    .type far_left, @object
    .type far_back, @object
    .size far_left, 8
    .size far_back, 8
far_left: .quad 0
far_back: .quad 0
    .section .note.GNU-stack,"",@progbits
