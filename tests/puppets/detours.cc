// A hot loop whose rare paths call functions: through a pointer, one that throws what the loop catches, and one that throws
// what is caught outside. Every result feeds the next step; it goes on until SIGTERM, or for as many steps as it is told, and
// prints {"steps":..., "checksum":..., "tallies":..., "caught":..., "left":...}.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

volatile std::sig_atomic_t over = 0;

struct Counts {
  long tallies = 0, caught = 0, left = 0;
};

struct Within {
  double value;
};
struct Outside {
  long at;
};

__attribute__((noinline)) void Tally(double value, double* sums, Counts* counts) {
  sums[0] += value;
  ++counts->tallies;
}

__attribute__((noinline)) double Doubt(double value, long at) {
  if (at % 3 == 0) throw Outside{at};
  throw Within{value * 0.5};
}

void (*volatile tally)(double, double*, Counts*) = Tally;

__attribute__((noinline)) void Sweep(double* a, const double* b, const int* kind, long n, long from, double* sums,
                                     Counts* counts) {
  for (long i = from; i < n; ++i) {  // LOOP detours begin
    double value = b[i] / (a[i] + 3.0) / (b[i] + 1.5);
    if (kind[i] != 0) {
      if (kind[i] == 1) {
        tally(value, sums, counts);
      } else {
        try {
          value += Doubt(value, i);
        } catch (const Within& within) {
          value = within.value;
          ++counts->caught;
        }
      }
    }
    a[i] = value;  // LOOP detours end
  }
}

}  // namespace

int main(int argc, char** argv) {
  const long n = argc > 1 ? std::atol(argv[1]) : 4000;
  const long steps = argc > 2 ? std::atol(argv[2]) : 0;
  std::signal(SIGTERM, [](int) { over = 1; });
  std::vector<double> a(n), b(n);
  std::vector<int> kind(n, 0);
  for (long i = 0; i < n; ++i) {
    a[i] = 1.0 / (i + 1);
    b[i] = 1.0 + (i % 7);
    if (i % 997 == 500) kind[i] = 1;
    if (i % 1511 == 700) kind[i] = 2;
  }
  double sums[1] = {0};
  Counts counts;
  long step = 0;
  for (; steps != 0 ? step < steps : over == 0; ++step) {
    long from = 0;
    while (from < n) {
      try {
        Sweep(a.data(), b.data(), kind.data(), n, from, sums, &counts);
        from = n;
      } catch (const Outside& outside) {
        ++counts.left;
        from = outside.at + 1;
      }
    }
    b[step % n] += 1e-9 * (sums[0] + a[step % n]) / (step + 1);
  }
  uint64_t bits = 0;
  std::memcpy(&bits, &sums[0], sizeof(bits));
  for (long i = 0; i < n; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, &a[i], sizeof(word));
    bits = bits * 1099511628211u ^ word;
  }
  std::printf("{\"steps\": %ld, \"checksum\": \"%016lx\", \"tallies\": %ld, \"caught\": %ld, \"left\": %ld}\n", step, bits,
              counts.tallies, counts.caught, counts.left);
}
