// One thread computes alone for most of the time while its team waits; then all of them divide for a moment. Then the C library copies: work,
// not waiting.
// Truth: the parts of the elapsed time, by the program's own clock, as one line of JSON at the end.
// serial_part SECONDS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kCount = 200000, kAlone = 10, kBytes = 32 << 20 };

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((noinline)) static void Serial(double* a, const double* b, const double* c) {
  for (int i = 0; i < kCount; i++) {  // LOOP serial begin
    a[i] = b[i] / (c[i] + 1.5);
  }  // LOOP serial end
}

__attribute__((noinline)) static void Parallel(double* b, const double* c) {
#pragma omp parallel for
  for (int i = 0; i < kCount; i++) {  // LOOP parallel begin
    b[i] = 1.0 + c[i] / (b[i] + 1.0);
  }  // LOOP parallel end
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 10;
  double* a = malloc(kCount * sizeof *a);
  double* b = malloc(kCount * sizeof *b);
  double* c = malloc(kCount * sizeof *c);
  char* from = malloc(kBytes);
  char* to = malloc(kBytes);
  if (a == NULL || b == NULL || c == NULL || from == NULL || to == NULL) return 1;
  memset(from, 1, kBytes);
  for (int i = 0; i < kCount; i++) {
    a[i] = 0;
    b[i] = i % 7 + 1;
    c[i] = i % 5;
  }
  double serial = 0, parallel = 0, library = 0;
  const double end = Now() + seconds;
  while (Now() < end) {
    double begin = Now();
    for (int r = 0; r < kAlone; r++) Serial(a, b, c);
    serial += Now() - begin;
    begin = Now();
    Parallel(b, c);
    parallel += Now() - begin;
    begin = Now();
    memcpy(to, from, kBytes / 16);
    library += Now() - begin;
  }
  const double all = serial + parallel + library;
  printf("{\"serial\": %.4f, \"parallel\": %.4f, \"library\": %.4f, \"check\": %.17g}\n", serial / all,
         parallel / all, library / all, a[3] + b[3] + to[77]);
  return 0;
}
