// A program whose address space others can lock. Usage: locked FILE
// Maps FILE and prints where. SIGUSR1: a thread asks for memory; while somebody reads the mapping, and gets no answer from the file
// system, that thread waits, and behind it everybody who wants to read anything of this process. The loop goes on all the time.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define PASSES 40000  // about a fifth of a millisecond

__attribute__((noipa)) static double Work(double x) {
  for (int i = 0; i < PASSES; ++i) {  // LOOP work begin
    x = 1.0 / (1.0 + x);
  }  // LOOP work end
  return x;
}

static void* AskForMemory(void* signals) {
  int number;
  while (sigwait(signals, &number) == 0) mmap(0, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return 0;
}

int main(int argc, char** argv) {
  const int file = argc > 1 ? open(argv[1], O_RDONLY) : -1;
  void* mapping = mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0);
  static sigset_t signals;
  pthread_t thread;
  if (mapping == MAP_FAILED) return 1;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, 0);
  pthread_create(&thread, 0, AskForMemory, &signals);
  printf("%p\n", mapping);
  fflush(stdout);
  while (1) Work(0.25);
}
