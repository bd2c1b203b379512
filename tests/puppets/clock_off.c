// A wall clock that is off, for one process: preloaded, it adds CLOCK_OFF_S seconds to what the process reads of it, and takes
// them off again where the process waits until a time of it. What counts from the boot stays as it is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define YEAR_2001 1000000000  // no machine is up for so many seconds: such a time is one of the wall clock

static long off;
static int (*real_gettime)(clockid_t, struct timespec*);
static long (*real_syscall)(long, ...);
static int (*real_timedwait)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
static int (*real_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
static int (*real_sem_timedwait)(sem_t*, const struct timespec*);

__attribute__((constructor)) static void Find(void) {
  const char* text = getenv("CLOCK_OFF_S");
  real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  real_syscall = dlsym(RTLD_NEXT, "syscall");
  real_timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  real_clockwait = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  real_sem_timedwait = dlsym(RTLD_NEXT, "sem_timedwait");
  off = text ? atol(text) : 0;
}

static const struct timespec* True(const struct timespec* until, struct timespec* room) {
  if (until == NULL || until->tv_sec < YEAR_2001) return until;
  *room = *until;
  room->tv_sec -= off;
  return room;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  if (real_gettime == NULL) Find();
  const int result = real_gettime(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += off;
  return result;
}

int gettimeofday(struct timeval* now, void* zone) {
  (void)zone;
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (out != NULL) *out = exact.tv_sec;
  return exact.tv_sec;
}

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (real_syscall == NULL) Find();
  struct timespec room;
  if (number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) != 0)
    a[3] = (long)True((const struct timespec*)a[3], &room);
  return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex, const struct timespec* until) {
  struct timespec room;
  return real_timedwait(cond, mutex, True(until, &room));
}

int pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  struct timespec room;
  return real_clockwait(cond, mutex, clock, True(until, &room));
}

int sem_timedwait(sem_t* sem, const struct timespec* until) {
  struct timespec room;
  return real_sem_timedwait(sem, True(until, &room));
}
