// What runs confined processes: under AddressSanitizer its run-time library would ask for what confinement takes away.
#ifndef TESTS_UNIT_READER_CONFINED_TEST_H_
#define TESTS_UNIT_READER_CONFINED_TEST_H_

#include <gtest/gtest.h>

namespace perfd::agent {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool kAddressSanitizer = false;
#endif

class ConfinedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kAddressSanitizer) GTEST_SKIP() << "confinement leaves a sanitizer no memory";
  }
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_READER_CONFINED_TEST_H_
