// A rank for benchmarks: THREADS threads enter a[i] = b[i] * s + c[i] of TRIP iterations again and again, each on arrays of its
// own, out of BYTES of private memory in 4 KiB or huge pages. Ends with its parent, by a signal, or after 15 minutes.
// bench_rank THREADS TRIP BYTES 4k|huge. Prints where the loop and its bench_control are: low header exit high control bytes.
#define _GNU_SOURCE
#include "bench_rank.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void triad(double* a, const double* b, const double* c, long n);
extern char triad_header[], triad_exit[], triad_end[];
__asm__(
    ".text\n.balign 64\n.globl triad, triad_header, triad_exit, triad_end\n.type triad,@function\n"
    "triad:\n"
    "  xor %eax,%eax\n"
    "triad_header:\n1:\n"
    "  movsd (%rsi,%rax,8),%xmm0\n"
    "  mulsd triad_scale(%rip),%xmm0\n"
    "  addsd (%rdx,%rax,8),%xmm0\n"
    "  movsd %xmm0,(%rdi,%rax,8)\n"
    "  inc %rax\n"
    "  cmp %rcx,%rax\n"
    "  jne 1b\n"
    "triad_exit:\n"
    "  ret\n"
    "triad_end:\n"
    ".size triad,.-triad\n"
    ".section .rodata\n.balign 8\ntriad_scale: .double 0.75\n.text\n");

enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

static struct bench_control control __attribute__((aligned(4096)));
static long threads, trip, batch;
static uint64_t bytes, array_bytes;
static char* memory;

static int64_t now(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static int64_t faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// Shifted against each other: a store must not look like the address of a later load (low 12 bits).
static double* array(long thread, long which) {
  return (double*)(memory + (uint64_t)(3 * thread + which) * array_bytes + (uint64_t)which * 1024);
}

static void sweep(uint64_t asked) {
  uint64_t until = control.sweep_bytes < bytes ? control.sweep_bytes : bytes;
  int64_t before = faults(), begin = now();
  for (uint64_t at = 0; at < until; at += PAGE) {
    volatile char* byte = memory + at;
    *byte = *byte;
  }
  control.sweep_ns = now() - begin;
  control.sweep_faults = faults() - before;
  __atomic_store_n(&control.sweep_done, asked, __ATOMIC_RELEASE);
}

static void publish(uint64_t entries) {
  int64_t ns = now();
  __atomic_store_n(&control.reading.entries, entries, __ATOMIC_RELAXED);
  __atomic_store_n(&control.reading.ns, ns, __ATOMIC_RELAXED);
  __atomic_store_n(&control.reading.check, entries ^ (uint64_t)ns, __ATOMIC_RELEASE);
  uint64_t asked = __atomic_load_n(&control.sweep_asked, __ATOMIC_ACQUIRE);
  if (asked != control.sweep_done) sweep(asked);
}

// A loop so long that its entries can be told apart.
static void timed_pass(double* a, const double* b, const double* c) {
  struct bench_pass* pass = &control.pass[control.passes % BENCH_PASSES];
  int64_t before = faults(), begin = now();
  triad(a, b, c, trip);
  pass->end_ns = now();
  pass->begin_ns = begin;
  pass->faults = faults() - before;
  __atomic_store_n(&control.passes, control.passes + 1, __ATOMIC_RELEASE);
}

static void* run(void* p) {
  long t = (long)p;
  double *a = array(t, 0), *b = array(t, 1), *c = array(t, 2);
  for (uint64_t entries = 0;;) {
    if (batch == 1 && t == 0) {
      timed_pass(a, b, c);
    } else {
      for (long i = 0; i < batch; ++i) triad(a, b, c, trip);
    }
    entries += (uint64_t)batch;
    if (t == 0) publish(entries);
  }
  return 0;
}

static int get_memory(int huge) {
  array_bytes = ((uint64_t)trip * 8 + 4 * 1024 + PAGE - 1) / PAGE * PAGE;
  uint64_t least = (uint64_t)threads * 3 * array_bytes;
  bytes = ((bytes < least ? least : bytes) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  char* got = mmap(0, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return 0;
  memory = (char*)(((uintptr_t)got + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
  madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  for (uint64_t at = 0; at < bytes; at += PAGE) memory[at] = 1;
  for (long t = 0; t < threads; ++t) {
    for (long i = 0; i < trip; ++i) array(t, 1)[i] = (double)i, array(t, 2)[i] = (double)(t + 1);
  }
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(900);
  threads = atol(argv[1]);
  trip = atol(argv[2]);
  bytes = strtoull(argv[3], 0, 10);
  if (threads < 1 || threads > 64 || trip < 1) return 2;
  batch = trip < 100000 ? 100000 / trip : 1;
  if (!get_memory(!strcmp(argv[4], "huge"))) return 4;
  printf("%lx %lx %lx %lx %lx %lx\n", (long)triad, (long)triad_header, (long)triad_exit,
         (long)triad_end, (long)&control, (long)bytes);
  fflush(stdout);
  for (long t = 1; t < threads; ++t) {
    pthread_t other;
    if (pthread_create(&other, 0, run, (void*)t) != 0) return 5;
  }
  run(0);
}
