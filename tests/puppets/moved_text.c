// A program that copies its own code to anonymous memory in the code's place, as remappers to large pages do. Two loops, 3 : 1.
// moved_text SECONDS [other]: with `other`, a byte of each page of the copy is another one (of what is never executed).
// Prints its pid at once, and "right" at the end when every step gave the bits of the first one.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kCount = 20000, kPage = 4096 };
static double a[kCount], b[kCount];

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((noinline)) static double Heavy(void) {
  double s = 0;
  for (int r = 0; r < 6; r++)
    for (int i = 0; i < kCount; i++) {  // LOOP heavy begin
      s += a[i] * b[i] + s * 1e-9;
    }  // LOOP heavy end
  return s;
}

__attribute__((noinline)) static double Light(void) {
  double s = 0;
  for (int r = 0; r < 2; r++)
    for (int i = 0; i < kCount; i++) {  // LOOP light begin
      s += a[i] * b[i] - s * 1e-9;
    }  // LOOP light end
  return s;
}

// Never executed: what `other` writes to.
__attribute__((used, aligned(64))) static void Unused(void) {
  __asm__ volatile(".fill 64, 1, 0x90");
}

static int Move(int other) {
  FILE* maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) return 0;
  char line[512];
  unsigned long low = 0, high = 0;
  while (fgets(line, sizeof line, maps)) {
    unsigned long from, to;
    char rights[8];
    if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[2] == 'x' &&
        (unsigned long)&Move >= from && (unsigned long)&Move < to) {
      low = from;
      high = to;
    }
  }
  fclose(maps);
  if (low == 0) return 0;
  const size_t bytes = high - low;
  char* copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return 0;
  memcpy(copy, (void*)low, bytes);
  if (other) copy[(unsigned long)&Unused - low + 32] = (char)0xcc;
  if (mprotect(copy, bytes, PROT_READ | PROT_EXEC) != 0) return 0;
  return mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void*)low) == (void*)low;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (int i = 0; i < kCount; i++) {
    a[i] = 1.0 / (i + 1);
    b[i] = i % 7;
  }
  if (!Move(argc > 2)) return 1;
  printf("%d\n", getpid());
  fflush(stdout);
  const double end = Now() + atof(argv[1]);
  const double first = Heavy() + Light();
  int right = 1;
  while (Now() < end) {
    const double next = Heavy() + Light();
    right &= memcmp(&first, &next, sizeof first) == 0;
  }
  puts(right ? "right" : "WRONG");
  return !right;
}
