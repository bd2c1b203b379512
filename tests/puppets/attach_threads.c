/* attach_threads.c - a program whose threads do what a tracer could disturb, and check that nothing did.
 *
 * attach_threads ROLE[:COUNT]...   starts the threads, prints a section of code and "ready", runs until a byte or the end of standard input, then
 * prints one line per role ("epoll turns 12 eintr 0 bad 0") and exits 1 when anything was bad. A role "main-X" runs in the
 * main thread, which then ends by itself after the time in seconds given as COUNT.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach_spin.h"

enum { kMaxThreads = 512, kWaitMs = 20 };

struct thread {
  const char* role;
  void (*turn)(struct thread*);
  pthread_t handle;
  long turns, eintr, bad;
  uint64_t chain;
  int file;
};

static atomic_int stopping;
static struct thread threads[kMaxThreads];
static int thread_count;
static atomic_int futex_word;
static atomic_long alarms, children_seen;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* A wait of kWaitMs that must end with `error` (0: success), not early, and never with EINTR. */
static void judge(struct thread* t, long result, int error, int64_t start_ns) {
  const int failed = result < 0 ? errno : 0;
  if (failed == EINTR) {
    t->eintr++;
  } else if (failed != error || now_ns() - start_ns < (kWaitMs - 1) * 1000000LL) {
    t->bad++;
  }
}

static void turn_spin(struct thread* t) {
  t->bad += spin_and_compare(t->chain, 20000);
  t->chain = t->chain * 6364136223846793005ull + 1442695040888963407ull;
}

static void turn_futex(struct thread* t) {
  const long result = syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, NULL, NULL, 0);
  if (result < 0 && errno == EINTR) t->eintr++;
  if (result < 0 && errno != EINTR && errno != EAGAIN) t->bad++;
  if (result == 0 && atomic_load(&futex_word) == 0) t->bad++; /* woken for nothing */
}

static void turn_futex_timeout(struct thread* t) {
  static int word;
  const struct timespec wait = {0, kWaitMs * 1000000};
  const int64_t start = now_ns();
  judge(t, syscall(SYS_futex, &word, FUTEX_WAIT, 0, &wait, NULL, 0), ETIMEDOUT, start);
}

static void turn_sleep(struct thread* t) {
  const struct timespec wait = {0, kWaitMs * 1000000};
  const int64_t start = now_ns();
  errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
  judge(t, errno ? -1 : 0, 0, start);
}

static void turn_epoll(struct thread* t) {
  struct epoll_event event;
  const int64_t start = now_ns();
  if (t->file == 0) t->file = epoll_create1(EPOLL_CLOEXEC);
  judge(t, epoll_wait(t->file, &event, 1, kWaitMs), 0, start);
}

static void turn_poll(struct thread* t) {
  const int64_t start = now_ns();
  judge(t, poll(NULL, 0, kWaitMs), 0, start);
}

static void turn_sigwait(struct thread* t) {
  const struct timespec wait = {0, kWaitMs * 1000000};
  const int64_t start = now_ns();
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  judge(t, sigtimedwait(&set, NULL, &wait), EAGAIN, start);
}

static void turn_semaphore(struct thread* t) {
  const struct timespec wait = {0, kWaitMs * 1000000};
  struct sembuf take = {0, -1, 0};
  if (t->file == 0) t->file = semget(IPC_PRIVATE, 1, 0600);
  const int64_t start = now_ns();
  judge(t, semtimedop(t->file, &take, 1, &wait), EAGAIN, start);
  if (atomic_load(&stopping)) semctl(t->file, 0, IPC_RMID);
}

static void turn_receive(struct thread* t) {
  const struct timeval wait = {0, kWaitMs * 1000};
  char byte;
  if (t->file == 0) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) t->bad++;
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    t->file = ends[0];
  }
  const int64_t start = now_ns();
  judge(t, recv(t->file, &byte, 1, 0), EAGAIN, start);
}

/* System calls without end: what was written is what is read. */
static void turn_pipe(struct thread* t) {
  static __thread int ends[2];
  uint64_t got = 0;
  if (ends[1] == 0 && pipe(ends) != 0) t->bad++;
  if (write(ends[1], &t->chain, sizeof t->chain) != sizeof t->chain) t->bad++;
  if (read(ends[0], &got, sizeof got) != sizeof got || got != t->chain) t->bad++;
  t->chain = t->chain * 6364136223846793005ull + 1442695040888963407ull;
}

static void unblock(int signal_number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void on_alarm(int signal_number) {
  (void)signal_number;
  atomic_fetch_add(&alarms, 1);
}

/* Spins under a timer whose handler runs in this thread. */
static void turn_alarm(struct thread* t) {
  if (t->turns == 0) {
    const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    const struct itimerval every = {{0, 3000}, {0, 3000}};
    sigaction(SIGALRM, &action, NULL);
    unblock(SIGALRM);
    setitimer(ITIMER_REAL, &every, NULL);
  }
  turn_spin(t);
  if (atomic_load(&stopping) && t->turns > 100 && atomic_load(&alarms) == 0) t->bad++;
}

static void on_child(int signal_number) {
  (void)signal_number;
  atomic_fetch_add(&children_seen, 1);
}

static void turn_fork(struct thread* t) {
  if (t->turns == 0) {
    const struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
    unblock(SIGCHLD);
  }
  int status = 0;
  const pid_t child = fork();
  if (child == 0) _exit(7);
  const pid_t reaped = waitpid(-1, &status, 0);
  if (reaped < 0 && errno == EINTR) t->eintr++;
  if (reaped != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) t->bad++;
  if (waitpid(-1, &status, WNOHANG) != -1 || errno != ECHILD) t->bad++;
  if (atomic_load(&children_seen) != t->turns + 1) t->bad++;
  usleep(2000);
}

static void* short_life(void* unused) { return unused; }

static void turn_churn(struct thread* t) {
  pthread_t one;
  if (pthread_create(&one, NULL, short_life, NULL) != 0 || pthread_join(one, NULL) != 0) t->bad++;
}

/* A thread in vfork does not stop before its child is done. */
static void turn_vfork(struct thread* t) {
  int status = 0;
  const pid_t child = vfork();
  if (child == 0) {
    const struct timespec wait = {0, 300000000};
    syscall(SYS_nanosleep, &wait, NULL);
    _exit(7);
  }
  if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) t->bad++;
}

static void turn_tiles(struct thread* t) {
  if (t->turns == 0 && !make_tiles_live()) exit(77);
  for (volatile int i = 0; i < 100000; i++) continue;
  t->bad += compare_tiles();
}

/* About 1 ms inside a restartable sequence; an abort begins it anew. */
extern char rseq_section_start[], rseq_section_end[];
static void turn_rseq(struct thread* t) {
  struct rseq* const area = (struct rseq*)((char*)__builtin_thread_pointer() + __rseq_offset);
  long committed;
  __asm__ volatile(
      ".pushsection __rseq_cs,\"aw\"\n .balign 32\n"
      "9: .long 0,0\n .quad rseq_section_start,(rseq_section_end-rseq_section_start),4f\n .popsection\n"
      "lea 9b(%%rip),%%rax\n mov %%rax,%[cs]\n"
      ".globl rseq_section_start\n rseq_section_start:\n"
      "mov $2000000,%%ecx\n 3: dec %%ecx\n jnz 3b\n mov $1,%[committed]\n"
      ".globl rseq_section_end\n rseq_section_end:\n jmp 5f\n .long 0x53053053\n"
      "4: mov $0,%[committed]\n 5:\n"
      : [committed] "=&r"(committed), [cs] "=m"(area->rseq_cs)
      :
      : "rax", "rcx", "memory", "cc");
  t->chain += (uint64_t)committed;
}

static const struct {
  const char* name;
  void (*turn)(struct thread*);
} kRoles[] = {{"spin", turn_spin},         {"futex", turn_futex},   {"futex-timeout", turn_futex_timeout},
              {"sleep", turn_sleep},       {"epoll", turn_epoll},   {"poll", turn_poll},
              {"sigwait", turn_sigwait},   {"alarm", turn_alarm},   {"semaphore", turn_semaphore},
              {"receive", turn_receive},   {"pipe", turn_pipe},     {"fork", turn_fork},
              {"churn", turn_churn},       {"vfork", turn_vfork},   {"tiles", turn_tiles},
              {"rseq", turn_rseq}};

static void (*turn_of(const char* name))(struct thread*) {
  for (size_t i = 0; i < sizeof kRoles / sizeof kRoles[0]; i++)
    if (strcmp(kRoles[i].name, name) == 0) return kRoles[i].turn;
  fprintf(stderr, "no role %s\n", name);
  exit(2);
}

static void* run(void* argument) {
  struct thread* const t = argument;
  const uint64_t first = t->chain;
  sigset_t mask_before, mask_after;
  do {
    t->turn(t);
    if (t->turns++ == 0) pthread_sigmask(SIG_BLOCK, NULL, &mask_before);
  } while (!atomic_load(&stopping));
  /* Roles with a chain of values: the same chain again, undisturbed. */
  uint64_t again = first;
  for (long i = 0; i < t->turns; i++) again = again * 6364136223846793005ull + 1442695040888963407ull;
  if ((t->turn == turn_spin || t->turn == turn_pipe || t->turn == turn_alarm) && again != t->chain)
    t->bad++;
  pthread_sigmask(SIG_BLOCK, NULL, &mask_after);
  if (sigismember(&mask_after, SIGUSR1) || memcmp(&mask_before, &mask_after, 8) != 0) t->bad++;
  return NULL;
}

/* Signals go to the threads that want them. SIGUSR1 never comes: it tells a mask of the tracer's from one of ours. */
static void block_most(void) {
  sigset_t most;
  sigfillset(&most);
  sigdelset(&most, SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &most, NULL);
}

static int set_up(const char* word) {
  if (strcmp(word, "seccomp") == 0) {
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog filter = {1, &allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) exit(77);
    return 1;
  }
  if (strcmp(word, "leader-exits") == 0) return 1;
  if (strncmp(word, "exec:", 5) == 0) return 1;
  return 0;
}

static void add(const char* word) {
  static char names[kMaxThreads][32];
  const char* const colon = strchr(word, ':');
  const int count = colon ? atoi(colon + 1) : 1;
  for (int i = 0; i < count && thread_count < kMaxThreads; i++) {
    struct thread* const t = &threads[thread_count];
    snprintf(names[thread_count], sizeof names[0], "%.*s",
             (int)(colon ? (size_t)(colon - word) : strlen(word)), word);
    t->role = names[thread_count];
    t->turn = turn_of(t->role);
    t->chain = (uint64_t)thread_count++;
  }
}

static void wait_for_end(void) {
  char byte;
  while (read(0, &byte, 1) < 0 && errno == EINTR) threads[0].eintr++;
  atomic_store(&stopping, 1);
  atomic_store(&futex_word, 1);
  syscall(SYS_futex, &futex_word, FUTEX_WAKE, kMaxThreads, NULL, NULL, 0);
}

static int report(void) {
  long bad = 0;
  for (int i = 0; i < thread_count; i++) {
    const struct thread* const t = &threads[i];
    printf("%s turns %ld eintr %ld bad %ld\n", t->role, t->turns, t->eintr, t->bad);
    bad += t->bad;
  }
  printf("end %s\n", bad ? "bad" : "good");
  fflush(stdout);
  return bad != 0;
}

static void* end_for_leader(void* unused) {
  wait_for_end();
  for (int i = 0; i < thread_count; i++) pthread_join(threads[i].handle, NULL);
  exit(report());
  return unused;
}

static void main_role(char* word) {
  struct thread* const t = &threads[0];
  t->role = word + strlen("main-");
  char* const colon = strchr(word, ':');
  const double seconds = colon ? atof(colon + 1) : 1;
  if (colon) *colon = 0;
  t->turn = turn_of(t->role);
  thread_count = 1;
  if (t->turn == turn_rseq)
    printf("section %p %p\n", (void*)rseq_section_start, (void*)rseq_section_end);
  printf("ready\n");
  fflush(stdout);
  const int64_t end = now_ns() + (int64_t)(seconds * 1e9);
  for (; now_ns() < end; t->turns++) t->turn(t);
  exit(report());
}

int main(int argc, char** argv) {
  int leader_exits = 0, executions = 0;
  block_most();
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "main-", 5) == 0) main_role(argv[i]);
    if (!set_up(argv[i])) add(argv[i]);
    leader_exits |= strcmp(argv[i], "leader-exits") == 0;
    if (strncmp(argv[i], "exec:", 5) == 0) executions = atoi(argv[i] + 5);
  }
  for (int i = 0; i < thread_count; i++)
    if (pthread_create(&threads[i].handle, NULL, run, &threads[i]) != 0) return 2;
  if (executions > 0) {
    char next[32];
    printf("ready\n");
    fflush(stdout);
    usleep(3000);
    snprintf(next, sizeof next, "exec:%d", executions - 1);
    for (int i = 1; i < argc; i++)
      if (strncmp(argv[i], "exec:", 5) == 0) argv[i] = next;
    execv("/proc/self/exe", argv);
    return 2;
  }
  printf("section %p %p\n", (void*)spin_loop_start, (void*)spin_loop_end);
  printf("ready\n");
  fflush(stdout);
  if (leader_exits) {
    pthread_t ender;
    pthread_create(&ender, NULL, end_for_leader, NULL);
    pthread_exit(NULL);
  }
  wait_for_end();
  for (int i = 0; i < thread_count; i++) pthread_join(threads[i].handle, NULL);
  return report();
}
