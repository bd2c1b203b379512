// A rank with a very short loop that stores nothing: THREADS threads sum N values of their own, over and over.
// recovery_puppet THREADS N PASSES; PASSES 0: until SIGTERM; else the same figures are computed without threads. Prints what
// lab_puppet prints: where the two loops are (the sum, and one that stores), at the end passes and a checksum.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
