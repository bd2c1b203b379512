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

# A frame, a saved register, an address in the frame handed on to a function that it calls; that one leaves where x is large, with two
# return addresses on the stack.
function far_frame
    push %rbx
    sub $32, %rsp
    movq %xmm0, %rbx
    movsd %xmm0, 8(%rsp)
    lea 20(%rsp), %rdi
    call inner
    mov 20(%rsp), %eax
    cvtsi2sd %eax, %xmm1
    addsd 8(%rsp), %xmm1
    movq %rbx, %xmm2
    mulsd %xmm2, %xmm1
    addsd %xmm1, %xmm0
    add $32, %rsp
    pop %rbx
    ret
    .size far_frame, .-far_frame

    .type inner, @function
inner:
    movsd %xmm0, -16(%rsp)
    ucomisd limit(%rip), %xmm0
    ja rare_inner
    movl $3, (%rdi)
    addsd -16(%rsp), %xmm0
    ret
    .size inner, .-inner

# More than signals leave alone.
function far_large
    sub $136, %rsp
    movsd %xmm0, 8(%rsp)
    addsd 8(%rsp), %xmm0
    add $136, %rsp
    ret
    .size far_large, .-far_large

function far_flags
    sub $8, %rsp
    js 1f
    addsd %xmm0, %xmm0
1:  add $8, %rsp
    ret
    .size far_flags, .-far_flags

function far_caller
    mov (%rsp), %rax
    cvtsi2sd %rax, %xmm0
    ret
    .size far_caller, .-far_caller

function far_value
    cvtsi2sd %rsp, %xmm0
    ret
    .size far_value, .-far_value

# Nobody calls these two: how deep the stack is depends on the way.
function far_depths
    ucomisd limit(%rip), %xmm0
    ja 1f
    push %rax
1:  addsd %xmm0, %xmm0
    ret
    .size far_depths, .-far_depths

function far_endless
    sub $8, %rsp
    call far_endless
    add $8, %rsp
    ret
    .size far_endless, .-far_endless

# What is on the stack when it comes is where it was called from.
    .fill 8192, 1, 0xcc
rare_inner:
    push %rbx
    mov far_left@GOTPCREL(%rip), %rbx
    incq (%rbx)
    mov 56(%rsp), %rax  # behind inner's own, the frame of 32 and a register
    mov far_back@GOTPCREL(%rip), %rbx
    mov %rax, (%rbx)
    pop %rbx
    movl $5, (%rdi)
    subsd -16(%rsp), %xmm0
    addsd limit(%rip), %xmm0
    ret
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
