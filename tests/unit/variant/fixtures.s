# Listing of the bytes in fixtures.h (AT&T order); made once with: as fixtures.s
svdcmp:
    movaps (%rax,%rcx,8),%xmm4
    movaps 0x10(%rax,%rcx,8),%xmm5
    divpd %xmm1,%xmm4
    divpd %xmm1,%xmm5
    movaps 0x20(%rax,%rcx,8),%xmm6
    movaps 0x30(%rax,%rcx,8),%xmm7
    divpd %xmm1,%xmm6
    divpd %xmm1,%xmm7
    movaps %xmm4,(%rax,%rcx,8)
    mulpd %xmm4,%xmm4
    movaps %xmm5,0x10(%rax,%rcx,8)
    mulpd %xmm5,%xmm5
    addpd %xmm4,%xmm3
    addpd %xmm5,%xmm2
    movaps %xmm6,0x20(%rax,%rcx,8)
    mulpd %xmm6,%xmm6
    movaps %xmm7,0x30(%rax,%rcx,8)
    add $8,%rcx
    mulpd %xmm7,%xmm7
    addpd %xmm6,%xmm3
    addpd %xmm7,%xmm2
    cmp %r14,%rcx
    jb svdcmp
groups:
    movss (%rdi,%r8,4),%xmm0
    addss 12(%rdi,%r8,4),%xmm0
    addss 24(%rdi,%r8,4),%xmm0
    movss %xmm0,12(%rdx,%r8,4)
    inc %r8
    cmp %r9,%r8
    jb groups
divide:
    vmovupd 0x20(%rax,%rcx,8),%ymm3
    vdivpd %ymm0,%ymm3,%ymm7
    vmovupd %ymm7,(%rdx,%rcx,8)
    add $4,%rcx
    cmp %r14,%rcx
    jb divide
merge:
    vmovsd (%rax,%rcx,8),%xmm1
    vmovhpd 8(%rax,%rcx,8),%xmm6,%xmm2
    vaddsd %xmm2,%xmm1,%xmm3
    vmovsd %xmm3,(%rdx,%rcx,8)
    vmulsd 16(%rax,%rcx,8),%xmm3,%xmm2
    vmovsd %xmm2,8(%rdx,%rcx,8)
    inc %rcx
    cmp %r14,%rcx
    jb merge
chase:
    movsd 8(%rax),%xmm1
    addsd %xmm1,%xmm0
    mov (%rax),%rax
    dec %rcx
    jnz chase
while:
    addsd 8(%rax),%xmm0
    mov (%rax),%rax
    test %rax,%rax
    jnz while
indexed:
    movslq (%rsi,%rcx,4),%rdx
    movsd (%rdi,%rdx,8),%xmm1
    addsd %xmm1,%xmm0
    movsd %xmm0,(%rbx,%rdx,8)
    inc %rcx
    cmp %r8,%rcx
    jb indexed
triad:
    vmovupd (%rdx,%r15,8),%ymm4
    vfmadd213pd (%rcx,%r15,8),%ymm0,%ymm4
    vmovupd %ymm4,(%rax,%r15,8)
    add $4,%r15
    cmp %r12,%r15
    jb triad
bound:
    movsd (%rsi,%rcx,8),%xmm1
    movsd %xmm1,(%rdi,%rcx,8)
    inc %rcx
    cmp 8(%rbx),%rcx
    jb bound
reuse:
    vmulpd %ymm1,%ymm0,%ymm2
    vmovupd %ymm2,(%rax,%rcx,8)
    vmovupd (%rdx,%rcx,8),%ymm2
    vmovupd %ymm2,(%rbx,%rcx,8)
    add $4,%rcx
    cmp %r14,%rcx
    jb reuse
