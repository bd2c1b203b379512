/* small_job.c - small_job SECONDS CODE: an MPI program that works a little for about SECONDS, prints a sum and exits with CODE.
 *
 * Each turn computes for some 0.5 ms and sleeps for 4.5 ms, so that many of them fit on a small machine and still last. The
 * number of turns follows from SECONDS alone, and so does the sum: every run of the same length prints the same line.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kTurnsPerSecond = 200, kElements = 4096, kPasses = 40 };

static double values[kElements];

static double turn(int number) {
  double sum = 0;
  for (int pass = 0; pass < kPasses; pass++)
    for (int i = 0; i < kElements; i++) values[i] = values[i] * 0.5 + (double)((i ^ number) & 15);
  for (int i = 0; i < kElements; i++) sum += values[i];
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int turns = (int)(atof(argc > 1 ? argv[1] : "1") * kTurnsPerSecond);
  const struct timespec rest = {0, 4500000};
  double mine = rank, all = 0;
  for (int i = 0; i < turns; i++) {
    mine += turn(i + rank);
    nanosleep(&rest, NULL);
  }
  MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("ranks %d sum %.17g\n", ranks, all);
  MPI_Finalize();
  return argc > 2 ? atoi(argv[2]) : 0;
}
