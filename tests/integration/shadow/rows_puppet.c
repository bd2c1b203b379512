// A rank whose loop has short instances: a matrix times a vector, a row an instance. rows_puppet THREADS ROWS LENGTH PASSES; PASSES 0:
// until SIGTERM; else the same figures are computed without threads. Prints where the inner loop and the loop around it are; at the end
// passes, a checksum, and the ticks of a row by its own clock: the least of all passes of the first thread.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

void multiply(double* y, const double* a, const double* x, long rows, long length);
extern char row_header[], row_exit[], rows_header[], rows_exit[], multiply_end[];
__asm__(
    ".text\n.balign 64\n.globl multiply, row_header, row_exit, rows_header, rows_exit, multiply_end\n.type multiply,@function\n"
    "multiply:\n"
    "rows_header:\n1:\n"
    "  xor %eax,%eax\n"
    "  pxor %xmm0,%xmm0\n"
    "row_header:\n2:\n"
    "  movsd (%rsi,%rax,8),%xmm1\n"
    "  mulsd (%rdx,%rax,8),%xmm1\n"
    "  addsd %xmm1,%xmm0\n"
    "  inc %rax\n"
    "  cmp %r8,%rax\n"
    "  jne 2b\n"
    "row_exit:\n"
    "  movsd %xmm0,(%rdi)\n"
    "  add $8,%rdi\n"
    "  lea (%rsi,%r8,8),%rsi\n"
    "  dec %rcx\n"
    "  jne 1b\n"
    "rows_exit:\n"
    "  ret\n"
    "multiply_end:\n"
    ".size multiply,.-multiply\n");

static volatile sig_atomic_t stop_asked;
static int threads;
static long rows, length, passes_wanted, passes_of[64];
static double *matrices[64], *xs[64], *ys[64];
static uint64_t least = ~0ull;

static void on_term(int s) {
  (void)s;
  stop_asked = 1;
}

static void pass_of(long t, long pass) {
  const uint64_t begin = __rdtsc();
  multiply(ys[t], matrices[t], xs[t], rows, length);
  const uint64_t ticks = __rdtsc() - begin;
  if (t == 0 && ticks < least) least = ticks;
  xs[t][pass % length] = 1 / (1 + ys[t][pass % rows]);
}

static void* run(void* p) {
  const long t = (long)p;
  for (long pass = 0; passes_wanted ? pass < passes_wanted : !stop_asked; ++pass) {
    pass_of(t, pass);
    passes_of[t] = pass + 1;
  }
  return 0;
}

// Of the first thread: others make as many passes as they happen to.
static uint64_t checksum(void) {
  uint64_t sum = 1469598103934665603ull;
  for (long i = 0; i < rows; ++i) {
    uint64_t bits;
    memcpy(&bits, &ys[0][i], 8);
    sum = (sum ^ bits) * 1099511628211ull;
  }
  return sum;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  threads = atoi(argv[1]);
  rows = atol(argv[2]);
  length = atol(argv[3]);
  passes_wanted = atol(argv[4]);
  struct sigaction action = {.sa_handler = on_term};
  sigaction(SIGTERM, &action, 0);
  for (int t = 0; t < threads; ++t) {
    matrices[t] = malloc((size_t)(rows * length) * 8);
    xs[t] = malloc((size_t)length * 8);
    ys[t] = malloc((size_t)rows * 8);
    for (long i = 0; i < rows * length; ++i) matrices[t][i] = 1.0 / (double)(1 + i % 7);
    for (long i = 0; i < length; ++i) xs[t][i] = (double)(1 + i % 3);
  }
  printf("%lx %lx %lx %lx %lx %lx %lx %lx\n", (long)multiply, (long)row_header, (long)row_exit, (long)multiply_end, (long)multiply,
         (long)rows_header, (long)rows_exit, (long)multiply_end);
  fflush(stdout);
  pthread_t other[64];
  for (long t = 1; t < threads; ++t) pthread_create(&other[t], 0, run, (void*)t);
  run(0);
  for (int t = 1; t < threads; ++t) pthread_join(other[t], 0);
  printf("%ld %016lx %.2f\n", passes_of[0], checksum(), (double)least / (double)rows);
  return 0;
}
