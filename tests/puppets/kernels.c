// One hot loop of known nature, over and over, for a given number of steps; every result feeds the next step, so that one
// changed bit anywhere changes the checksum printed at the end.
// Usage: kernels KERNEL N STEPS THREADS      prints one JSON line: {"kernel":..., "checksum":..., "instance_ns":...}
// N is the trip count of one instance (one thread's part of a step).
#define _GNU_SOURCE
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef struct {
  long n;
  double *a, *b, *c;  // private to the thread, 64-byte aligned
  long* next;         // a permutation of 0..n-1
  int* index;
  double small[1024];
  double result;
  volatile double* shared;  // this thread's cell of `cells`
  double* window;           // n doubles that other processes may see
} Part;

__attribute__((noinline)) static void Triad(Part* p) {
  double *restrict a = p->a, *restrict b = p->b, *restrict c = p->c;
  for (long i = 0; i < p->n; ++i) a[i] = b[i] + 0.5 * c[i];  // LOOP triad
}

__attribute__((noinline)) static void Divide(Part* p) {
  double *restrict a = p->a, *restrict b = p->b, *restrict c = p->c;
  for (long i = 0; i < p->n; ++i) a[i] = b[i] / c[i];  // LOOP divide
}

__attribute__((noinline)) static void Root(Part* p) {
  double *restrict a = p->a, *restrict b = p->b;
  for (long i = 0; i < p->n; ++i) a[i] = sqrt(b[i]);  // LOOP sqrt
}

__attribute__((noinline)) static void Sum1(Part* p) {
  const double* b = p->b;
  double sum = 0;
  for (long i = 0; i < p->n; ++i) sum += b[i];  // LOOP sum1
  p->result = sum;
}

__attribute__((noinline)) static void Sum8(Part* p) {
  const double* b = p->b;
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
  for (long i = 0; i + 8 <= p->n; i += 8) {  // LOOP sum8
    s0 += b[i], s1 += b[i + 1], s2 += b[i + 2], s3 += b[i + 3];
    s4 += b[i + 4], s5 += b[i + 5], s6 += b[i + 6], s7 += b[i + 7];
  }
  p->result = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
}

// Algorithm 1 of Bendifallah 2015: in place, one division and one accumulation.
__attribute__((noinline)) static void Svdcmp(Part* p) {
  double* a = p->a;
  const double scale = p->b[0];
  double s = 0;
  for (long k = 0; k < p->n; ++k) {  // LOOP svdcmp
    a[k] = a[k] / scale;
    s += a[k] * a[k];
  }
  p->result = s;
}

// Writes one word of its cell and reads the other: dear only when another thread writes into the same line meanwhile.
__attribute__((noinline)) static void Count(Part* p) {
  volatile double* cell = p->shared;
  const double* b = p->b;
  double sum = 0;
  for (long i = 0; i < p->n; ++i) cell[0] = b[i & 255], sum += cell[1];  // LOOP count
  p->result = sum;
}

__attribute__((noinline)) static void Chase(Part* p) {
  const long* next = p->next;
  long at = 0;
  for (long i = 0; i < p->n; ++i) at = next[at];  // LOOP chase
  p->result = (double)at;
}

__attribute__((noinline)) static void Empty(Part* p) {
  for (long i = 0; i < p->n; ++i) __asm__ volatile("" ::: "memory");  // LOOP empty
  p->result = (double)p->n;
}

__attribute__((noinline)) static void TwoArrays(Part* p) {
  const double* big = p->b;
  const double* small = p->small;
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (long i = 0; i + 32 <= p->n; i += 32) {  // LOOP two_arrays
    s0 += big[i] * small[i & 1023];
    s1 += big[i + 8] * small[(i + 1) & 1023];
    s2 += big[i + 16] * small[(i + 2) & 1023];
    s3 += big[i + 24] * small[(i + 3) & 1023];
  }
  p->result = (s0 + s1) + (s2 + s3);
}

__attribute__((noinline)) static void InPlace(Part* p) {
  double *restrict a = p->a, *restrict b = p->b;
  for (long i = 0; i < p->n; ++i) a[i] += 1e-3 * b[i];  // LOOP in_place
}

__attribute__((noinline)) static void Gather(Part* p) {
  const double* b = p->b;
  const int* index = p->index;
  double s = 0;
  for (long i = 0; i < p->n; ++i) s += b[index[i]];  // LOOP gather
  p->result = s;
}

__attribute__((noinline)) static void Window(Part* p) {
  double *restrict w = p->window, *restrict b = p->b;
  for (long i = 0; i < p->n; ++i) w[i] = w[i] * 0.5 + b[i];  // LOOP window
}

// Several blocks, two exits.
__attribute__((noinline)) static void Branchy(Part* p) {
  const double* b = p->b;
  double s = 0;
  for (long i = 0; i < p->n; ++i) {  // LOOP branchy
    if (b[i] > 1e9) break;
    if (p->index[i] & 1)
      s += b[i];
    else
      s -= 0.5 * b[i];
  }
  p->result = s;
}

typedef struct {
  const char* name;
  void (*run)(Part*);
  int stores;  // into a
} Kernel;

static const Kernel kKernels[] = {
    {"triad", Triad, 1},      {"divide", Divide, 1},  {"sqrt", Root, 1},        {"sum1", Sum1, 0},
    {"sum8", Sum8, 0},        {"svdcmp", Svdcmp, 1},  {"count", Count, 0},      {"count_padded", Count, 0},
    {"chase", Chase, 0},      {"empty", Empty, 0},    {"two_arrays", TwoArrays, 0},
    {"in_place", InPlace, 1}, {"gather", Gather, 0},  {"window", Window, 0},    {"branchy", Branchy, 0}};

static uint64_t Random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void* Memory(size_t bytes, int shared) {
  void* p = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) exit(3);
  return p;
}

static void Fill(Part* p, long n, int thread) {
  uint64_t seed = 88172645463325252ull + (uint64_t)thread;
  p->n = n;
  p->a = Memory((size_t)n * 8, 0);
  p->b = Memory((size_t)n * 8 + 2048, 0);
  p->c = Memory((size_t)n * 8, 0);
  p->next = Memory((size_t)n * sizeof(long), 0);
  p->index = Memory((size_t)n * sizeof(int), 0);
  p->window = Memory((size_t)n * 8, 1);
  for (long i = 0; i < n; ++i) {
    p->a[i] = 1.0 + (double)(Random(&seed) >> 40) * 1e-7;
    p->b[i] = 1.0 + (double)(Random(&seed) >> 40) * 1e-7;
    p->c[i] = 1.5 + (double)(Random(&seed) >> 40) * 1e-8;
    p->index[i] = (int)(Random(&seed) % (uint64_t)n);
    p->next[i] = i;
  }
  for (long i = n; i < 256; ++i) p->b[i] = 1.0;
  for (long i = n - 1; i > 0; --i) {  // Sattolo: one cycle
    const long j = (long)(Random(&seed) % (uint64_t)i), t = p->next[i];
    p->next[i] = p->next[j];
    p->next[j] = t;
  }
  for (int i = 0; i < 1024; ++i) p->small[i] = 0.5 + 1e-3 * i;
}

// A few of the results become inputs; values stay near one.
static void Feed(Part* p, const Kernel* k, long step) {
  const long at = (step * 7919) % p->n;
  if (k->stores) {
    const double x = p->a[at];
    p->b[(at + 1) % p->n] = 1.0 + (x - floor(x)) * 0.25;
    p->b[0] = (step & 1) ? 1.25 : 0.8;  // the scale of svdcmp: two steps cancel, so its values stay near one
  } else {
    p->b[at] = 1.0 + (p->result - floor(p->result)) * 0.25;
  }
}

static uint64_t Mix(uint64_t sum, const void* data, size_t bytes) {
  const unsigned char* at = data;
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy(&word, at + i, 8);
    sum = (sum ^ word) * 1099511628211ull;
  }
  return sum;
}

int main(int argc, char** argv) {
  if (argc != 5) return fprintf(stderr, "usage: kernels KERNEL N STEPS THREADS\n"), 2;
  const Kernel* kernel = NULL;
  for (size_t i = 0; i < sizeof kKernels / sizeof *kKernels; ++i)
    if (strcmp(kKernels[i].name, argv[1]) == 0) kernel = &kKernels[i];
  const long n = atol(argv[2]), steps = atol(argv[3]);
  const int threads = atoi(argv[4]);
  if (kernel == NULL || n < 1 || threads < 1 || threads > 64) return fprintf(stderr, "kernels: bad arguments\n"), 2;
  omp_set_num_threads(threads);
  Part* parts = aligned_alloc(64, sizeof(Part) * (size_t)threads);
  double* cells = aligned_alloc(4096, 4096 * 64);
  memset(cells, 0, 4096 * 64);
  memset(parts, 0, sizeof(Part) * (size_t)threads);
  const int stride = strcmp(kernel->name, "count_padded") == 0 ? 512 : 2;
  struct timespec begin, end;
#pragma omp parallel
  {
    const int t = omp_get_thread_num();
    Fill(&parts[t], n, t);
    parts[t].shared = &cells[t * stride];
  }
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long step = 0; step < steps; ++step) {
#pragma omp parallel
    {
      Part* p = &parts[omp_get_thread_num()];
      kernel->run(p);
      Feed(p, kernel, step);
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  uint64_t sum = 14695981039346656037ull;
  for (int t = 0; t < threads; ++t) {
    sum = Mix(sum, parts[t].a, (size_t)n * 8);
    sum = Mix(sum, parts[t].b, (size_t)n * 8);
    sum = Mix(sum, parts[t].window, (size_t)n * 8);
    sum = Mix(sum, &parts[t].result, 8);
    sum = Mix(sum, (const void*)parts[t].shared, 8);
  }
  const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
  printf("{\"kernel\": \"%s\", \"n\": %ld, \"steps\": %ld, \"threads\": %d, \"checksum\": \"%016llx\", "
         "\"seconds\": %.6f, \"instance_ns\": %.1f}\n",
         kernel->name, n, steps, threads, (unsigned long long)sum, seconds, seconds * 1e9 / (double)steps);
  return 0;
}
