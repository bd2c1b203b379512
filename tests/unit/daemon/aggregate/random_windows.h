// tests/unit/daemon/aggregate/random_windows.h - random windows of one job, small enough to collide often.
#ifndef TESTS_UNIT_DAEMON_AGGREGATE_RANDOM_WINDOWS_H_
#define TESTS_UNIT_DAEMON_AGGREGATE_RANDOM_WINDOWS_H_

#include <cstdint>
#include <vector>

#include "core/model/window.h"

namespace perfd::daemon {

// A loop of the program; the richer kind has source lines.
CodeLocation LoopAt(uint64_t header, bool rich = true);

// A function of the program that starts here, outside of its loops.
CodeLocation FunctionAt(uint64_t low);

std::vector<Window> RandomWindows(uint64_t seed, int count);

// A window with nothing in it but its identity and setup (cpu-clock at 100 Hz, 1 s).
Window EmptyWindow(const std::string& node, uint64_t sequence);

// Adds a row (with the dictionary entries it needs); weight is samples x 10 ms.
void AddRow(const WindowThread& thread, const CodeLocation& location, uint64_t samples,
            Window& window);

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_AGGREGATE_RANDOM_WINDOWS_H_
