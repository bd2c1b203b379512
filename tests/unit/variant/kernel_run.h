// tests/unit/variant/kernel_run.h - what the kernels of kernels.c and kernels.f90 work on, and one run of one of them.
#ifndef TESTS_UNIT_VARIANT_KERNEL_RUN_H_
#define TESTS_UNIT_VARIANT_KERNEL_RUN_H_

#include <cstddef>
#include <vector>

namespace perfd::agent {

struct Node {
  Node* next = nullptr;
  double value = 0;
};

inline constexpr size_t kElements = 1024;
inline constexpr long kTrips = 211;

// What the kernels take; mirrors struct data of kernels.c.
struct Arrays {
  double *a, *b, *c;
  float* f;
  long* index;
  int* small;
  Node* list;
};

struct Content {
  std::vector<double> a, b, c;
  std::vector<float> f;
  std::vector<long> index;
  std::vector<int> small;
  std::vector<Node> nodes;

  static Content Make() {
    Content x;
    for (size_t i = 0; i < kElements; ++i) {
      x.a.push_back(static_cast<double>((i * 37) % 101) / 97);
      x.b.push_back(1 + static_cast<double>((i * 53) % 89) / 83);
      x.c.push_back(2 + static_cast<double>((i * 29) % 71) / 67);
      x.f.push_back(static_cast<float>(i) / 7);
      x.index.push_back(static_cast<long>((i * 61) % kElements));
      x.small.push_back(static_cast<int>(i % 13));
      x.nodes.push_back({nullptr, static_cast<double>(i)});
    }
    for (size_t i = 0; i < kElements; ++i) x.nodes[i].next = &x.nodes[(i * 5 + 1) % kElements];
    return x;
  }
  Arrays Pointers() {
    return {a.data(), b.data(), c.data(), f.data(), index.data(), small.data(), nodes.data()};
  }
};

struct Result {
  double value = 0;
  std::vector<double> a, c;
  std::vector<int> small;

  bool operator==(const Result&) const = default;
};

using Kernel = double (*)(Arrays*, long);

inline Result RunKernel(Kernel kernel) {
  Content content = Content::Make();
  Arrays arrays = content.Pointers();
  Result result;
  result.value = kernel(&arrays, kTrips);
  result.a = content.a;
  result.c = content.c;
  result.small = content.small;
  return result;
}

}  // namespace perfd::agent

#endif  // TESTS_UNIT_VARIANT_KERNEL_RUN_H_
