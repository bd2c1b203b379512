// A library of one loop. Two of them, of the same size, begin alike and differ in one instruction.
#ifndef SIGN
#define SIGN +
#endif

void ReloadedWork(double* a, const double* b, const double* c, long n);

void ReloadedWork(double* a, const double* b, const double* c, long n) {
  for (long i = 0; i < n; ++i) a[i] = b[i] * 3.0 SIGN c[i];
}
