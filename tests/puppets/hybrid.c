// A program of MPI and OpenMP that verifies itself, and writes memory that other processes see: an MPI window, a file and
// a System V segment. All it writes has a closed form, and one pass too many or too few over any of it shows for ever.
// Usage: hybrid STEPS STOP FILE OUT    0 STEPS: until the file STOP exists; FILE is mapped; OUT gets window and segment
// Rank 0 prints one JSON line: {"steps":..., "bad":..., "checksum":...}; the exit status is 1 when anything is wrong.
#include <fcntl.h>
#include <mpi.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#define PRIVATE 30000  // doubles of a thread in each private array
#define SHARED 40000   // and in each shared one
#define MAX_THREADS 16

typedef struct {
  double x[PRIVATE], u[PRIVATE], v[PRIVATE];
  double add[SHARED];  // whole numbers, so that sums of them are exact
} Work;

// Not shared: this one may be measured.
__attribute__((noinline)) static void Compute(Work* w, double step) {
  for (int i = 0; i < PRIVATE; ++i) w->x[i] += w->u[i] / (w->v[i] + step);  // LOOP compute
}

// Not one after the other the same, or compilers make one function of them.
__attribute__((noinline)) static void AddToWindow(double* to, const double* add) {
  for (int i = 0; i < SHARED; ++i) to[i] += add[i];  // LOOP window
}

__attribute__((noinline)) static void AddToFile(double* to, const double* add) {
  for (int i = 0; i < SHARED; ++i) to[i] += 2 * add[i];  // LOOP file
}

__attribute__((noinline)) static void AddToSegment(double* to, const double* add) {
  for (int i = 0; i < SHARED; ++i) to[i] += add[i] + 3;  // LOOP segment
}

// What another rank has written.
__attribute__((noinline)) static double Read(const double* from) {
  double s0 = 0, s1 = 0;
  for (int i = 0; i < SHARED; i += 2) s0 += from[i], s1 += from[i + 1];  // LOOP read
  return s0 + s1;
}

static void Die(const char* what) {
  perror(what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void Fill(Work* w, int slice) {
  for (int i = 0; i < PRIVATE; ++i) {
    w->x[i] = 0;
    w->u[i] = 1 + (i * 37 + slice) % 101 * 0.01;
    w->v[i] = 1.5 + (i * 53 + slice) % 89 * 0.01;
  }
  for (int i = 0; i < SHARED; ++i) w->add[i] = (i * 7 + slice * 3) % 5 + 1;
}

static double StepValue(long step) { return (double)(step & 7); }

// Elements of the private arrays computed again, one thread alone, one after the other.
static long WrongPrivate(const Work* w, long steps) {
  long wrong = 0;
  for (int i = 0; i < PRIVATE; i += 97) {
    double x = 0;
    for (long step = 0; step < steps; ++step) x += w->u[i] / (w->v[i] + StepValue(step));
    wrong += x != w->x[i];
  }
  return wrong;
}

static long WrongShared(const double* values, const double* add, double factor, double plus) {
  long wrong = 0;
  for (int i = 0; i < SHARED; ++i) wrong += values[i] != factor * add[i] + plus;
  return wrong;
}

static uint64_t Mix(uint64_t sum, const double* data, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t word;
    memcpy(&word, data + i, 8);
    sum = (sum ^ word) * 1099511628211ull;
  }
  return sum;
}

typedef struct {
  int rank, ranks, threads;
  size_t doubles;  // in each shared memory
  double *window, *file, *segment;
  MPI_Win win;
  Work* work;
} Program;

static void Open(Program* p, const char* path) {
  const size_t slice = (size_t)p->threads * SHARED;
  p->doubles = slice * (size_t)p->ranks;
  double* own;
  MPI_Aint bytes;
  int unit;
  MPI_Win_allocate_shared(p->rank == 0 ? (MPI_Aint)(p->doubles * 8) : 0, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &p->win);
  MPI_Win_shared_query(p->win, 0, &bytes, &unit, &p->window);
  MPI_Win_lock_all(0, p->win);
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, (off_t)(p->doubles * 8)) != 0) Die(path);
  p->file = mmap(NULL, p->doubles * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  int id = p->rank == 0 ? shmget(IPC_PRIVATE, p->doubles * 8, IPC_CREAT | 0600) : 0;
  MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
  p->segment = shmat(id, NULL, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (p->rank == 0) shmctl(id, IPC_RMID, NULL);  // goes with its last user
  if (p->file == MAP_FAILED || p->segment == (void*)-1) Die("shared memory");
  if (p->rank == 0) memset(p->window, 0, p->doubles * 8);
  p->work = aligned_alloc(64, (sizeof(Work) + 63) / 64 * 64 * (size_t)p->threads);
#pragma omp parallel
  Fill(&p->work[omp_get_thread_num()], p->rank * p->threads + omp_get_thread_num());
  MPI_Win_sync(p->win);
  MPI_Barrier(MPI_COMM_WORLD);
}

// How many of its checks failed in this rank.
static long Step(Program* p, long step) {
  long bad = 0;
#pragma omp parallel
  {
    const int t = omp_get_thread_num();
    const size_t at = (size_t)(p->rank * p->threads + t) * SHARED;
    Work* w = &p->work[t];
    Compute(w, StepValue(step));
    AddToWindow(p->window + at, w->add);
    AddToFile(p->file + at, w->add);
    AddToSegment(p->segment + at, w->add);
  }
  MPI_Win_sync(p->win);
  long sum = 0, mine = p->rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  bad += sum != (long)p->ranks * (p->ranks + 1) / 2;
  MPI_Win_sync(p->win);
#pragma omp parallel reduction(+ : bad)
  {
    const int slice = (p->rank + 1) % p->ranks * p->threads + omp_get_thread_num();
    double whole = 0;
    for (int k = 0; k < 5; ++k) whole += (k * 7 + slice * 3) % 5 + 1;  // SHARED is a multiple of 5
    bad += Read(p->window + (size_t)slice * SHARED) != (double)(step + 1) * whole * (SHARED / 5);
  }
  return bad;
}

static int GoesOn(const Program* p, long step, long steps, const char* stop) {
  int on = steps > 0 ? step < steps : p->rank != 0 || access(stop, F_OK) != 0;
  MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);  // nobody writes before all have read
  MPI_Barrier(MPI_COMM_WORLD);
  return on;
}

static long Verify(Program* p, long steps) {
  long wrong = 0;
  const double n = (double)steps;
  for (int t = 0; t < p->threads; ++t) {
    const size_t at = (size_t)(p->rank * p->threads + t) * SHARED;
    const Work* w = &p->work[t];
    wrong += WrongPrivate(w, steps) + WrongShared(p->window + at, w->add, n, 0);
    wrong += WrongShared(p->file + at, w->add, 2 * n, 0) + WrongShared(p->segment + at, w->add, n, 3 * n);
  }
  return wrong;
}

static void Dump(const Program* p, const char* path) {
  FILE* out = fopen(path, "wb");
  if (out == NULL || fwrite(p->window, 8, p->doubles, out) != p->doubles ||
      fwrite(p->segment, 8, p->doubles, out) != p->doubles || fclose(out) != 0)
    Die(path);
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  if (argc != 5) return fprintf(stderr, "usage: hybrid STEPS STOP FILE OUT\n"), 2;
  Program p = {.threads = omp_get_max_threads()};
  if (p.threads > MAX_THREADS) omp_set_num_threads(p.threads = MAX_THREADS);
  MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &p.ranks);
  Open(&p, argv[3]);
  long step = 0, bad = 0;
  for (const long steps = atol(argv[1]); GoesOn(&p, step, steps, argv[2]); ++step) bad += Step(&p, step);
  bad += Verify(&p, step);
  uint64_t own = 14695981039346656037ull, all = 0;
  for (int t = 0; t < p.threads; ++t) own = Mix(own, p.work[t].x, PRIVATE);
  long total = 0;
  MPI_Reduce(&own, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
  MPI_Allreduce(&bad, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (p.rank == 0) {
    Dump(&p, argv[4]);
    printf("{\"steps\": %ld, \"bad\": %ld, \"checksum\": \"%016llx\"}\n", step, total, (unsigned long long)all);
    fflush(stdout);
  }
  MPI_Win_unlock_all(p.win);
  MPI_Win_free(&p.win);
  MPI_Finalize();
  return total != 0;
}
