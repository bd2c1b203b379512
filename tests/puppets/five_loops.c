// Five loops with known shares of the CPU time: each thread runs loop k until its slot of the round is used up.
// Usage: five_loops SECONDS [SLOT_SCALE_PERCENT]      MPI x OpenMP; prints the measured truth as one JSON line per rank.
#include <mpi.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N 4096
#define LOOPS 5
static const double kShare[LOOPS] = {0.35, 0.25, 0.20, 0.12, 0.08};

typedef struct {
  double a[N], b[N], c[N];
  uint32_t index[N];
  uint64_t bits[N];
} Work;

static double ThreadSeconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double WallSeconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// A call lasts some 100 us: far below its slot, far above the two readings of the clock around it.
#define REPEAT 64

__attribute__((noinline)) static void Triad(Work* w) {
  for (int r = 0; r < REPEAT; ++r) {
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < N; ++i) {  // LOOP triad begin
      w->a[i] = w->b[i] + 0.5 * w->c[i];
    }  // LOOP triad end
  }
}

__attribute__((noinline)) static void Divide(Work* w) {
  for (int r = 0; r < REPEAT / 4; ++r) {
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < N; ++i) {  // LOOP divide begin
      w->b[i] = 1.0 + 1.0 / (w->b[i] + 2.0);
    }  // LOOP divide end
  }
}

__attribute__((noinline)) static double Gather(const Work* w) {
  double sum = 0;
  for (int r = 0; r < REPEAT / 2; ++r) {
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < N; ++i) {  // LOOP gather begin
      sum += w->c[w->index[i]];
    }  // LOOP gather end
  }
  return sum;
}

__attribute__((noinline)) static void Hash(Work* w) {
  for (int r = 0; r < REPEAT / 2; ++r) {
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < N; ++i) {  // LOOP hash begin
      uint64_t x = w->bits[i];
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      w->bits[i] = x;
    }  // LOOP hash end
  }
}

static void Fill(Work* w, unsigned seed) {
  for (int i = 0; i < N; ++i) {
    w->a[i] = 0;
    w->b[i] = 1 + (double)(i % 7);
    w->c[i] = (double)(i % 13);
    w->index[i] = (uint32_t)((i * 769u + seed) % N);
    w->bits[i] = 88172645463325252ull + (uint64_t)i * 31 + seed;
  }
}

int main(int argc, char** argv) {
  int provided, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double seconds = argc > 1 ? atof(argv[1]) : 10;
  const double end = WallSeconds() + seconds;
  double truth[LOOPS] = {0};
  uint64_t check = 0;
#pragma omp parallel reduction(+ : truth[:LOOPS]) reduction(^ : check)
  {
    Work* w = malloc(sizeof(Work));
    Fill(w, (unsigned)(rank * 64 + omp_get_thread_num()));
    double sum = 0;
    while (WallSeconds() < end) {
      for (int k = 0; k < LOOPS; ++k) {
        const double begin = ThreadSeconds();
        // 23.7 ms a round: no multiple of any sampling period in use, so that samples do not keep one phase.
        const double stop = begin + 0.0237 * kShare[k];
        double now = begin;
        while (now < stop) {
          switch (k) {
            case 0: Triad(w); break;
            case 1: Divide(w); break;
            case 2: sum += Gather(w); break;
            case 3: Hash(w); break;
            default: {
              double x = 1.0 + sum * 1e-300;
              for (int i = 0; i < 16 * N; ++i) {  // LOOP chain begin
                x = x * 0.999999 + 1e-6;
              }  // LOOP chain end
              sum += x * 1e-9;
            }
          }
          now = ThreadSeconds();
        }
        truth[k] += now - begin;
      }
    }
    for (int i = 0; i < N; ++i) check ^= w->bits[i];
    check ^= (uint64_t)(sum != sum);
    free(w);
  }
  double total = 0;
  for (int k = 0; k < LOOPS; ++k) total += truth[k];
  printf("{\"rank\": %d, \"triad\": %.4f, \"divide\": %.4f, \"gather\": %.4f, \"hash\": %.4f, \"chain\": %.4f, "
         "\"cpu_seconds\": %.3f, \"check\": \"%016llx\"}\n",
         rank, truth[0] / total, truth[1] / total, truth[2] / total, truth[3] / total, truth[4] / total, total,
         (unsigned long long)check);
  MPI_Finalize();
  return 0;
}
