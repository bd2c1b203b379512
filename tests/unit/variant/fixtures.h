// tests/unit/variant/fixtures.h - loops with known answers, as bytes made once with GNU as; fixtures.s is the listing.
//
// Source   Bendifallah 2015, tables 4.1, 4.2, 6.1-6.3 and section 6.3 (digest 3.1, 3.3, 4.3, 6.2, 6.3).
#ifndef TESTS_UNIT_VARIANT_FIXTURES_H_
#define TESTS_UNIT_VARIANT_FIXTURES_H_

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "agent/variant/copy.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

// One fixture per label of fixtures.s.
inline constexpr char kSvdcmp[] =
    "0f2824c80f286cc810660f5ee1660f5ee90f2874c8200f287cc830660f5ef1660f5ef90f2924c8660f59e40f296cc8"
    "10"
    "660f59ed660f58dc660f58d50f2974c820660f59f60f297cc8304883c108660f59ff660f58de660f58d74c39f172a"
    "1";
inline constexpr char kGroups[] =
    "f3420f100487f3420f5844870cf3420f58448718f3420f1144820c49ffc04d39c872dd";
inline constexpr char kDivide[] = "c5fd105cc820c5e55ef8c5fd113cca4883c1044c39f172e8";
inline constexpr char kMerge[] =
    "c5fb100cc8c5c91654c808c5f358dac5fb111ccac5e35954c810c5fb1154ca0848ffc14c39f172d8";
inline constexpr char kChase[] = "f20f104808f20f58c1488b0048ffc975ef";
// add $1, %rax; mov (%rsi,%rdx,8), %rdx; cmp %rcx, %rax; jne
inline constexpr char kHops[] = "4883c001488b14d64839c875f3";
inline constexpr char kWhile[] = "f20f584008488b004885c075f3";
inline constexpr char kIndexed[] = "4863148ef20f100cd7f20f58c1f20f1104d348ffc14c39c172e6";
inline constexpr char kTriad[] = "c4a17d1024fac4a2fda824f9c4a17d1124f84983c7044d39e772e5";
inline constexpr char kBound[] = "f20f100ccef20f110ccf48ffc1483b4b0872ed";

inline constexpr char kReuse[] = "c5fd59d1c5fd1114c8c5fd1014cac5fd1114cb4883c1044c39f172e4";

inline constexpr uint64_t kFixtureAddress = 0x401010;

inline LoopBytes FixtureBytes(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  LoopBytes loop;
  loop.header = kFixtureAddress;
  loop.function = {{kFixtureAddress, {bytes.begin(), bytes.end()}}};
  loop.body = {{kFixtureAddress, kFixtureAddress + bytes.size()}};
  return loop;
}

inline CopyTarget FixturePlace() {
  return {0x500000, Exits::kStub, 0x4ff000};
}

// The texts that a variant puts in place of the original ones, by index of the instruction.
inline std::vector<std::string> Texts(const LoopCode& loop, const CodeCopy& copy) {
  std::vector<std::string> texts;
  for (const LoopInstruction& i : loop.instructions) {
    texts.push_back("");
    for (const Changed& c : copy.changed)
      if (c.address == i.address) texts.back() = c.changed;
  }
  return texts;
}

}  // namespace perfd::agent

#endif  // TESTS_UNIT_VARIANT_FIXTURES_H_
