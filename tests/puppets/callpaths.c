// One chain of calls at a time, all the time: the call path of nearly every sample is known.
// Usage: callpaths SECONDS chain            main -> path_a -> path_b -> path_leaf
//        callpaths SECONDS sort             main -> sort_numbers -> qsort of the C library -> compare_numbers
//        callpaths SECONDS plugin FILE      after a second: main -> use_plugin -> plugin_call of FILE -> path_leaf
//        callpaths SECONDS deep DEPTH       main -> path_deep x DEPTH -> path_leaf, each with a frame of 256 bytes
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N 4096
#define NOINLINE __attribute__((noinline))
static double numbers[N];
static volatile double sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// gcc gives a function that calls nothing no frame, even with -fno-omit-frame-pointer.
NOINLINE void tick(void) {
  __asm__ volatile("");
}

NOINLINE void path_leaf(void) {
  double sum = 0;
  for (int round = 0; round < 500; ++round) {
#ifdef LEAF_CALLS
    tick();
#endif
    for (int i = 0; i < N; ++i) sum = sum * 0.999 + numbers[i];
  }
  sink = sum;
}

NOINLINE void path_b(void) {
  path_leaf();
  sink += 1;
}

NOINLINE void path_a(void) {
  path_b();
  sink += 2;
}

NOINLINE void path_deep(int depth) {
  volatile double frame[32] = {depth};
  if (depth > 1) path_deep(depth - 1);
  else path_leaf();
  sink += frame[0];
}

NOINLINE int compare_numbers(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  for (int i = 0; i < 200; ++i) x = x * 0.999 + 1e-9 * y, y = y * 0.999 + 1e-9 * x;
  return (x > y) - (x < y);
}

NOINLINE void sort_numbers(void) {
  static double copy[N];
  memcpy(copy, numbers, sizeof copy);
  qsort(copy, N, sizeof copy[0], compare_numbers);
  sink += copy[0];
}

NOINLINE void use_plugin(void (*call)(void (*)(void))) {
  call(path_leaf);
  sink += 3;
}

int main(int argc, char** argv) {
  const double begin = now();
  const double seconds = argc > 1 ? atof(argv[1]) : 10;
  const char* mode = argc > 2 ? argv[2] : "chain";
  void (*call)(void (*)(void)) = NULL;
  for (int i = 0; i < N; ++i) numbers[i] = (double)((i * 7919) % N);
  while (now() < begin + seconds) {
    if (strcmp(mode, "sort") == 0) {
      sort_numbers();
    } else if (strcmp(mode, "deep") == 0) {
      path_deep(atoi(argv[3]));
    } else if (strcmp(mode, "plugin") == 0 && now() > begin + 1) {
      if (call == NULL) {
        void* library = dlopen(argv[3], RTLD_NOW);
        if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
        *(void**)&call = dlsym(library, "plugin_call");
      }
      use_plugin(call);
    } else {
      path_a();
    }
  }
  printf("%.17g\n", sink);
  return 0;
}
