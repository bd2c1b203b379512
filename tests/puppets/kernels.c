// One hot loop of known nature, over and over, for a given number of steps; every result feeds the next step, so that one
// changed bit anywhere changes the checksum printed at the end.
// Usage: kernels KERNEL N STEPS THREADS      prints one JSON line: {"kernel":..., "checksum":..., "instance_ns":...}
// N is the trip count of one instance (one thread's part of a step). With 0 STEPS it goes on until SIGTERM; the line says
// how many steps it made, and a run of as many computes the same. PUPPET_PAGES=huge: its arrays are in huge pages.
// PUPPET_PASSES=K: a thread makes K instances in a step, between two meetings of the team.
#define _GNU_SOURCE
#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

// As wide as the build's instruction set: what these loops wait for must not depend on what a compiler vectorises.
#if defined(__AVX512F__)
#define LANES 8
#elif defined(__AVX__)
#define LANES 4
#else
#define LANES 2
#endif
typedef long long Integers __attribute__((vector_size(8 * LANES), may_alias));
typedef double Doubles __attribute__((vector_size(8 * LANES), may_alias));

#define LINE 8  // words

typedef struct Node {
  struct Node* next;
  long pad[LINE - 1];  // a line each
} Node;

typedef struct {
  long n;
  double *a, *b, *c;  // private to the thread, 64-byte aligned; what a kernel does not use is not there
  long m;             // doubles in b
  double* rows;  // n lines of LINE doubles
  long* next;         // n lines; the first word of each is the index of the next one's, one cycle through all
  Node* nodes;        // the same by pointer
  int* index;
  double small[1024];
  double result;
  volatile double* shared;  // this thread's cell of `cells`
  double* window;           // n doubles that other processes may see
} Part;

// Vectors, because a core that issues seven scalar instructions an element takes three quarters of what a Zen 4's memory does.
// n is a multiple of LANES.
__attribute__((noinline)) static void Triad(Part* p) {
  Doubles *restrict a = (Doubles*)p->a, *restrict b = (Doubles*)p->b, *restrict c = (Doubles*)p->c;
  for (long i = 0; i < p->n / LANES; ++i) a[i] = b[i] + 0.5 * c[i];  // LOOP triad
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

// Vectors, because compilers pack eight scalar accumulators into one of AVX-512, which waits for itself again.
__attribute__((noinline)) static void Sum8(Part* p) {
  const Doubles* b = (const Doubles*)p->b;
  const long n = p->n / LANES;
  Doubles s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
  for (long i = 0; i + 8 <= n; i += 8) {  // LOOP sum8
    s0 += b[i], s1 += b[i + 1], s2 += b[i + 2], s3 += b[i + 3];
    s4 += b[i + 4], s5 += b[i + 5], s6 += b[i + 6], s7 += b[i + 7];
  }
  s0 = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
  p->result = s0[0] + s0[1];
}

// Keeps compilers from packing what made it into vectors.
#define KEEP(x) __asm__ volatile("" : "+x"(x))

// Algorithm 1 of Bendifallah 2015, unrolled as its table 4.1 has it: in place, four divisions by the same value a pass, the
// squares into two accumulators. Down a column of a matrix of short rows, as Numerical Recipes in C has it: today's dividers
// are no faster than a large third-level cache feeds them with consecutive elements, but every line for one element is dear.
// n is a multiple of 4.
__attribute__((noinline)) static void Svdcmp(Part* p) {
  double* restrict a = p->rows;
  const double scale = p->b[0];
  double s0 = 0, s1 = 0;
  for (long k = 0; k < p->n; k += 4, a += 4 * LINE) {  // LOOP svdcmp
    double x0 = a[0] / scale, x1 = a[LINE] / scale, x2 = a[2 * LINE] / scale, x3 = a[3 * LINE] / scale;
    KEEP(x0);
    KEEP(x1);
    KEEP(x2);
    KEEP(x3);
    a[0] = x0, a[LINE] = x1, a[2 * LINE] = x2, a[3 * LINE] = x3;
    s0 += x0 * x0, s1 += x1 * x1, s0 += x2 * x2, s1 += x3 * x3;
  }
  p->result = s0 + s1;
}

#define LOAD(sum, k) sum ^= at[k], with_prefetch ? __builtin_prefetch(at + (k)) : (void)0

// Two or three loads a cycle, always of the same 16 KB (half of the smallest L1 around), and next to nothing else; with_prefetch:
// a prefetch of the same bytes beside each, which is what PREFETCH(100) adds. n is a multiple of 64, 2048 at least.
static inline __attribute__((always_inline)) void LoadsWith(Part* p, int with_prefetch) {
  const Integers* b = (const Integers*)p->b;
  const long n = p->n / LANES;
  Integers s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
  for (long i = 0; i < n; i += 8) {  // LOOP loads
    const Integers* at = b + (i & (2048 / LANES - 1));
    LOAD(s0, 0), LOAD(s1, 1), LOAD(s2, 2), LOAD(s3, 3);
    LOAD(s4, 4), LOAD(s5, 5), LOAD(s6, 6), LOAD(s7, 7);
  }
  s0 ^= s1 ^ s2 ^ s3 ^ s4 ^ s5 ^ s6 ^ s7;
  p->result = (double)((s0[0] ^ s0[1]) & 0xffffff) * 1e-3;
}

__attribute__((noinline)) static void Loads(Part* p) { LoadsWith(p, 0); }

__attribute__((noinline)) static void LoadsPrefetched(Part* p) { LoadsWith(p, 1); }

// Writes one word of its cell and reads the other: dear only when another thread writes into the same line meanwhile.
__attribute__((noinline)) static void Count(Part* p) {
  volatile double* cell = p->shared;
  const double* b = p->b;
  double sum = 0;
  for (long i = 0; i < p->n; ++i) cell[0] = b[i & 255], sum += cell[1];  // LOOP count
  p->result = sum;
}

// Each load needs the one before; how many there are does not.
__attribute__((noinline)) static void Chase(Part* p) {
  const Node* at = p->nodes;
  for (long i = 0; i < p->n; ++i) at = at->next;  // LOOP chase
  p->result = (double)(at - p->nodes);
}

// The same by index.
__attribute__((noinline)) static void Hops(Part* p) {
  const long* next = p->next;
  long at = 0;
  for (long i = 0; i < p->n; ++i) at = next[at];  // LOOP hops
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
  for (long i = 0; i < p->n; ++i) w[i] += b[i];  // LOOP window: one pass too many would show for ever
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

// The stores are integers, as what decides the branch: only their addresses tell that no store decides it.
// Two divisions, one upon the other: where dividers are quick, one alone takes a third of the loop.
__attribute__((noinline)) static void Limited(Part* p) {
  const double *b = p->b, *c = p->c;
  const int* index = p->index;
  long* out = p->next;
  long i = 0;
  for (; i < p->n; ++i) {  // LOOP limited
    if (index[i] < 0) break;
    out[i] = (long)(b[i] / c[i] / c[i] * 1000.0);
  }
  p->result = (double)out[i / 2];
}

// What a kernel uses; b is always there, but short when it is not named.
enum { kA = 1, kB = 2, kC = 4, kNext = 8, kNodes = 16, kIndex = 32, kWindow = 64, kRows = 128 };

typedef struct {
  const char* name;
  void (*run)(Part*);
  int uses;
} Kernel;

static const Kernel kKernels[] = {
    {"triad", Triad, kA | kB | kC}, {"divide", Divide, kA | kB | kC},  {"sqrt", Root, kA | kB},
    {"sum1", Sum1, kB},             {"sum8", Sum8, kB},                {"svdcmp", Svdcmp, kRows},
    {"loads", Loads, kB},           {"loads_prefetched", LoadsPrefetched, kB},
    {"count", Count, 0},            {"count_padded", Count, 0},        {"chase", Chase, kNodes},
    {"hops", Hops, kNext},          {"empty", Empty, 0},               {"two_arrays", TwoArrays, kB},
    {"in_place", InPlace, kA | kB}, {"gather", Gather, kB | kIndex},   {"window", Window, kB | kWindow},
    {"branchy", Branchy, kB | kIndex}, {"limited", Limited, kB | kC | kIndex | kNext}};

static uint64_t Random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

// In huge pages when PUPPET_PAGES=huge asks for them: the kernel gives them to whole ones that were advised before they are touched.
static void* Memory(size_t bytes, int shared) {
  const size_t huge_page = 2 << 20;
  const char* pages = getenv("PUPPET_PAGES");
  const int huge = !shared && pages != NULL && strcmp(pages, "huge") == 0;
  const size_t whole = huge ? (bytes + huge_page - 1) / huge_page * huge_page : bytes;
  char* p = mmap(NULL, whole + (huge ? huge_page : 4096), PROT_READ | PROT_WRITE,
                 (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) exit(3);
  if (!huge) return p;
  p += (huge_page - (uintptr_t)p % huge_page) % huge_page;
  madvise(p, whole, MADV_HUGEPAGE);
  return p;
}

// One cycle through all lines (Sattolo).
static void Cycle(long* next, long n, uint64_t* seed) {
  for (long i = 0; i < n; ++i) next[LINE * i] = LINE * i;
  for (long i = n - 1; i > 0; --i) {
    const long j = (long)(Random(seed) % (uint64_t)i), t = next[LINE * i];
    next[LINE * i] = next[LINE * j];
    next[LINE * j] = t;
  }
}

static double* Values(long n, double least, double unit, uint64_t* seed) {
  double* values = Memory((size_t)n * 8 + 2048, 0);
  for (long i = 0; i < n; ++i) values[i] = least + (double)(Random(seed) >> 40) * unit;
  for (long i = n; i < 256; ++i) values[i] = 1.0;
  return values;
}

static void Fill(Part* p, const Kernel* k, long n, int thread) {
  uint64_t seed = 88172645463325252ull + (uint64_t)thread;
  p->n = n;
  p->m = k->uses & kB ? n : 256;
  p->b = Values(p->m, 1.0, 1e-7, &seed);
  if (k->uses & kA) p->a = Values(n, 1.0, 1e-7, &seed);
  if (k->uses & kC) p->c = Values(n, 1.5, 1e-8, &seed);
  if (k->uses & kRows) p->rows = Values(n * LINE, 1.0, 1e-7, &seed);
  if (k->uses & (kNext | kNodes)) {
    p->next = Memory((size_t)n * sizeof(Node), 0);
    Cycle(p->next, n, &seed);
  }
  if (k->uses & kNodes) {
    p->nodes = Memory((size_t)n * sizeof(Node), 0);
    for (long i = 0; i < n; ++i) p->nodes[i].next = &p->nodes[p->next[LINE * i] / LINE];
  }
  if (k->uses & kIndex) p->index = Memory((size_t)n * sizeof(int), 0);
  for (long i = 0; i < n && p->index != NULL; ++i) p->index[i] = (int)(Random(&seed) % (uint64_t)n);
  if (k->uses & kWindow) p->window = Memory((size_t)n * 8, 1);
  for (int i = 0; i < 1024; ++i) p->small[i] = 0.5 + 1e-3 * i;
}

// A few of the results become inputs; values stay near one.
static void Feed(Part* p, long step) {
  const long at = (step * 7919) % p->m;
  if (p->a != NULL || p->rows != NULL) {
    const double x = p->a != NULL ? p->a[at] : p->result;
    p->b[(at + 1) % p->m] = 1.0 + (x - floor(x)) * 0.25;
    p->b[0] = (step & 1) ? 1.25 : 0.8;  // the scale of svdcmp: two steps cancel, so its values stay near one
  } else {
    p->b[at] = 1.0 + (p->result - floor(p->result)) * 0.25;
  }
}

static uint64_t Mix(uint64_t sum, const void* data, size_t bytes) {
  const unsigned char* at = data;
  if (data == NULL) return sum;
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy(&word, at + i, 8);
    sum = (sum ^ word) * 1099511628211ull;
  }
  return sum;
}

static volatile sig_atomic_t stopped;

static void Stop(int number) { stopped = number; }

int main(int argc, char** argv) {
  if (argc != 5) return fprintf(stderr, "usage: kernels KERNEL N STEPS THREADS\n"), 2;
  const Kernel* kernel = NULL;
  for (size_t i = 0; i < sizeof kKernels / sizeof *kKernels; ++i)
    if (strcmp(kKernels[i].name, argv[1]) == 0) kernel = &kKernels[i];
  const long n = atol(argv[2]), steps = atol(argv[3]);
  const int threads = atoi(argv[4]);
  if (kernel == NULL || n < 1 || threads < 1 || threads > 64) return fprintf(stderr, "kernels: bad arguments\n"), 2;
  struct sigaction stop = {.sa_handler = Stop, .sa_flags = SA_RESTART};
  sigaction(SIGTERM, &stop, NULL);
  omp_set_num_threads(threads);
  const char* asked = getenv("PUPPET_PASSES");
  const long passes = asked != NULL && atol(asked) > 0 ? atol(asked) : 1;
  Part* parts = aligned_alloc(64, sizeof(Part) * (size_t)threads);
  double* cells = aligned_alloc(4096, 4096 * 64);
  memset(cells, 0, 4096 * 64);
  memset(parts, 0, sizeof(Part) * (size_t)threads);
  const int stride = strcmp(kernel->name, "count_padded") == 0 ? 512 : 2;
  struct timespec begin, end;
#pragma omp parallel
  {
    const int t = omp_get_thread_num();
    Fill(&parts[t], kernel, n, t);
    parts[t].shared = &cells[t * stride];
  }
  clock_gettime(CLOCK_MONOTONIC, &begin);
  long step = 0;
  for (; steps > 0 ? step < steps : !stopped; ++step) {
#pragma omp parallel
    {
      Part* p = &parts[omp_get_thread_num()];
      for (long pass = 0; pass < passes; ++pass) kernel->run(p);
      Feed(p, step);
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  uint64_t sum = 14695981039346656037ull;
  for (int t = 0; t < threads; ++t) {
    sum = Mix(sum, parts[t].a, (size_t)n * 8);
    sum = Mix(sum, parts[t].b, (size_t)parts[t].m * 8);
    sum = Mix(sum, parts[t].rows, (size_t)n * LINE * 8);
    sum = Mix(sum, parts[t].window, (size_t)n * 8);
    sum = Mix(sum, &parts[t].result, 8);
    sum = Mix(sum, (const void*)parts[t].shared, 8);
  }
  const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
  printf("{\"kernel\": \"%s\", \"n\": %ld, \"steps\": %ld, \"threads\": %d, \"checksum\": \"%016llx\", "
         "\"seconds\": %.6f, \"instance_ns\": %.1f}\n",
         kernel->name, n, step, threads, (unsigned long long)sum, seconds, seconds * 1e9 / (double)(step * passes));
  return 0;
}
