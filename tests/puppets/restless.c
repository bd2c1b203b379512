// A program that does not keep still: it replaces itself, writes code, loads code, starts threads and processes.
// Usage: restless spin SECONDS | exec SECONDS PROGRAM | jit SECONDS | load SECONDS LIBRARY
//                 threads SECONDS COUNT | churn SECONDS | setuid SECONDS UID | undumpable SECONDS
// Every piece of work is done again and again and must give what it gave the first time. The last line says so.
// SIGUSR1: the seconds are over now. setuid, undumpable: first it changes itself, says when, and goes on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PASSES 40000  // about a fifth of a millisecond

static double end_at;
static double expected;
static int wrong;
static volatile sig_atomic_t enough;

static double WallSeconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void Enough(int number) { enough = number; }

static int Over(void) { return enough || WallSeconds() >= end_at; }

// noipa: it must run each time, although it gives the same.
__attribute__((noipa)) static double Work(double x) {
  for (int i = 0; i < PASSES; ++i) {  // LOOP work begin
    x = 1.0 / (1.0 + x);
  }  // LOOP work end
  return x;
}

static void Check(int right) {
  if (!right) __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
}

static void* Worker(void* nothing) {
  do Check(Work(0.25) == expected);
  while (!Over());
  return nothing;
}

// Enough that the loop outweighs what the libraries do to start a thread, where that is dear.
static int DoesItRight(void) {
  int right = 1;
  for (int i = 0; i < 5; ++i) right &= Work(0.25) == expected;
  return right;
}

static void* Once(void* nothing) {
  Check(DoesItRight());
  return nothing;
}

// The sum of 1..n: xor eax,eax; add rax,rdi; dec rdi; jnz; ret.
static void Jit(void) {
  static const unsigned char code[] = {0x31, 0xc0, 0x48, 0x01, 0xf8, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3};
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) exit(3);
  memcpy(page, code, sizeof code);
  uint64_t (*sum)(uint64_t) = (uint64_t(*)(uint64_t))(uintptr_t)page;
  while (!Over()) Check(sum(1000000) == 500000500000u);
}

static void Load(const char* path) {
  const double load_at = end_at - (end_at - WallSeconds()) * 2 / 3;
  while (WallSeconds() < load_at) Check(Work(0.25) == expected);
  void* library = dlopen(path, RTLD_NOW);
  if (library == NULL) exit(3);
  double (*plugin)(double) = (double (*)(double))(uintptr_t)dlsym(library, "PluginWork");
  if (plugin == NULL) exit(3);
  const double first = plugin(0.25);
  while (!Over()) Check(plugin(0.25) == first);
}

static void Threads(int count) {
  pthread_t* threads = malloc((size_t)count * sizeof *threads);
  for (int i = 0; i < count; ++i)
    if (pthread_create(&threads[i], NULL, Worker, NULL) != 0) exit(3);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

static void Churn(void) {
  while (!Over()) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, Once, NULL) != 0) exit(3);
    const pid_t child = fork();
    if (child == 0) _exit(DoesItRight() ? 0 : 1);
    int status = 1;
    Check(waitpid(child, &status, 0) == child && status == 0);
    pthread_join(thread, NULL);
    Once(NULL);
  }
}

static void Change(const char* mode, const char* uid) {
  const uid_t user = uid != NULL ? (uid_t)atoi(uid) : 0;
  struct timespec t;
  Worker(NULL);
  if (uid != NULL && setresuid(user, user, user) != 0) exit(3);
  prctl(PR_SET_DUMPABLE, strcmp(mode, "undumpable") != 0);
  clock_gettime(CLOCK_REALTIME, &t);
  printf("changed %lld\n", (long long)t.tv_sec * 1000000000 + t.tv_nsec);
  fflush(stdout);
  enough = 0;
  Worker(NULL);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* mode = argv[1];
  struct sigaction stop = {.sa_handler = Enough, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &stop, NULL);
  end_at = WallSeconds() + atof(argv[2]);
  expected = Work(0.25);
  if (strcmp(mode, "spin") == 0 || strcmp(mode, "exec") == 0) Worker(NULL);
  if (strcmp(mode, "jit") == 0) Jit();
  if (strcmp(mode, "load") == 0 && argc > 3) Load(argv[3]);
  if (strcmp(mode, "threads") == 0 && argc > 3) Threads(atoi(argv[3]));
  if (strcmp(mode, "churn") == 0) Churn();
  if (strcmp(mode, "setuid") == 0 && argc > 3) Change(mode, argv[3]);
  if (strcmp(mode, "undumpable") == 0) Change(mode, NULL);
  if (strcmp(mode, "exec") == 0 && argc > 3) {
    printf("%s\n", wrong ? "WRONG" : "right so far");
    fflush(stdout);
    execl(argv[3], argv[3], "spin", argv[2], (char*)NULL);
    return 3;
  }
  printf("%s\n", wrong ? "WRONG" : "right");
  return wrong;
}
