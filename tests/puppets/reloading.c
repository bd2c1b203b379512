// reloading LIBRARY LIBRARY - opens one library after the other, each in the place of the one before, runs its loop for a while
// and looks whether it computed what it should. Until SIGTERM; then a line of JSON.
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kN = 4000 };

static volatile sig_atomic_t stop_asked;
static double a[kN], b[kN], c[kN];

static void OnTerm(int number) {
  (void)number;
  stop_asked = 1;
}

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Elements that are not what a library whose sign is this one makes of them.
static long Wrong(double sign) {
  long wrong = 0;
  for (long i = 0; i < kN; ++i) wrong += a[i] != b[i] * 3.0 + sign * c[i];
  return wrong;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  signal(SIGTERM, OnTerm);
  for (long i = 0; i < kN; ++i) {
    b[i] = (double)(i % 97);
    c[i] = (double)(i % 31) + 1;
  }
  long loads = 0, same_place = 0, passes = 0, wrong = 0;
  uintptr_t place = 0;
  unsigned random = 1;
  while (!stop_asked) {
    const int which = (int)(loads++ % 2);
    void* library = dlopen(argv[1 + which], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 3;
    }
    void (*work)(double*, const double*, const double*, long);
    *(void**)&work = dlsym(library, "ReloadedWork");
    if (work == NULL) return 3;
    same_place += (uintptr_t)work == place;
    place = (uintptr_t)work;
    random = random * 1103515245u + 12345u;
    const double end = Now() + 0.02 + 0.4 * (double)(random >> 16 & 1023) / 1024;
    while (Now() < end && !stop_asked) {
      for (int i = 0; i < 50; ++i, ++passes) work(a, b, c, kN);
      wrong += Wrong(which == 0 ? 1 : -1);
    }
    dlclose(library);
  }
  printf("{\"loads\": %ld, \"same_place\": %ld, \"passes\": %ld, \"wrong\": %ld}\n", loads,
         same_place, passes, wrong);
  return wrong == 0 ? 0 : 1;
}
