// Two loops that call one function, in which nearly all of their time goes, and one that does its own work. What a loop calls can
// only be told from call paths: there is one function, called from both. Runs for so many seconds and prints
// {"shares": {"often":..., "seldom":..., "own":...}, "check":...}, by its own clock.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kOften = 30000, kSeldom = 10000, kOwn = 16000 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// No loop, and its arithmetic is one chain.
__attribute__((noinline, noclone)) static double bend(double x) {
  double y = 1 / (1 + x);
  y = (x + y) / (2 + y);
  y = (x + y) / (3 + y);
  y = (x + y) / (4 + y);
  return y;
}

__attribute__((noinline, noclone)) static void often(double* a) {
  for (int i = 0; i < kOften; ++i) a[i] = bend(a[i]);  // LOOP often
}

__attribute__((noinline, noclone)) static void seldom(double* a) {
  for (int i = 0; i < kSeldom; ++i) a[i] = bend(a[i]) + 0.5;  // LOOP seldom
}

__attribute__((noinline, noclone)) static double own(const double* a) {
  double sum = 1;
  for (int i = 0; i < kOwn; ++i) sum = a[i] / (1 + sum);  // LOOP own
  return sum;
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 10;
  double* a = calloc(kOften + kSeldom, sizeof *a);
  double spent[3] = {0, 0, 0}, check = 0;
  const double begin = now();
  double t = begin;
  while (t - begin < seconds) {
    often(a);
    const double t1 = now();
    seldom(a + kOften);
    const double t2 = now();
    check += own(a);
    const double t3 = now();
    spent[0] += t1 - t;
    spent[1] += t2 - t1;
    spent[2] += t3 - t2;
    t = t3;
  }
  const double all = spent[0] + spent[1] + spent[2];
  printf("{\"shares\": {\"often\": %.4f, \"seldom\": %.4f, \"own\": %.4f}, \"check\": %.17g}\n", spent[0] / all,
         spent[1] / all, spent[2] / all, check);
  return 0;
}
