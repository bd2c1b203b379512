// A program of known behaviour: each argument is a step, taken in order.
//   spin:MS      use MS of CPU time in this thread        threads:N:MS  N new threads use MS of CPU time each, joined
//   wait         wait for one byte on standard input      say:TEXT      write TEXT and a newline to standard output
//   exec         start again from the next step by exec   fork:MS       a child process uses MS of CPU time, reaped
//   touch:MB     write to each page of new memory at TOUCHED, then give it back
//   ttouch:MB    the same in a new thread, joined
//   setuid:UID   become that user, for good
//   texec:MS     the same, but from a second thread, which first uses MS of CPU time
// It ends after 60 s in any case.
#define _GNU_SOURCE  // setresuid
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) void puppet_spin(long ms) {
  struct timespec now, start;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  do {
    for (int i = 0; i < 20000; ++i) sink += (unsigned long)i;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

static void* spin_thread(void* ms) {
  puppet_spin((long)ms);
  return NULL;
}

static char** exec_arguments;

static void* exec_thread(void* ms) {
  puppet_spin((long)ms);
  execv("/proc/self/exe", exec_arguments);
  return ms;
}

#define TOUCHED ((char*)0x600000000000)  // sample_fixture.h knows it

static void* touch(void* megabytes) {
  const size_t bytes = (size_t)(long)megabytes << 20;
  char* at = mmap(TOUCHED, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (at != TOUCHED) exit(3);
  madvise(at, bytes, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < bytes; i += 4096) ((volatile char*)at)[i] = 1;
  munmap(at, bytes);
  return NULL;
}

static void touch_in_thread(long megabytes) {
  pthread_t thread;
  pthread_create(&thread, NULL, touch, (void*)megabytes);
  pthread_join(thread, NULL);
}

static void run_threads(long count, long ms) {
  pthread_t threads[64];
  for (long i = 0; i < count && i < 64; ++i)
    pthread_create(&threads[i], NULL, spin_thread, (void*)ms);
  for (long i = 0; i < count && i < 64; ++i) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  alarm(60);
  for (int i = 1; i < argc; ++i) {
    long a = 0, b = 0;
    char c;
    if (sscanf(argv[i], "spin:%ld", &a) == 1) {
      puppet_spin(a);
    } else if (sscanf(argv[i], "threads:%ld:%ld", &a, &b) == 2) {
      run_threads(a, b);
    } else if (sscanf(argv[i], "touch:%ld", &a) == 1) {
      touch((void*)a);
    } else if (sscanf(argv[i], "ttouch:%ld", &a) == 1) {
      touch_in_thread(a);
    } else if (sscanf(argv[i], "setuid:%ld", &a) == 1) {
      if (setresuid((uid_t)a, (uid_t)a, (uid_t)a) != 0) return 1;
    } else if (strcmp(argv[i], "wait") == 0) {
      if (read(0, &c, 1) != 1) return 1;
    } else if (strncmp(argv[i], "say:", 4) == 0) {
      if (dprintf(1, "%s\n", argv[i] + 4) < 0) return 1;
    } else if (strcmp(argv[i], "exec") == 0 || sscanf(argv[i], "texec:%ld", &a) == 1) {
      const int by_thread = argv[i][0] == 't';
      exec_arguments = argv + i;
      exec_arguments[0] = argv[0];
      if (!by_thread) exec_thread(NULL);
      pthread_t thread;
      pthread_create(&thread, NULL, exec_thread, (void*)a);
      pthread_join(thread, NULL);
      return 1;
    } else if (sscanf(argv[i], "fork:%ld", &a) == 1) {
      pid_t child = fork();
      if (child == 0) {
        puppet_spin(a);
        _exit(0);
      }
      waitpid(child, NULL, 0);
    } else {
      return 2;
    }
  }
  return 0;
}
