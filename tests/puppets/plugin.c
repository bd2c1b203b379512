// A library that a program loads in the middle of its life.
double PluginWork(double x);

double PluginWork(double x) {
  for (int i = 0; i < 40000; ++i) {  // LOOP plugin begin
    x = 2.0 / (1.0 + x);
  }  // LOOP plugin end
  return x;
}
