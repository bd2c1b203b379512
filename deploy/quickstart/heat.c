// A small but real MPI x OpenMP program: heat conduction in a square plate, Jacobi iteration, rows divided over ranks.
// Usage: heat SECONDS [SIZE]      prints the residual and a checksum of the final temperatures.
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks, size, rows;

static double* At(double* grid, int row) { return grid + (size_t)row * (size_t)size; }

static void ExchangeHalo(double* grid) {
  const int up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int down = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Sendrecv(At(grid, 1), size, MPI_DOUBLE, up, 0, At(grid, rows + 1), size, MPI_DOUBLE, down, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(At(grid, rows), size, MPI_DOUBLE, down, 1, At(grid, 0), size, MPI_DOUBLE, up, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

static void Relax(const double* old, double* next, const double* conductivity) {
#pragma omp parallel for schedule(static)
  for (int i = 1; i <= rows; ++i) {
    for (int j = 1; j < size - 1; ++j) {
      const size_t at = (size_t)i * (size_t)size + (size_t)j;
      const double mean = 0.25 * (old[at - 1] + old[at + 1] + old[at - (size_t)size] + old[at + (size_t)size]);
      next[at] = old[at] + (mean - old[at]) / (1.0 + conductivity[at]);
    }
  }
}

static double Residual(const double* old, const double* next) {
  double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (int i = 1; i <= rows; ++i) {
    for (int j = 1; j < size - 1; ++j) {
      const size_t at = (size_t)i * (size_t)size + (size_t)j;
      const double difference = next[at] - old[at];
      sum += difference * difference;
    }
  }
  double total = 0;
  MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sqrt(total);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double seconds = argc > 1 ? atof(argv[1]) : 20;
  size = argc > 2 ? atoi(argv[2]) : 1024;
  rows = size / ranks;
  const size_t cells = (size_t)(rows + 2) * (size_t)size;
  double* old = calloc(cells, sizeof(double));
  double* next = calloc(cells, sizeof(double));
  double* conductivity = calloc(cells, sizeof(double));
  for (size_t i = 0; i < cells; ++i) conductivity[i] = 0.1 + 0.01 * (double)(i % 10);
  if (rank == 0)
    for (int j = 0; j < size; ++j) At(old, 0)[j] = At(next, 0)[j] = 100.0;
  const double end = MPI_Wtime() + seconds;
  double residual = 1;
  long step = 0;
  for (int go = 1; go; ++step) {
    ExchangeHalo(old);
    Relax(old, next, conductivity);
    if (step % 10 == 0) residual = Residual(old, next);
    double* swap = old;
    old = next;
    next = swap;
    if (step % 50 == 49) {
      go = MPI_Wtime() < end;
      MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
  }
  if (rank == 0) printf("heat: %ld steps, residual %.6g\n", step, residual);
  free(old);
  free(next);
  free(conductivity);
  MPI_Finalize();
  return 0;
}
