#include "agent/kernel/kernel_causes.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

// As Linux 6.18 has them; in the order of addresses, each 0x1000 long.
constexpr absl::string_view kSymbols[] = {"entry_SYSCALL_64",
                                          "entry_SYSCALL_64_after_hwframe",
                                          "asm_exc_page_fault",
                                          "asm_sysvec_apic_timer_interrupt",
                                          "asm_exc_divide_error",
                                          "__x64_sys_munmap",
                                          "__ia32_sys_brk",
                                          "__x64_sys_pread64",
                                          "__x64_sys_futex",
                                          "__x64_sys_process_vm_readv",
                                          "__x64_sys_mmap",
                                          "__x64_sys_getpid",
                                          "do_syscall_64",
                                          "exc_page_fault",
                                          "clear_page_erms",
                                          "unmap_page_range",
                                          "_copy_to_iter",
                                          "schedule",
                                          "__x64_sys_munmap.cold",
                                          "__do_sys_brk",
                                          "ksys_read",
                                          "do_futex"};
constexpr uint64_t kText = 0xffffffff81000000;

class KernelCausesTest : public testing::Test {
 protected:
  KernelCausesTest() {
    std::string text;
    uint64_t at = kText;
    for (const absl::string_view symbol : kSymbols) {
      absl::StrAppend(&text, absl::Hex(at), symbol == "schedule" ? " t " : " T ", symbol, "\n");
      addresses_[std::string(symbol)] = at;
      at += 0x1000;
    }
    causes_ = KernelCauses::Parse(text);
  }
  // Innermost first.
  KernelCause Of(const std::vector<std::string>& functions) const {
    std::vector<uint64_t> chain;
    for (const std::string& function : functions) chain.push_back(addresses_.at(function) + 0x40);
    return causes_.Of(chain);
  }

  std::map<std::string, uint64_t> addresses_;
  KernelCauses causes_;
};

TEST_F(KernelCausesTest, TheWayInTellsTheCause) {
  const std::string call = "do_syscall_64", entry = "entry_SYSCALL_64_after_hwframe";
  EXPECT_EQ(Of({"clear_page_erms", "exc_page_fault", "asm_exc_page_fault"}),
            KernelCause::kPageFault);
  EXPECT_EQ(Of({"unmap_page_range", "__x64_sys_munmap", call, entry}), KernelCause::kMemoryReturn);
  EXPECT_EQ(Of({"unmap_page_range", "__x64_sys_munmap.cold", call, entry}),
            KernelCause::kMemoryReturn);
  EXPECT_EQ(Of({"__ia32_sys_brk", call, entry}), KernelCause::kMemoryReturn);
  EXPECT_EQ(Of({"_copy_to_iter", "__x64_sys_pread64", call, entry}), KernelCause::kIo);
  EXPECT_EQ(Of({"schedule", "__x64_sys_futex", call, entry}), KernelCause::kWaiting);
  EXPECT_EQ(Of({"__x64_sys_process_vm_readv", call, entry}), KernelCause::kCopy);
  EXPECT_EQ(Of({"__x64_sys_mmap", call, entry}), KernelCause::kMemoryMap);
  EXPECT_EQ(Of({"__x64_sys_getpid", call, entry}), KernelCause::kOther);
  EXPECT_EQ(Of({"schedule", "asm_sysvec_apic_timer_interrupt"}), KernelCause::kInterrupt);
  EXPECT_EQ(Of({"asm_exc_divide_error"}), KernelCause::kOther);
}

TEST_F(KernelCausesTest, TheOutermostDecides) {
  EXPECT_EQ(Of({"exc_page_fault", "asm_exc_page_fault", "_copy_to_iter", "__x64_sys_pread64",
                "do_syscall_64", "entry_SYSCALL_64_after_hwframe"}),
            KernelCause::kIo)
      << "a page that a read touches first is part of reading";
  EXPECT_EQ(Of({"asm_sysvec_apic_timer_interrupt", "clear_page_erms", "asm_exc_page_fault"}),
            KernelCause::kPageFault);
}

TEST_F(KernelCausesTest, WhatIsOnTheWayInOnlyIsAnotherCall) {
  EXPECT_EQ(Of({"entry_SYSCALL_64"}), KernelCause::kOther);
  EXPECT_EQ(Of({"do_syscall_64", "entry_SYSCALL_64_after_hwframe"}), KernelCause::kOther);
}

// The functions of system calls end in others by a jump, and are then not among the callers.
TEST_F(KernelCausesTest, WhatACallJumpsToTellsItsCause) {
  const std::string call = "do_syscall_64", entry = "entry_SYSCALL_64_after_hwframe";
  EXPECT_EQ(Of({"unmap_page_range", "__do_sys_brk", call, entry}), KernelCause::kMemoryReturn);
  EXPECT_EQ(Of({"_copy_to_iter", "ksys_read", call, entry}), KernelCause::kIo);
  EXPECT_EQ(Of({"schedule", "do_futex", call, entry}), KernelCause::kWaiting);
}

TEST_F(KernelCausesTest, NothingIsGuessed) {
  EXPECT_EQ(Of({}), KernelCause::kUnknown);
  EXPECT_EQ(Of({"clear_page_erms"}), KernelCause::kUnknown) << "a chain that was cut off";
  const std::vector<uint64_t> below{kText - 8, 0x401000};
  EXPECT_EQ(causes_.Of(below), KernelCause::kUnknown);
}

TEST_F(KernelCausesTest, AReturnAddressMayBeginTheNextFunction) {
  const std::vector<uint64_t> chain{addresses_["unmap_page_range"], addresses_["__ia32_sys_brk"]};
  EXPECT_EQ(causes_.Of(chain), KernelCause::kMemoryReturn);
  const std::vector<uint64_t> io{addresses_["_copy_to_iter"], addresses_["__x64_sys_futex"]};
  EXPECT_EQ(causes_.Of(io), KernelCause::kIo);
  const std::vector<uint64_t> itself{addresses_["__x64_sys_futex"]};
  EXPECT_EQ(causes_.Of(itself), KernelCause::kWaiting) << "the instruction is where it is";
}

TEST(KernelCausesParseTest, HiddenSymbolsTellNothing) {
  const KernelCauses hidden =
      KernelCauses::Parse("0000000000000000 T __x64_sys_read\n0000000000000000 T do_syscall_64\n");
  EXPECT_FALSE(hidden.known());
  EXPECT_EQ(hidden.Of(std::vector<uint64_t>{0, 8}), KernelCause::kUnknown);
  EXPECT_FALSE(KernelCauses::Parse("").known());
}

TEST(KernelCausesParseTest, OnlyCodeCountsAndOfTwoNamesTheOneThatTells) {
  const KernelCauses causes = KernelCauses::Parse(
      "ffffffff81002000 T __se_sys_read\nffffffff81002000 T __x64_sys_read\n"
      "ffffffff81001000 D __x64_sys_munmap\nnonsense\nffffffff81003000 t ext4_read\t[ext4]\n"
      "ffffffff81000000 T first");
  EXPECT_EQ(causes.Of(std::vector<uint64_t>{0xffffffff81002010}), KernelCause::kIo);
  EXPECT_EQ(causes.Of(std::vector<uint64_t>{0xffffffff81001010}), KernelCause::kUnknown);
  EXPECT_EQ(causes.Of(std::vector<uint64_t>{0xffffffff81003010}), KernelCause::kUnknown);
}

}  // namespace
}  // namespace perfd::agent
