#include "tests/bench/bench_table.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace perfd::agent {
namespace {

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + "\"";
}

std::string Number(double value) {
  if (!std::isfinite(value)) return "";
  const double size = std::abs(value);
  const int digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 ? 3 : 5;
  return size == 0 ? "0" : absl::StrFormat("%.*f", digits, value);
}

std::string Text(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* number = std::get_if<double>(&cell)) return Number(*number);
  return absl::StrCat(std::get<int64_t>(cell));
}

std::string Json(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell))
    return text->empty() ? "null" : Quoted(*text);
  const std::string number = Text(cell);
  return number.empty() ? "null" : number;
}

int Width(const std::string& column) {
  return std::max<int>(9, static_cast<int>(column.size()));
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value of the first "name : value" line.
std::string Field(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    return std::string(absl::StripLeadingAsciiWhitespace(line.substr(colon + 1)));
  }
  return "";
}

}  // namespace

BenchTable::BenchTable(std::string name, std::string title, std::vector<std::string> columns,
                       bool json)
    : name_(std::move(name)), columns_(std::move(columns)), json_(json) {
  if (json_) return;
  printf("\n%s\n", title.c_str());
  for (const std::string& column : columns_) printf("%*s ", Width(column), column.c_str());
  printf("\n");
}

void BenchTable::Row(const std::vector<Cell>& cells) const {
  std::string line = json_ ? absl::StrCat("{\"table\": ", Quoted(name_)) : "";
  for (size_t i = 0; i < std::min(cells.size(), columns_.size()); ++i) {
    if (json_) {
      absl::StrAppend(&line, ", ", Quoted(columns_[i]), ": ", Json(cells[i]));
    } else {
      absl::StrAppendFormat(&line, "%*s ", Width(columns_[i]), Text(cells[i]));
    }
  }
  printf("%s%s\n", line.c_str(), json_ ? "}" : "");
  fflush(stdout);
}

void PrintRemark(const std::string& text, bool json) {
  if (json) {
    printf("{\"note\": %s}\n", Quoted(text).c_str());
  } else {
    printf("  %s\n", text.c_str());
  }
  fflush(stdout);
}

void PrintHost(int argc, char** argv, bool json) {
  utsname name{};
  uname(&name);
  std::string command;
  for (int i = 0; i < argc; ++i) absl::StrAppend(&command, i > 0 ? " " : "", argv[i]);
  const std::vector<std::pair<std::string, std::string>> facts = {
      {"command", command},
      {"cpu", Field("/proc/cpuinfo", "model name")},
      {"cpus", absl::StrCat(sysconf(_SC_NPROCESSORS_ONLN))},
      {"kernel", absl::StrCat(name.sysname, " ", name.release)},
      {"virtual",
       absl::StrContains(absl::StrCat(" ", Field("/proc/cpuinfo", "flags"), " "), " hypervisor ")
           ? "yes"
           : "no"},
      {"memory_available", Field("/proc/meminfo", "MemAvailable")},
      {"huge_pages", FirstLine("/sys/kernel/mm/transparent_hugepage/enabled")},
      {"clock", FirstLine("/sys/devices/system/clocksource/clocksource0/current_clocksource")},
      {"load", FirstLine("/proc/loadavg")}};
  std::string line = "{\"table\": \"host\"";
  for (const auto& [key, value] : facts) {
    if (!json) printf("%-17s %s\n", key.c_str(), value.c_str());
    absl::StrAppend(&line, ", ", Quoted(key), ": ", Quoted(value));
  }
  if (json) printf("%s}\n", line.c_str());
  fflush(stdout);
}

}  // namespace perfd::agent
