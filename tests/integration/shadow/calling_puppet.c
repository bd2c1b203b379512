// A rank whose loops call a leaf in every pass, one its own and one libm's log (or, with CALLEE_EXP, exp, which has a frame and calls), and
// which looks at its stack in a timer's handler meanwhile.
// calling_puppet N PASSES; PASSES 0: until SIGTERM. Prints where the loops are, at the end passes and a checksum. Exit status 9: a
// thread that was interrupted in the leaf was not seen to have been called by the loop; 8: an error of libm got lost.
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#ifdef CALLEE_EXP
#define CALLEE "exp"
enum { kFirstError = ERANGE, kSecondError = ERANGE };
static const double kFirstRare = 1000, kSecondRare = -1000;
#else
#define CALLEE "log"
enum { kFirstError = EDOM, kSecondError = ERANGE };
static const double kFirstRare = -1, kSecondRare = 0;
#endif

void apply(double* a, const double* b, const double* c, long n);
void logs(double* a, const double* b, long n);
extern char apply_header[], apply_exit[], apply_end[], leaf[], leaf_end[];
extern char logs_header[], logs_exit[], logs_end[];
__asm__(
    ".text\n.balign 64\n.type leaf,@function\n"
    "leaf:\n"
    "  mulsd %xmm0,%xmm0\n"
    "  movsd %xmm0,-120(%rsp)\n"  // the last eight bytes that a copy can hold: signals leave them alone
    "  addsd (%r8),%xmm0\n"
    "  divsd %xmm2,%xmm0\n"
    "  addsd -120(%rsp),%xmm0\n"
    "  ret\n"
    "leaf_end:\n"
    ".size leaf,.-leaf\n"
    ".balign 64\n.globl apply, apply_header, apply_exit, apply_end\n.type apply,@function\n"
    "apply:\n"
    "  sub $8,%rsp\n"
    "  xor %eax,%eax\n"
    "  movsd apply_divisor(%rip),%xmm2\n"
    "  mov %rdx,%r8\n"
    "apply_header:\n1:\n"
    "  movsd (%rsi,%rax,8),%xmm0\n"
    "  call leaf\n"
    "  movsd %xmm0,(%rdi,%rax,8)\n"
    "  add $8,%r8\n"
    "  inc %rax\n"
    "  cmp %rcx,%rax\n"
    "  jne 1b\n"
    "apply_exit:\n"
    "  add $8,%rsp\n"
    "  ret\n"
    "apply_end:\n"
    ".size apply,.-apply\n"
    ".balign 64\n.globl logs, logs_header, logs_exit, logs_end\n.type logs,@function\n"
    "logs:\n"
    "  push %rbx\n  push %rbp\n  push %r12\n"
    "  mov %rdi,%rbx\n"
    "  mov %rsi,%rbp\n"
    "  lea (%rsi,%rdx,8),%r12\n"
    "logs_header:\n2:\n"
    "  movsd (%rbp),%xmm0\n"
    "  call " CALLEE "@PLT\n"
    "  addsd (%rbx),%xmm0\n"
    "  movsd %xmm0,(%rbx)\n"
    "  add $8,%rbx\n"
    "  add $8,%rbp\n"
    "  cmp %r12,%rbp\n"
    "  jne 2b\n"
    "logs_exit:\n"
    "  pop %r12\n  pop %rbp\n  pop %rbx\n"
    "  ret\n"
    "logs_end:\n"
    ".size logs,.-logs\n"
    ".section .rodata\n.balign 8\napply_divisor: .double 3.25\n.text\n");

static volatile sig_atomic_t stop_asked;
static long in_leaf, lost;

static void on_term(int s) {
  (void)s;
  stop_asked = 1;
}

// In the leaf's own text the word on the stack is where the loop goes on.
static void on_timer(int s, siginfo_t* info, void* context) {
  (void)s, (void)info;
  const greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const char* pc = (const char*)registers[REG_RIP];
  if (pc < leaf || pc >= leaf_end) return;
  const char* back = *(const char**)registers[REG_RSP];
  ++in_leaf;
  lost += back < apply_header || back >= apply_exit;
}

static uint64_t checksum(const double* a, const double* b, long n) {
  uint64_t sum = 1469598103934665603ull;
  for (long i = 0; i < n; ++i) {
    uint64_t bits[2];
    memcpy(&bits[0], &a[i], 8);
    memcpy(&bits[1], &b[i], 8);
    sum = ((sum ^ bits[0]) * 1099511628211ull ^ bits[1]) * 1099511628211ull;
  }
  return sum;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const long n = atol(argv[1]), wanted = atol(argv[2]);
  struct sigaction term = {.sa_handler = on_term};
  sigaction(SIGTERM, &term, 0);
  struct sigaction timer = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGPROF, &timer, 0);
  const struct itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_PROF, &often, 0);
  double *a = calloc((size_t)n, 8), *b = malloc((size_t)n * 8), *c = malloc((size_t)n * 8),
         *d = malloc((size_t)n * 8);
  for (long i = 0; i < n; ++i) b[i] = (double)i, c[i] = (double)(i % 7), d[i] = (double)(1 + i % 9);
  logs(a, d, n);  // binds the call
  printf("%lx %lx %lx %lx ", (long)apply, (long)apply_header, (long)apply_exit, (long)apply_end);
  printf("%lx %lx %lx %lx\n", (long)logs, (long)logs_header, (long)logs_exit, (long)logs_end);
  fflush(stdout);
  long passes = 0, wrong = 0;
  for (; wanted ? passes < wanted : !stop_asked; ++passes) {
    apply(a, b, c, n);
    // Rare values in few passes only: of those that are drawn for a shadow, most have none.
    const long kind = passes % 15;
    d[17] = kind == 0 ? kFirstRare : kind == 5 ? kSecondRare : kind == 10 ? 5e-324 : 2;
    errno = 0;
    logs(a, d, n);
    wrong += errno != (kind == 0 ? kFirstError : kind == 5 ? kSecondError : 0);
    b[passes % n] = a[(passes * 7 + 1) % n] * 0.5 + 1;
  }
  printf("%ld %016lx\n", passes, checksum(a, b, n));
  return lost > 0 ? 9 : wrong > 0 ? 8 : 0;
}
