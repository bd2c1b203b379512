// A program that uses what its limit leaves it: the limit is what it has, what a step takes for a moment, and a slack.
// Usage: tight KIND SLACK_KB SECONDS
//   address, data  RLIMIT_AS, RLIMIT_DATA; a step maps memory
//   heap           RLIMIT_AS; a step moves the end of the heap (brk)
//   locked         RLIMIT_MEMLOCK, and all its memory is locked
//   later          the same, and only what it maps later will be locked: nothing is so far
// Prints the slack that the limit leaves it: an ordinary user may not raise the hard limit. SIGUSR1: the seconds are over now.
// Exit 4: the system refused it memory, which it does not do when the program is alone.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PASSES 40000  // about a fifth of a millisecond
#define PIECES 20     // most of the time it has given back what it took
#define STEP_BYTES ((size_t)3 << 19)

static volatile sig_atomic_t enough;

static void Enough(int number) {
  enough = number;
}

static double WallSeconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// noipa: it must run each time, although it gives the same.
__attribute__((noipa)) static double Work(double x) {
  for (int i = 0; i < PASSES; ++i) {  // LOOP work begin
    x = 1.0 / (1.0 + x);
  }  // LOOP work end
  return x;
}

// Bytes, of a line of /proc/self/status.
static size_t Used(const char* name) {
  char line[256];
  size_t kb = 0;
  FILE* file = fopen("/proc/self/status", "r");
  if (file == NULL) exit(3);
  setvbuf(file, NULL, _IONBF, 0);  // maps nothing
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, name, strlen(name)) == 0) kb = strtoul(line + strlen(name), NULL, 10);
  fclose(file);
  return kb << 10;
}

static void* Take(int heap) {
  if (heap) return sbrk((intptr_t)STEP_BYTES);
  return mmap(NULL, STEP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static double Step(int heap) {
  char* work = Take(heap);
  if (work == MAP_FAILED) {
    printf("no memory: %s, VmSize %zu kB, VmLck %zu kB\n", strerror(errno), Used("VmSize:") >> 10,
           Used("VmLck:") >> 10);
    exit(4);
  }
  work[0] = work[STEP_BYTES - 1] = 1;
  if (heap)
    sbrk(-(intptr_t)STEP_BYTES);
  else
    munmap(work, STEP_BYTES);
  double done = 0;
  for (int i = 0; i < PIECES; ++i) done = Work(0.25);
  return done;
}

static void SetLimit(int resource, size_t used, size_t slack) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) != 0) exit(3);
  const rlim_t wanted = used + STEP_BYTES + slack;
  if (wanted < limit.rlim_max) limit.rlim_max = wanted;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(resource, &limit) != 0) exit(3);
  printf("slack %ld kB\n", ((long)limit.rlim_cur - (long)(used + STEP_BYTES)) / 1024);
  fflush(stdout);
}

int main(int argc, char** argv) {
  static char buffer[1024];
  if (argc < 4) return 2;
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  const char* kind = argv[1];
  const size_t slack = strtoul(argv[2], NULL, 10) << 10;
  const int heap = strcmp(kind, "heap") == 0;
  struct sigaction stop = {.sa_handler = Enough, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &stop, NULL);
  const double expected = Step(heap);
  Used("VmLck:");  // what this takes of the heap is there before anything is locked
  if (strcmp(kind, "locked") == 0 && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 3;
  if (strcmp(kind, "later") == 0 && mlockall(MCL_FUTURE) != 0) return 3;
  if (strcmp(kind, "address") == 0 || heap) SetLimit(RLIMIT_AS, Used("VmSize:"), slack);
  if (strcmp(kind, "data") == 0) SetLimit(RLIMIT_DATA, Used("VmData:"), slack);
  if (strcmp(kind, "locked") == 0 || strcmp(kind, "later") == 0)
    SetLimit(RLIMIT_MEMLOCK, Used("VmLck:"), slack);
  int wrong = 0;
  const double end_at = WallSeconds() + atof(argv[3]);
  while (!enough && WallSeconds() < end_at) wrong |= Step(heap) != expected;
  printf("%s\n", wrong ? "WRONG" : "right");
  return wrong;
}
