/* Is this machine ours alone right now? Two bound threads time the same short pieces of work over and over: loads from an array
 * that fills two thirds of a first level, the same loads from a few lines of it, and a chase through 5 MB. Cores and caches that
 * others use, too, show as pieces that take longer than others, and as an array that the first level does not hold.
 * Prints JSON, of the worse thread: how much longer the slow pieces (90 % quantile) take than the fast ones (10 %), how much
 * longer the array takes than its few lines (medians), and the median piece of loads in ticks. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

enum { kPieces = 4000, kDoubles = 4096, kFew = 256, kNodes = 80000, kHops = 2000 };

struct probe {
  int cpu;
  double loads, level, chase, ticks;
};

static int less(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double quantile(double* ticks, double q) {
  qsort(ticks, kPieces, sizeof *ticks, less);
  return ticks[(int)(q * (kPieces - 1))];
}

static double spread(double* ticks) { return quantile(ticks, 0.9) / quantile(ticks, 0.1); }

/* As many loads of the first `doubles` of the array as it has. */
static double time_loads(const double* array, int doubles) {
  const unsigned long long begin = __rdtsc();
  for (int done = 0; done < 32 * kDoubles; done += doubles) {
    for (int i = 0; i < doubles; i += 16) {
      __asm__ volatile(
          "movups (%0), %%xmm0; movups 16(%0), %%xmm1; movups 32(%0), %%xmm2; movups 48(%0), %%xmm3;"
          "movups 64(%0), %%xmm4; movups 80(%0), %%xmm5; movups 96(%0), %%xmm6; movups 112(%0), %%xmm7"
          :
          : "r"(array + i)
          : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "memory");
    }
  }
  return (double)(__rdtsc() - begin);
}

static double time_chase(const long* next, long* at) {
  const unsigned long long begin = __rdtsc();
  for (int i = 0; i < kHops; i++) *at = next[*at * 8];
  return (double)(__rdtsc() - begin);
}

static void* run(void* argument) {
  struct probe* probe = argument;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(probe->cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
  double* array = aligned_alloc(64, kDoubles * sizeof *array);
  long* next = aligned_alloc(64, kNodes * 64L);
  long* order = malloc(kNodes * sizeof *order);
  for (int i = 0; i < kDoubles; i++) array[i] = i;
  unsigned seed = 1;
  for (long i = 0; i < kNodes; i++) order[i] = i;
  for (long i = kNodes - 1; i > 0; i--) {
    const long j = rand_r(&seed) % (i + 1), kept = order[i];
    order[i] = order[j], order[j] = kept;
  }
  for (long i = 0; i < kNodes; i++) next[order[i] * 8] = order[(i + 1) % kNodes];
  double loads[kPieces], few[kPieces], chase[kPieces];
  long at = 0;
  for (int i = 0; i < kNodes / kHops; i++) time_chase(next, &at);
  for (int i = 0; i < kPieces; i++) chase[i] = time_chase(next, &at);
  for (int i = 0; i < kPieces; i++) {
    loads[i] = time_loads(array, kDoubles);
    few[i] = time_loads(array, kFew);
  }
  probe->loads = spread(loads);
  probe->ticks = quantile(loads, 0.5);
  probe->level = quantile(loads, 0.5) / quantile(few, 0.5);
  probe->chase = spread(chase);
  free(array), free(next), free(order);
  return NULL;
}

static double worse(double a, double b) { return a > b ? a : b; }

int main(void) {
  struct probe probes[2] = {{0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    if (pthread_create(&threads[i], NULL, run, &probes[i]) != 0) return 1;
  }
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("{\"loads\": %.3f, \"level\": %.3f, \"chase\": %.3f, \"ticks\": %.0f}\n",
         worse(probes[0].loads, probes[1].loads), worse(probes[0].level, probes[1].level),
         worse(probes[0].chase, probes[1].chase), worse(probes[0].ticks, probes[1].ticks));
  return 0;
}
