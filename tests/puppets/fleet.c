// A job of several nodes: all ranks take the same steps together, and every rank's numbers depend on all the others', so
// that one wrong bit anywhere shows everywhere. Nothing depends on time or on where a rank runs.
// Usage: fleet STEPS STOP SLOW    0 STEPS: until the file STOP exists (rank 0 looks); rank SLOW computes twice as much
// Every rank prints one JSON line: {"rank":..., "steps":..., "checksum":...}.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N 600       // doubles of an array: all three are less than half of a first level of 32 KiB
#define BATCH 2000  // entries of the loop in a step, some milliseconds

static double a[N], b[N], c[N];

__attribute__((noinline)) static void Divide(void) {
  for (int i = 0; i < N; ++i) a[i] = b[i] / c[i] / c[i];  // LOOP divide
}

static uint64_t Digest(uint64_t sum) {
  for (int i = 0; i < N; ++i) {
    uint64_t word;
    memcpy(&word, &a[i], sizeof word);
    sum = (sum ^ word) * 1099511628211ull;
  }
  return sum;
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4) return fprintf(stderr, "usage: fleet STEPS STOP SLOW\n"), 2;
  const long steps = atol(argv[1]);
  const int entries = rank == atoi(argv[3]) ? 2 * BATCH : BATCH;
  for (int i = 0; i < N; ++i) b[i] = 1 + (i + rank) % 17 * 0.125, c[i] = 1.5 + i % 13 * 0.25;
  uint64_t sum = 14695981039346656037ull;
  long step = 0;
  for (;; ++step) {
    int on = steps > 0 ? step < steps : rank != 0 || access(argv[2], F_OK) != 0;
    MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!on) break;
    for (int entry = 0; entry < entries; ++entry) Divide();
    uint64_t all = 0;
    sum = Digest(sum);
    MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
    b[step % N] = 1 + (double)(all & 1023) / 1024;  // the next step's input
  }
  printf("{\"rank\": %d, \"steps\": %ld, \"checksum\": \"%016llx\"}\n", rank, step,
         (unsigned long long)sum);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
