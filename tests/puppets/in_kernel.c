// A program whose time goes to the kernel, for a known reason.
// mapped: takes a block of mmap's size from malloc, touches its pages, gives it back (munmap). heap: the same by brk. files: writes a
// file and reads it again.
// Truth: the parts of the elapsed time, by the program's own clock, as one line of JSON at the end.
// in_kernel mapped|heap|files SECONDS [FILE]
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kBlock = 16 << 20, kPage = 4096, kFile = 1 << 20 };

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((noinline)) static void Touch(volatile char* block) {
  for (long i = 0; i < kBlock; i += kPage) {  // LOOP touch begin
    block[i] = 1;
  }  // LOOP touch end
}

__attribute__((noinline)) static int Files(int file, char* block) {
  for (int i = 0; i < 8; i++) {
    if (pwrite(file, block, kFile, 0) != kFile || pread(file, block, kFile, 0) != kFile) return 0;
  }
  return 1;
}

__attribute__((noinline)) static double Compute(double x) {
  for (int i = 0; i < 200000; i++) {  // LOOP compute begin
    x = x * 0.999999 + 1e-6;
  }  // LOOP compute end
  return x;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int files = strcmp(argv[1], "files") == 0;
  const int file = files && argc > 3 ? open(argv[3], O_RDWR | O_CREAT, 0600) : -1;
  if (files && file < 0) return 2;
  mallopt(M_MMAP_THRESHOLD, strcmp(argv[1], "mapped") == 0 ? 1 << 20 : 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  char* buffer = malloc(kFile);
  if (buffer == NULL) return 1;
  memset(buffer, 1, kFile);
  double touch = 0, back = 0, io = 0, compute = 0, x = 1;
  const double begin = Now();
  const double end = begin + atof(argv[2]);
  while (Now() < end) {
    double from = Now();
    if (files) {
      if (!Files(file, buffer)) return 1;
      io += Now() - from;
    } else {
      char* block = malloc(kBlock);
      if (block == NULL) return 1;
      Touch(block);
      touch += Now() - from;
      from = Now();
      free(block);
      back += Now() - from;
    }
    from = Now();
    x = Compute(x);
    compute += Now() - from;
  }
  const double all = touch + back + io + compute;
  printf("{\"page_faults\": %.4f, \"memory_return\": %.4f, \"io\": %.4f, \"compute\": %.4f, \"check\": %.17g}\n", touch / all,
         back / all, io / all, compute / all, x);
  return 0;
}
