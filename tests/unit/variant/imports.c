// Loops that call into other modules: mathematical functions, and those of imports_callee.S whose truth is known.
#include <math.h>

double far_leaf(double x);
double far_chain(double x);
double far_branch(double x);
double far_writable(double x);
double far_pushes(double x);
double far_frame(double x);
double far_large(double x);
double far_flags(double x);
double far_caller(double x);
double far_value(double x);
double far_depths(double x);
double far_endless(double x);

#define LOOP(name, call)                                               \
  void loop_##name(double* q, const double* p, long n) {               \
    for (long i = 0; i < n; ++i) q[i] += call;                         \
  }

// A pointer of the program's own, which it may change between two instances of the loop.
__attribute__((visibility("hidden"))) double (*chosen)(double) = far_leaf;
__attribute__((noinline)) double through_chosen(double x) { return chosen(x); }

LOOP(chosen, chosen(p[i]))
LOOP(through_chosen, through_chosen(p[i]))
LOOP(far_leaf, far_leaf(p[i]))
LOOP(far_chain, far_chain(p[i]))
LOOP(far_branch, far_branch(p[i]))
LOOP(far_writable, far_writable(p[i]))
LOOP(far_pushes, far_pushes(p[i]))
LOOP(far_frame, far_frame(p[i]))
LOOP(far_large, far_large(p[i]))
LOOP(far_flags, far_flags(p[i]))
LOOP(far_caller, far_caller(p[i]))
LOOP(far_value, far_value(p[i]))
LOOP(far_depths, far_depths(p[i]))
LOOP(far_endless, far_endless(p[i]))
LOOP(log, log(p[i]))
LOOP(exp, exp(p[i]))
LOOP(exp2, exp2(p[i]))
LOOP(pow, pow(p[i], 1.25))
LOOP(cbrt, cbrt(p[i]))
LOOP(sin, sin(p[i]))
LOOP(cos, cos(p[i]))
LOOP(tanh, tanh(p[i]))
LOOP(atan, atan(p[i]))
LOOP(erf, erf(p[i]))
LOOP(sinf, sinf((float)p[i]))
LOOP(hypot, hypot(p[i], 1.5))
LOOP(log2, log2(p[i]))
LOOP(logf, logf((float)p[i]))
LOOP(expf, expf((float)p[i]))
LOOP(powf, powf((float)p[i], 1.25f))
LOOP(two, log(p[i]) + log2(p[i]))
