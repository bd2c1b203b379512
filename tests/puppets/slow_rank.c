// Every rank does the same step, but rank SLOW does it twice as often before each barrier: it is the one to be reported.
// Usage: slow_rank SECONDS SLOW
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N 200000
static double a[N], b[N];

__attribute__((noinline)) static void Step(void) {
  for (int i = 0; i < N; ++i) {  // LOOP step begin
    a[i] = 0.5 * a[i] + b[i] / (1.0 + a[i]);
  }  // LOOP step end
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double seconds = argc > 1 ? atof(argv[1]) : 10;
  const int slow = argc > 2 ? atoi(argv[2]) : 1;
  for (int i = 0; i < N; ++i) b[i] = i % 17;
  const double end = MPI_Wtime() + seconds;
  int go = 1;
  while (go) {
    const int steps = rank == slow ? 20 : 10;
    for (int s = 0; s < steps; ++s) Step();
    go = MPI_Wtime() < end;
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  double sum = 0;
  for (int i = 0; i < N; ++i) sum += a[i];
  printf("rank %d sum %.17g\n", rank, sum);
  MPI_Finalize();
  return 0;
}
