// A program that makes code as it runs, and tells the names of it in /tmp/perf-PID.map, as compilers at run time do.
// made_code SECONDS [silent]: two functions, 3 : 1; `silent` leaves the map away.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// void f(long n) { while (--n); }
static const unsigned char kCode[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
enum { kApart = 256 };

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  unsigned char* code =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  memcpy(code, kCode, sizeof kCode);
  memcpy(code + kApart, kCode, sizeof kCode);
  if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
  if (argc < 3) {
    FILE* map = fopen(path, "w");
    if (map == NULL) return 1;
    fprintf(map, "%lx %zx made::Heavy(long) [tier 2]\n", (unsigned long)code, sizeof kCode);
    fprintf(map, "%lx %zx made::Light(long)\n", (unsigned long)(code + kApart), sizeof kCode);
    fclose(map);
  }
  void (*heavy)(long) = (void (*)(long))code;
  void (*light)(long) = (void (*)(long))(code + kApart);
  const double end = Now() + atof(argv[1]);
  while (Now() < end) {
    heavy(3000000);
    light(1000000);
  }
  unlink(path);
  return 0;
}
