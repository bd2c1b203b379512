// What tests/unit/binary/fixtures/stacks.c prints, as a sample would hold it.
#ifndef TESTS_UNIT_BINARY_STACK_DUMP_H_
#define TESTS_UNIT_BINARY_STACK_DUMP_H_

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "agent/binary/stack_unwinder.h"
#include "tests/unit/binary/fixture.h"

namespace perfd::agent {

struct StackDump {
  StackCopy copy;
  std::vector<CodeMapping> mappings;
  std::map<uint64_t, std::string> functions;  // of the fixture, by run-time address

  // "leaf", or the file's base name for code of other files; "?" for none. Fixture functions are far below 512 bytes.
  std::string NameOf(uint64_t address) const {
    for (const CodeMapping& mapping : mappings) {
      if (address < mapping.start || address >= mapping.end) continue;
      auto it = functions.upper_bound(address);
      if (it != functions.begin() && std::prev(it)->first >= mapping.start &&
          address - std::prev(it)->first < 512)
        return std::prev(it)->second;
      return mapping.path.substr(mapping.path.rfind('/') + 1);
    }
    return "?";
  }

  std::vector<std::string> Names(const CallPath& path) const {
    std::vector<std::string> names;
    for (RuntimeAddress address : path.addresses) names.push_back(NameOf(address.value()));
    return names;
  }
};

inline CodeMapping ParseDumpedMapping(const std::string& line) {
  CodeMapping mapping;
  unsigned long long start = 0, end = 0, offset = 0, inode = 0;
  char path[4096] = "";
  std::sscanf(line.c_str(), "map %llx-%llx %*s %llx %*s %llu %4095[^\n]", &start, &end, &offset,
              &inode, path);
  mapping.start = start;
  mapping.end = end;
  mapping.file_offset = offset;
  mapping.path = path;
  struct stat facts;
  if (!mapping.path.empty() && ::stat(path, &facts) == 0) {
    mapping.inode = facts.st_ino;
    mapping.device_major = major(facts.st_dev);
    mapping.device_minor = minor(facts.st_dev);
  }
  return mapping;
}

inline StackDump DumpOf(const std::string& fixture, const std::string& arguments) {
  StackDump dump;
  for (const std::string& line : OutputOf(Fixture(fixture) + " " + arguments)) {
    std::istringstream in(line);
    std::string kind;
    in >> kind;
    if (kind == "registers") {
      for (uint64_t& value : dump.copy.registers) in >> std::hex >> value;
    } else if (kind == "stack") {
      std::string hex;
      in >> hex;
      for (size_t i = 0; i + 1 < hex.size(); i += 2)
        dump.copy.bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    } else if (kind == "map") {
      if (line.find("[stack]") == std::string::npos)
        dump.mappings.push_back(ParseDumpedMapping(line));
    } else if (kind == "function") {
      std::string name;
      uint64_t address = 0;
      in >> name >> std::hex >> address;
      dump.functions[address] = name;
    }
  }
  return dump;
}

// `without`: part of the path of a module that is left out.
inline std::vector<UnwindModule> ModulesOf(const StackDump& dump,
                                           const std::string& without = "nothing") {
  std::vector<UnwindModule> modules;
  for (const CodeMapping& mapping : dump.mappings) {
    if (mapping.path.find(without) == std::string::npos)
      modules.push_back({OpenFile(mapping.path), mapping});
  }
  return modules;
}

}  // namespace perfd::agent

#endif  // TESTS_UNIT_BINARY_STACK_DUMP_H_
