// A library that is loaded late and calls back. See callpaths.c.
static volatile int calls;

__attribute__((noinline)) void plugin_call(void (*back)(void)) {
  back();
  ++calls;
}
