// A rank to experiment on: THREADS threads run a[i] = b[i] * s + c[i] between barriers, results feed the next pass.
// lab_puppet THREADS N PASSES [MODE]; PASSES 0: until SIGTERM; else the same figures are computed without threads. Prints where the loop is, at the end passes and a checksum.
// MODE: shared (a lies in a MAP_SHARED mapping), dontfork (a is kept out of forks), direct FILE (a file is open with O_DIRECT), two (a second loop updates c in
// place), forks (children are made and waited for), big (forks, with 256 MB that every child must find as it is), churn (threads come, run the loop and go), waits (a thread sleeps
// in waitpid for any child with __WALL), locks (as two, and what it maps from now on is locked), stack (of two threads the second one's stack is MAP_SHARED), polls (it asks for one all the time; exit status 7: it got more than one). Exit status 9: a child was
// not seen as it must be. SIGUSR1: becomes another program. late FILE, SIGUSR2: opens it with O_DIRECT.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

void triad(double* a, const double* b, const double* c, long n);
extern char triad_header[], triad_exit[], triad_end[];
__asm__(
    ".text\n.balign 64\n.globl triad, triad_header, triad_exit, triad_end\n.type triad,@function\n"
    "triad:\n"
    "  xor %eax,%eax\n"
    "  movsd triad_scale(%rip),%xmm1\n"
    "triad_header:\n1:\n"
    "  movsd (%rsi,%rax,8),%xmm0\n"
    "  mulsd triad_scale(%rip),%xmm0\n"
    "  addsd (%rdx,%rax,8),%xmm0\n"
    "  movsd %xmm0,(%rdi,%rax,8)\n"
    "  inc %rax\n"
    "  cmp %rcx,%rax\n"
    "  jne 1b\n"
    "triad_exit:\n"
    "  ret\n"
    "triad_end:\n"
    ".size triad,.-triad\n"
    ".section .rodata\n.balign 8\ntriad_scale: .double 0.75\n.text\n");

void bump(double* c, long n);
extern char bump_header[], bump_exit[], bump_end[];
__asm__(
    ".balign 64\n.globl bump, bump_header, bump_exit, bump_end\n.type bump,@function\n"
    "bump:\n"
    "  xor %eax,%eax\n"
    "bump_header:\n1:\n"
    "  movsd (%rdi,%rax,8),%xmm0\n"
    "  addsd triad_scale(%rip),%xmm0\n"
    "  movsd %xmm0,(%rdi,%rax,8)\n"
    "  inc %rax\n"
    "  cmp %rsi,%rax\n"
    "  jne 1b\n"
    "bump_exit:\n"
    "  ret\n"
    "bump_end:\n"
    ".size bump,.-bump\n");

static volatile sig_atomic_t stop_asked, child_signals;
static volatile sig_atomic_t exec_asked, open_asked;
static const char* late;
static int two, forks, churn, children;
static unsigned char* ballast;
enum { BALLAST = 256 << 20, PAGE = 4096 };
static int threads, all_stop;
static long n, passes_wanted, passes_done;
static pthread_barrier_t barrier;
static double **as, *bs[64], *cs[64];

static void on_term(int s) {
  (void)s;
  stop_asked = 1;
}

static void on_usr1(int s) {
  (void)s;
  exec_asked = 1;
}

static void on_usr2(int s) {
  (void)s;
  open_asked = 1;
}

static void on_child(int s) {
  (void)s;
  child_signals = child_signals + 1;
}

static void* guest(void* p) {
  double a[64], b[64] = {1}, c[64] = {2};
  triad(a, b, c, 64);
  if (a[0] != 2.75 || a[63] != 0) _exit(9);
  return p;
}

// The application's own child runs the patched loop, too; nobody else's child may turn up.
static void make_child(void) {
  pid_t child = fork();
  if (child == 0) {
    guest(0);
    for (long at = 0; ballast && at < BALLAST; at += 64 * PAGE) {
      if (ballast[at] != 7) _exit(6);
    }
    _exit(5);
  }
  int status = 0;
  pid_t got;
  do got = waitpid(-1, &status, 0);
  while (got < 0 && errno == EINTR);
  if (got != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5) _exit(9);
  ++children;
  if (waitpid(-1, &status, WNOHANG) != -1 || errno != ECHILD) _exit(9);
}

static int polls, taken, poll_stop;

// What a supervisor does: it waits for whatever child there is, clones too.
static void* supervise(void* p) {
  if (polls) {
    while (!__atomic_load_n(&poll_stop, __ATOMIC_SEQ_CST)) {
      taken += waitpid(-1, 0, __WALL | WNOHANG) > 0;
      usleep(20);
    }
    return p;
  }
  const pid_t parent = getpid();
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);  // it has ended in between: whoever reads our output waits for us
    for (;;) pause();
  }
  for (;;) waitpid(-1, 0, __WALL);
}

static uint64_t checksum(void) {
  uint64_t sum = 1469598103934665603ull;
  for (int t = 0; t < threads; ++t) {
    for (long i = 0; i < n; ++i) {
      uint64_t bits;
      memcpy(&bits, &as[t][i], 8);
      sum = (sum ^ bits) * 1099511628211ull;
      memcpy(&bits, &bs[t][i], 8);
      sum = (sum ^ bits) * 1099511628211ull;
    }
  }
  return sum;
}

// What the threads compute, by one: they share nothing.
static void replay(void) {
  for (long t = 0; t < threads; ++t) {
    for (long pass = 0; pass < passes_wanted; ++pass) {
      triad(as[t], bs[t], cs[t], n);
      if (two) bump(cs[t], n);
      bs[t][pass % n] = as[t][(pass * 7 + 1) % n] * 0.5 + 1;
    }
  }
  passes_done = passes_wanted;
}

static void* run(void* p) {
  long t = (long)p;
  for (long pass = 0;; ++pass) {
    triad(as[t], bs[t], cs[t], n);
    if (two) bump(cs[t], n);
    if (exec_asked && t == 0) execl("/bin/sleep", "sleep", "30", (char*)0);
    if (late && open_asked && t == 0) {
      if (open(late, O_RDWR | O_CREAT | O_DIRECT, 0600) < 0) _exit(8);
      late = 0;
    }
    if (forks && t == 0 && pass % 20 == 0) make_child();
    if (churn && t == 0 && pass % 20 == 0) {
      pthread_t visitor;
      pthread_create(&visitor, 0, guest, 0);
      pthread_join(visitor, 0);
    }
    bs[t][pass % n] = as[t][(pass * 7 + 1) % n] * 0.5 + 1;
    pthread_barrier_wait(&barrier);
    if (t == 0) {
      passes_done = pass + 1;
      all_stop = stop_asked;
    }
    pthread_barrier_wait(&barrier);
    if (all_stop) return 0;
  }
}

static ucontext_t home, away;

static void coroutine(void) { run(0); }

// Its stack has data of the program below it and above, as a pool of coroutines has.
static void run_on_coroutine(void) {
  enum { POOL = 1 << 20, FIRST = POOL / 2, OWN = 8192 };
  unsigned char* pool = malloc(POOL);
  memset(pool, 7, POOL);
  getcontext(&away);
  away.uc_stack.ss_sp = pool + FIRST;
  away.uc_stack.ss_size = OWN;
  away.uc_link = &home;
  makecontext(&away, coroutine, 0);
  swapcontext(&home, &away);
  for (int i = 0; i < POOL; ++i) {
    if (pool[i] != 7 && (i < FIRST || i >= FIRST + OWN)) _exit(8);
  }
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  threads = atoi(argv[1]);
  n = atol(argv[2]);
  passes_wanted = atol(argv[3]);
  const char* mode = argc > 4 ? argv[4] : "";
  struct sigaction action = {.sa_handler = on_term};
  sigaction(SIGTERM, &action, 0);
  if (!strcmp(mode, "direct") && open(argv[5], O_RDWR | O_CREAT | O_DIRECT, 0600) < 0) return 3;
  two = !strcmp(mode, "two") || !strcmp(mode, "locks");
  if (!strcmp(mode, "big")) {
    ballast = mmap(0, BALLAST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ballast == MAP_FAILED) return 4;
    madvise(ballast, BALLAST, MADV_NOHUGEPAGE);
    memset(ballast, 7, BALLAST);
  }
  forks = !strcmp(mode, "forks") || ballast;
  churn = !strcmp(mode, "churn");
  action.sa_handler = on_usr1;
  sigaction(SIGUSR1, &action, 0);
  if (!strcmp(mode, "late")) late = argv[5];
  action.sa_handler = on_usr2;
  sigaction(SIGUSR2, &action, 0);
  action.sa_handler = on_child;
  action.sa_flags = SA_RESTART;
  sigaction(SIGCHLD, &action, 0);
  as = calloc(64, sizeof(*as));
  for (int t = 0; t < threads; ++t) {
    int flags = (!strcmp(mode, "shared") ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS;
    as[t] = mmap(0, (size_t)n * 8, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (!strcmp(mode, "dontfork")) madvise(as[t], (size_t)n * 8, MADV_DONTFORK);
    if (!strcmp(mode, "wipeonfork")) madvise(as[t], (size_t)n * 8, MADV_WIPEONFORK);
    bs[t] = malloc((size_t)n * 8);
    cs[t] = malloc((size_t)n * 8);
    for (long i = 0; i < n; ++i) bs[t][i] = (double)i, cs[t][i] = (double)(t + 1);
  }
  pthread_barrier_init(&barrier, 0, (unsigned)threads);
  printf("%lx %lx %lx %lx %lx %lx %lx %lx\n", (long)triad, (long)triad_header, (long)triad_exit,
         (long)triad_end, (long)bump, (long)bump_header, (long)bump_exit, (long)bump_end);
  fflush(stdout);
  if (passes_wanted) {
    replay();
    printf("%ld %016lx\n", passes_done, checksum());
    return 0;
  }
  if (!strcmp(mode, "locks") && mlockall(MCL_FUTURE) != 0) return 5;
  polls = !strcmp(mode, "polls");
  pthread_t supervisor;
  if (polls || !strcmp(mode, "waits")) pthread_create(&supervisor, 0, supervise, 0);
  pthread_t other[64];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (!strcmp(mode, "stack")) {
    enum { STACK = 1 << 20 };
    pthread_attr_setstack(&attributes, mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), STACK);
  }
  for (long t = 1; t < threads; ++t) pthread_create(&other[t], &attributes, run, (void*)t);
  if (!strcmp(mode, "coroutine"))
    run_on_coroutine();
  else
    run(0);
  for (int t = 1; t < threads; ++t) pthread_join(other[t], 0);
  if (polls) {
    __atomic_store_n(&poll_stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(supervisor, 0);
    if (taken > 1) return 7;
  }
  if (child_signals != children) return 9;
  printf("%ld %016lx\n", passes_done, checksum());
  return 0;
}
