// A rank with a very short loop that stores nothing: THREADS threads sum N values of their own, over and over.
// recovery_puppet THREADS N PASSES [jump|end]; PASSES 0: until SIGTERM; else the same figures are computed without threads. Prints
// what lab_puppet prints: where the two loops are (the sum, and one that stores), at the end passes and a checksum. jump, end: see there.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

double sum(const double* values, long n);
extern char sum_header[], sum_exit[], sum_end[];
void bump(double* c, long n);
extern char bump_header[], bump_exit[], bump_end[];
__asm__(
    ".text\n.balign 64\n.globl sum, sum_header, sum_exit, sum_end\n.type sum,@function\n"
    "sum:\n"
    "  xorpd %xmm0,%xmm0\n"
    "sum_header:\n1:\n"
    "  addsd (%rdi),%xmm0\n"
    "  add $8,%rdi\n"
    "  dec %rsi\n"
    "  jne 1b\n"
    "sum_exit:\n"
    "  ret\n"
    "sum_end:\n"
    ".size sum,.-sum\n"
    ".balign 64\n.globl bump, bump_header, bump_exit, bump_end\n.type bump,@function\n"
    "bump:\n"
    "  xor %eax,%eax\n"
    "bump_header:\n1:\n"
    "  movsd (%rdi,%rax,8),%xmm0\n"
    "  addsd %xmm0,%xmm0\n"
    "  movsd %xmm0,(%rdi,%rax,8)\n"
    "  inc %rax\n"
    "  cmp %rsi,%rax\n"
    "  jne 1b\n"
    "bump_exit:\n"
    "  ret\n"
    "bump_end:\n"
    ".size bump,.-bump\n");

enum { BETWEEN_BARRIERS = 1000, MOST_THREADS = 8 };
static volatile sig_atomic_t stop_asked;
static int threads, all_stop;
static long n, passes_wanted, passes_done;
static pthread_barrier_t barrier;
static double* values[MOST_THREADS];
static uint64_t checks[MOST_THREADS];

static void on_term(int s) {
  (void)s;
  stop_asked = 1;
}

static void step(long t, long pass) {
  const double result = sum(values[t] + pass % 2, n);
  uint64_t bits;
  memcpy(&bits, &result, 8);
  checks[t] = (checks[t] ^ bits) * 1099511628211ull;
  values[t][pass % n] = result / (double)(n + 1) + (double)(pass % 7);
}

static void* run(void* p) {
  const long t = (long)p;
  for (long pass = 0;;) {
    for (int i = 0; i < BETWEEN_BARRIERS; ++i) step(t, pass++);
    pthread_barrier_wait(&barrier);
    if (t == 0) {
      passes_done = pass;
      all_stop = stop_asked || pass == passes_wanted;
    }
    pthread_barrier_wait(&barrier);
    if (all_stop) return 0;
  }
}

enum { SET_GS = 0x1001, GET_GS = 0x1004, PAGE = 4096 };  // arch_prctl(2)
static double* page;
static sigjmp_buf away;

static void on_fault(int s) {
  (void)s;
  mprotect(page, PAGE, PROT_READ | PROT_WRITE);
  siglongjmp(away, 1);
}

static int is_blocked(int s) {
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, 0, &blocked);
  return sigismember(&blocked, s);
}

// Now and then a sum faults, and the handler jumps away with the mask as it is. True when that was out of a copy of perfd's.
static int jump_out(void) {
  sigset_t fault;
  sigemptyset(&fault);
  sigaddset(&fault, SIGSEGV);
  page = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  syscall(SYS_arch_prctl, SET_GS, 0x7654321000);
  signal(SIGSEGV, on_fault);
  volatile int far = 0;
  for (volatile long pass = 1; !stop_asked && !far; ++pass) {
    if (pass % 2000 == 0) mprotect(page, PAGE, PROT_NONE);
    if (sigsetjmp(away, 0) == 0) {
      sum(page, n);
    } else if (is_blocked(SIGTERM)) {
      far = 1;
    } else {
      sigprocmask(SIG_UNBLOCK, &fault, 0);
    }
  }
  return far;
}

// jump: one thread that enters no loop any more when it has jumped out of a copy, and waits until it has everything back. Prints 1
// when it has its signals, and its GS base.
static int jump(void) {
  const int far = jump_out();
  for (int ms = 0; far && is_blocked(SIGTERM) && ms < 30000; ++ms) usleep(1000);
  const int back = far && !is_blocked(SIGTERM);
  for (int ms = 0; back && !stop_asked && ms < 30000; ++ms) usleep(1000);
  unsigned long gs = 0;
  syscall(SYS_arch_prctl, GET_GS, &gs);
  printf("%d %lx\n", back, gs);
  return 0;
}

// end: a thread that ends when it has jumped out of a copy, and then one that goes on until SIGTERM.
static void* jump_and_end(void* unused) {
  (void)unused;
  jump_out();
  return 0;
}
static int end(void) {
  pthread_t thread;
  pthread_create(&thread, 0, jump_and_end, 0);
  pthread_join(thread, 0);
  while (!stop_asked) sum(page, n);
  puts("0 0");
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  threads = atoi(argv[1]);
  n = atol(argv[2]);
  passes_wanted = atol(argv[3]);
  if (threads < 1 || threads > MOST_THREADS || n < 1) return 2;
  struct sigaction action = {.sa_handler = on_term};
  sigaction(SIGTERM, &action, 0);
  for (int t = 0; t < threads; ++t) {
    values[t] = malloc((size_t)(n + 1) * 8);
    for (long i = 0; i <= n; ++i) values[t][i] = (double)(i + t);
  }
  printf("%lx %lx %lx %lx %lx %lx %lx %lx\n", (long)sum, (long)sum_header, (long)sum_exit,
         (long)sum_end, (long)bump, (long)bump_header, (long)bump_exit, (long)bump_end);
  fflush(stdout);
  if (argc > 4) return strcmp(argv[4], "end") == 0 ? end() : jump();
  if (passes_wanted) {
    for (long t = 0; t < threads; ++t) {
      for (long pass = 0; pass < passes_wanted; ++pass) step(t, pass);
    }
    passes_done = passes_wanted;
  } else {
    pthread_barrier_init(&barrier, 0, (unsigned)threads);
    pthread_t other[MOST_THREADS];
    for (long t = 1; t < threads; ++t) pthread_create(&other[t], 0, run, (void*)t);
    run(0);
    for (long t = 1; t < threads; ++t) pthread_join(other[t], 0);
  }
  uint64_t check = 1469598103934665603ull;
  for (int t = 0; t < threads; ++t) check = (check ^ checks[t]) * 1099511628211ull;
  printf("%ld %016lx\n", passes_done, (unsigned long)check);
  return 0;
}
