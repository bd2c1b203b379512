// Two hot loops: one that can be copied, one that cannot, because it calls a function through a pointer in every pass.
// Usage: two_fates SECONDS both|calls
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N 4096

static double a[N], b[N], c[N];

static double WallSeconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((noipa)) static void Triad(void) {
  for (int i = 0; i < N; ++i) {  // LOOP triad begin
    a[i] = b[i] + 0.5 * c[i];
  }  // LOOP triad end
}

__attribute__((noipa)) static double Twice(double x) { return x + x; }
static double (*volatile function)(double) = Twice;

// Enough work of its own that samples fall into the loop, not only into what it calls.
__attribute__((noipa)) static double Calls(void) {
  double sum = 0;
  double (*twice)(double) = function;
  for (int i = 0; i < N; ++i) {  // LOOP calls begin
    const double x = b[i] / (c[i] + 1.0);
    sum += twice(x) / (x + 2.0);
  }  // LOOP calls end
  return sum;
}

int main(int argc, char** argv) {
  const double end = WallSeconds() + (argc > 1 ? atof(argv[1]) : 10);
  const int both = argc < 3 || strcmp(argv[2], "both") == 0;
  for (int i = 0; i < N; ++i) b[i] = 1 + i % 7, c[i] = i % 13;
  const double expected = Calls();
  int wrong = 0;
  while (WallSeconds() < end) {
    for (int k = 0; k < 16 * both; ++k) Triad();
    wrong |= Calls() != expected || (both && a[N - 1] != b[N - 1] + 0.5 * c[N - 1]);
  }
  printf("{\"wrong\": %d}\n", wrong);
  return wrong;
}
