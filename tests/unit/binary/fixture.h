// Where the fixtures of these tests are, and what independent tools say about them.
#ifndef TESTS_UNIT_BINARY_FIXTURE_H_
#define TESTS_UNIT_BINARY_FIXTURE_H_

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/unique_fd.h"

namespace perfd::agent {

inline std::string Fixture(const std::string& name) {
  return PERFD_FIXTURES "/" + name;
}

inline UniqueFd OpenFile(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// The lines that a command prints.
inline std::vector<std::string> OutputOf(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = ::popen(("LC_ALL=C " + command).c_str(), "r");
  if (pipe == nullptr) return lines;
  std::string line;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c != '\n') {
      line.push_back(static_cast<char>(c));
      continue;
    }
    lines.push_back(line);
    line.clear();
  }
  ::pclose(pipe);
  return lines;
}

// Address of a symbol, from nm; 0: none.
inline uint64_t SymbolAddress(const std::string& file, const std::string& symbol) {
  for (const std::string& line : OutputOf("nm " + file)) {
    if (line.size() > 19 && line.substr(19) == symbol) return std::stoull(line, nullptr, 16);
  }
  return 0;
}

struct Marked {
  int first = 0;
  int last = 0;
};

// Pairs of "[name" and "]name" at the ends of lines of a fixture's source.
inline std::map<std::string, Marked> Marks(const std::string& source) {
  std::map<std::string, Marked> marks;
  std::ifstream in(PERFD_FIXTURE_SOURCES "/" + source);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const size_t at = line.rfind("// ");
    if (at == std::string::npos || at + 4 >= line.size()) continue;
    const std::string name = line.substr(at + 4);
    if (line[at + 3] == '[') marks[name].first = number;
    if (line[at + 3] == ']') marks[name].last = number;
  }
  return marks;
}

}  // namespace perfd::agent

#endif  // TESTS_UNIT_BINARY_FIXTURE_H_
