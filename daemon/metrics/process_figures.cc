#include "daemon/metrics/process_figures.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace perfd::daemon {
namespace {

// Fields of /proc/self/stat from number 3 on: the command in field 2 may hold blanks and parentheses.
std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t end = text.rfind(')');
  std::vector<std::string> fields;
  if (end == std::string::npos) return fields;
  std::istringstream rest(text.substr(end + 1));
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

double BootTimeSeconds() {
  std::ifstream file("/proc/stat");
  for (std::string key; file >> key;) {
    double value = 0;
    if (key == "btime" && file >> value) return value;
  }
  return 0;
}

double Number(const std::vector<std::string>& fields, size_t field) {
  const size_t index = field - 3;
  return index < fields.size() ? std::strtod(fields[index].c_str(), nullptr) : 0;
}

uint64_t CountFds() {
  std::error_code error;
  uint64_t count = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace

ProcessFigures ReadProcessFigures() {
  const std::vector<std::string> fields = StatFields();
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  ProcessFigures figures;
  figures.cpu_seconds = (Number(fields, 14) + Number(fields, 15)) / ticks;
  figures.start_time_seconds = BootTimeSeconds() + Number(fields, 22) / ticks;
  figures.resident_bytes = static_cast<uint64_t>(Number(fields, 24) * page);
  figures.open_fds = CountFds();
  return figures;
}

}  // namespace perfd::daemon
