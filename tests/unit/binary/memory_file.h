// tests/unit/binary/memory_file.h - files of bytes that a test has changed.
#ifndef TESTS_UNIT_BINARY_MEMORY_FILE_H_
#define TESTS_UNIT_BINARY_MEMORY_FILE_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "core/base/unique_fd.h"

namespace perfd::agent {

inline std::string FileText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline UniqueFd MemoryFile(const std::string& bytes) {
  UniqueFd fd(::memfd_create("elf", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return fd;
}

}  // namespace perfd::agent

#endif  // TESTS_UNIT_BINARY_MEMORY_FILE_H_
