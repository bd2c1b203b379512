#include "agent/pipeline/cost/own_cpu.h"

#include <cpuid.h>

#include "absl/strings/match.h"
#include "agent/procfs/read_file.h"

namespace perfd::agent {
namespace {

constexpr char kSmtActive[] = "/sys/devices/system/cpu/smt/active";
constexpr unsigned kHypervisorBit = 1u << 31;

// Source: Linux arch/x86/include/asm/cpufeatures.h X86_FEATURE_HYPERVISOR: CPUID 1, ECX, bit 31.
bool IsVirtual() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kHypervisorBit) != 0;
}

}  // namespace

bool CpusMayShareCores() {
  const auto active = ReadWholeFile(kSmtActive, 16);
  return IsVirtual() || !active.ok() || !absl::StartsWith(*active, "0");
}

}  // namespace perfd::agent
