// tests/bench/bench_table.h - figures as a table for people, or as one JSON object per row.
//
// Shape    the title and the names of the columns at construction, then Row(...): printed at once, to standard output.
#ifndef TESTS_BENCH_BENCH_TABLE_H_
#define TESTS_BENCH_BENCH_TABLE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace perfd::agent {

// A number that was not measured is an empty text.
using Cell = std::variant<std::string, double, int64_t>;

class BenchTable {
 public:
  BenchTable(std::string name, std::string title, std::vector<std::string> columns, bool json);
  void Row(const std::vector<Cell>& cells) const;

 private:
  const std::string name_;
  const std::vector<std::string> columns_;
  const bool json_;
};

// A sentence below a table; {"note": ...} in JSON.
void PrintRemark(const std::string& text, bool json);

// What was run, when and on what: command line, CPU, kernel, memory, load.
void PrintHost(int argc, char** argv, bool json);

}  // namespace perfd::agent

#endif  // TESTS_BENCH_BENCH_TABLE_H_
