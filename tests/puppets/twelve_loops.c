// Twelve hot loops of equal weight, of several natures and sizes up to 16 MB a thread, one after the other until SIGTERM.
// Usage: twelve_loops [THREADS]
#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t over;
static void End(int signal) { over = signal; }

typedef struct {
  double *a, *b;
  long n;
} Data;

#define LOOP(name, body)                                       \
  __attribute__((noinline)) static double name(Data d) {       \
    double *restrict a = d.a, *restrict b = d.b, s = 0;        \
    for (long i = 0; i < d.n; ++i) { body; }                   \
    return s;                                                  \
  }

LOOP(Copy, a[i] = b[i])
LOOP(Scale, a[i] = 0.5 * b[i])
LOOP(Add, a[i] = a[i] * 0.25 + b[i])
LOOP(Sum, s += b[i])
LOOP(Dot, s += a[i] * b[i])
LOOP(Divide, a[i] = b[i] / (b[i] + 3.0))
LOOP(Root, a[i] = sqrt(b[i]))
LOOP(Polynomial, a[i] = ((b[i] * 0.1 + 0.2) * b[i] + 0.3) * b[i] + 0.4)
LOOP(Clip, a[i] = b[i] > 1.5 ? 1.5 : b[i])
LOOP(Norm, s += b[i] * b[i] / (1.0 + b[i]))
LOOP(Blend, a[i] = b[i] * b[i] + 1.0 / (2.0 + b[i]))
LOOP(Stride, a[i] = b[(i * 8) % d.n])

typedef double (*Kernel)(Data);
static const Kernel kernels[12] = {Copy, Scale, Add, Sum, Dot, Divide, Root, Polynomial, Clip, Norm, Blend, Stride};
// Bytes of both arrays together: within L1, L2, and beyond.
static const long sizes[12] = {16 << 20, 1 << 20, 16 << 10, 16 << 20, 1 << 20, 16 << 10,
                               16 << 20, 16 << 10, 1 << 20, 16 << 20, 1 << 20, 16 << 20};

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 1;
  signal(SIGTERM, End);
  double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
  {
    Data data[12];
    for (int k = 0; k < 12; ++k) {
      data[k].n = sizes[k] / 16;
      data[k].a = aligned_alloc(64, data[k].n * 8);
      data[k].b = aligned_alloc(64, data[k].n * 8);
      for (long i = 0; i < data[k].n; ++i) data[k].a[i] = data[k].b[i] = 1.0 + (double)(i % 5) / 4;
    }
    int go = 1;
    while (go) {
      for (int k = 0; k < 12; ++k) {
        // About as long for each: none of them must fall out of the hot set.
        const double end = omp_get_wtime() + 0.02;
        do total += kernels[k](data[k]);
        while (threads == 1 && omp_get_wtime() < end);
#pragma omp barrier
      }
#pragma omp single copyprivate(go)
      go = !over;
    }
  }
  printf("{\"total\": %.17g}\n", total);
}
