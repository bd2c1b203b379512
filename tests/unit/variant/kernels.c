/* Loops as compilers write them. Every function reads and writes only what `d` points to and returns a value. */
#include <math.h>
#include <stddef.h>

struct node {
  struct node* next;
  double value;
};

struct data {
  double *restrict a, *restrict b, *restrict c;
  float* restrict f;
  long* restrict index;
  int* restrict small;
  struct node* list;
};

double kernel_triad(struct data* d, long n) {
  for (long i = 0; i < n; i++) d->a[i] = d->b[i] + 3.0 * d->c[i];
  return d->a[n - 1];
}

double kernel_sum(struct data* d, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += d->a[i];
  return s;
}

double kernel_dot(struct data* d, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += d->a[i] * d->b[i];
  return s;
}

double kernel_svdcmp(struct data* d, long n) {
  double s = 0;
  const double scale = d->b[0];
  double* restrict a = d->a;
  for (long i = 0; i < n; i++) {
    a[i] = a[i] / scale;
    s += a[i] * a[i];
  }
  return s;
}

double kernel_roots(struct data* d, long n) {
  for (long i = 0; i < n; i++) d->a[i] = sqrt(d->b[i]) / d->c[i];
  return d->a[0];
}

double kernel_stencil(struct data* d, long n) {
  for (long i = 1; i < n - 1; i++) d->a[i] = 0.25 * (d->b[i - 1] + 2 * d->b[i] + d->b[i + 1]);
  return d->a[1];
}

double kernel_scale(struct data* d, long n) {
  for (long i = 0; i < n; i++) d->a[i] *= 1.5;
  return d->a[n - 1];
}

double kernel_gather(struct data* d, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += d->a[d->index[i]];
  return s;
}

double kernel_scatter(struct data* d, long n) {
  for (long i = 0; i < n; i++) d->a[d->index[i]] += d->b[i];
  return d->a[0];
}

double kernel_histogram(struct data* d, long n) {
  for (long i = 0; i < n; i++) d->small[d->index[i] & 63]++;
  return d->small[5];
}

double kernel_choose(struct data* d, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) {
    if (d->a[i] > 0.5) {
      s += d->b[i];
    } else {
      d->c[i] = s;
    }
  }
  return s;
}

double kernel_search(struct data* d, long n) {
  long i = 0;
  while (i < n && d->a[i] != d->b[7]) i++;
  return (double)i;
}

double kernel_prefix(struct data* d, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) {
    s += d->b[i];
    d->a[i] = s;
  }
  return s;
}

double kernel_horner(struct data* d, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s = s * 0.5 + d->a[i];
  return s;
}

double kernel_chase(struct data* d, long n) {
  double s = 0;
  struct node* p = d->list;
  for (long i = 0; i < n; i++) {
    s += p->value;
    p = p->next;
  }
  return s;
}

double kernel_hops(struct data* d, long n) {
  const long* next = d->index;
  long at = 0;
  for (long i = 0; i < n; i++) at = next[at];
  return (double)at;
}

double kernel_list(struct data* d, long n) {
  double s = 0;
  long i = 0;
  for (struct node* p = d->list; p != NULL && i < n; p = p->next, i++) s += p->value;
  return s;
}

double kernel_widen(struct data* d, long n) {
  for (long i = 0; i < n; i++) d->a[i] = d->f[i] + d->small[i];
  return d->a[2];
}

double kernel_integers(struct data* d, long n) {
  int s = 0;
  for (long i = 0; i < n; i++) s += d->small[i] * 3;
  return s;
}

double kernel_maximum(struct data* d, long n) {
  double m = d->a[0];
  for (long i = 0; i < n; i++) m = d->a[i] > m ? d->a[i] : m;
  return m;
}

double kernel_strided(struct data* d, long n) {
  for (long i = 0; i < n / 4; i++) d->a[4 * i] = d->b[4 * i + 1] - d->c[4 * i + 2];
  return d->a[0];
}

double kernel_remainders(struct data* d, long n) {
  long s = 0;
  for (long i = 0; i < n; i++) s += d->index[i] % (d->small[i] + 7);
  return (double)s;
}

double kernel_matrix(struct data* d, long n) {
  const long m = n < 30 ? n : 30;
  for (long i = 0; i < m; i++)
    for (long j = 0; j < m; j++) {
      double s = 0;
      for (long k = 0; k < m; k++) s += d->a[i * m + k] * d->b[k * m + j];
      d->c[i * m + j] = s;
    }
  return d->c[0];
}

/* Short inner loops, many instances of each: what chains run through. */
double kernel_rows(struct data* d, long n) {
  for (long i = 0; i < n; i++) {
    double s = 0;
    const long from = i * 4, to = from + (d->small[i] & 7);
    for (long k = from; k < to; k++) s += d->a[k] * d->b[d->index[k]];
    d->c[i] = s;
  }
  return d->c[n - 1];
}

double kernel_pairs(struct data* d, long n) {
  double energy = 0;
  for (long i = 0; i < n; i++) {
    const double x = d->a[i];
    double force = 0;
    for (long k = 0; k < d->small[i]; k++) {
      const long j = d->index[(i + 3 * k) & 511];
      const double r = x - d->b[j];
      if (r * r < 0.3) {
        const double f = r / (0.1 + r * r);
        force += f;
        d->c[j] -= f;
        energy += f * r;
      }
    }
    d->c[i] += force;
  }
  return energy;
}

/* Where to go next comes out of the inner loop. */
double kernel_walk(struct data* d, long n) {
  long at = 0;
  double s = 0;
  for (long i = 0; i < n; i++) {
    long hash = at;
    for (long k = 0; k < 3 + (d->small[i & 63] & 3); k++) {
      hash = hash * 31 + d->small[(at + k) & 1023];
      s += d->a[(at + k) & 1023] * 0.5;
    }
    at = hash & 511;
    d->c[at] = s;
  }
  return s + (double)at;
}

/* The inner loop's last load says where the outer one stores. */
double kernel_last(struct data* d, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) {
    long last = 0;
    for (long k = 0; k < 3 + (d->small[i] & 3); k++) {
      last = d->index[(7 * i + k) & 1023];
      s += d->a[last];
    }
    d->c[last] = s + 1000;
  }
  return s;
}

/* The work is around a short binary search, whose way depends on what it reads. */
double kernel_lookup(struct data* d, long n) {
  double sum = 0;
  unsigned seed = 7;
  for (long j = 0; j < n; j++) {
    const long table = d->index[(j + seed) & 63] & 7;
    seed = seed * 1664525u + 1013904223u;
    const double e = seed * 0x1p-32;
    int low = 0, high = 63;
    while (high - low > 1) {
      const int mid = (low + high) / 2;
      if (d->a[mid] <= e)
        low = mid;
      else
        high = mid;
    }
    const double* row = d->b + table * 100 + (seed >> 26);
    const double f = (e - d->a[low]) * 64;
    sum += row[0] * f + row[1] * (1 - f);
    sum += row[2] * f;
    sum -= row[3] * f * f;
    sum += row[4] / (f + 2.0);
  }
  return sum;
}

/* Loops of three passes that stay loops, and stores of the one around them. */
double kernel_small(struct data* d, long n) {
  double sum = 0;
  for (long i = 0; i < n; i++) {
    double r = 0;
#ifdef __clang__
#pragma clang loop unroll(disable)
#else
#pragma GCC unroll 1
#endif
    for (int k = 0; k < 3; k++) {
      const double x = d->b[i + 256 * k] - d->a[i];
      r += x * x;
      __asm__ volatile("" : "+x"(r));
    }
    d->c[i] = r;
    sum += 1 / (r + 1);
  }
  return sum;
}

/* Lists of neighbours: the ends of the loop inside are read, and it updates what others read later. */
double kernel_ends(struct data* d, long n) {
  double energy = 0;
  for (long i = 1; i < n; i++) {
    const double x = d->a[i];
    double force = 0;
    for (long k = d->small[i - 1]; k < d->small[i] + 4; k++) {
      const long j = d->index[(4 * i + k) & 1023] & 511;
      const double r = x - d->b[j];
      if (r * r > 0.4) continue;
      force += r / (0.1 + r * r);
      d->c[j] -= force;
    }
    d->c[i] += force;
    energy += force * force;
  }
  return energy;
}

/* Three levels, and an end that is found early. */
double kernel_blocks(struct data* d, long n) {
  double sum = 0;
  for (long i = 0; i + 8 <= n; i += 8) {
    for (long j = 0; j < 4; j++) {
      double row = d->b[i + j];
      for (long k = 0; k < 1 + (d->small[i + j] & 7); k++) row += d->a[(i * 3 + j * 5 + k) & 1023];
      d->c[i + j] = row;
      if (d->small[i + j] > 10) break;
      sum += row;
    }
  }
  return sum;
}
