// Two phases, each with a hot loop of its own: first only the triad runs, then only the divisions.
// Usage: phases SECONDS_OF_THE_FIRST SECONDS_IN_ALL
#include <stdio.h>
#include <stdlib.h>
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

__attribute__((noipa)) static double Divide(void) {
  double sum = 0;
  for (int i = 0; i < N; ++i) {  // LOOP divide begin
    sum += b[i] / (c[i] + 1.0) / (c[i] + 2.0);
  }  // LOOP divide end
  return sum;
}

int main(int argc, char** argv) {
  const double begin = WallSeconds();
  const double first = begin + (argc > 1 ? atof(argv[1]) : 10);
  const double end = begin + (argc > 2 ? atof(argv[2]) : 30);
  for (int i = 0; i < N; ++i) b[i] = 1 + i % 7, c[i] = i % 13;
  const double expected = Divide();
  int wrong = 0;
  while (WallSeconds() < first) {
    for (int k = 0; k < 16; ++k) Triad();
    wrong |= a[N - 1] != b[N - 1] + 0.5 * c[N - 1];
  }
  while (WallSeconds() < end) wrong |= Divide() != expected;
  printf("{\"wrong\": %d}\n", wrong);
  return wrong;
}
