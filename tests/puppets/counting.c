// Fixed work whose time is measured from outside: STEPS passes over two arrays, then one line with a checksum.
// Usage: counting STEPS [ELEMENTS]       MPI x OpenMP; the output depends on nothing but the arguments.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double WallSeconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const long steps = argc > 1 ? atol(argv[1]) : 1000;
  const long n = argc > 2 ? atol(argv[2]) : 100000;
  double* a = malloc((size_t)n * sizeof(double));
  double* b = malloc((size_t)n * sizeof(double));
  for (long i = 0; i < n; ++i) a[i] = 1.0 + (double)((i + rank) % 11), b[i] = 0.5 + (double)(i % 5);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = WallSeconds();
  for (long s = 0; s < steps; ++s) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; ++i) {  // LOOP work begin
      a[i] = b[i] / a[i] + 0.25 * a[i];
    }  // LOOP work end
  }
  const double seconds = WallSeconds() - begin;
  uint64_t check = 0;
  for (long i = 0; i < n; ++i) {
    uint64_t bits;
    memcpy(&bits, &a[i], sizeof(bits));
    check = check * 31 + bits;
  }
  printf("rank %d check %016llx\n", rank, (unsigned long long)check);
  fprintf(stderr, "rank %d seconds %.6f\n", rank, seconds);
  MPI_Finalize();
  return 0;
}
