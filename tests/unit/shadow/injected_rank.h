// tests/unit/shadow/injected_rank.h - a process with jumps of ours in its memory, and a tracer that only says it stops it.
//
// Shape    three pages of the process: text with two sites, a code cache, a region. Injection() names them all.
// Source   tests/unit/shadow/fake_tracer.cc for the answers.
#ifndef TESTS_UNIT_SHADOW_INJECTED_RANK_H_
#define TESTS_UNIT_SHADOW_INJECTED_RANK_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/attach/memory.h"
#include "agent/attach/tracer.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/injection.h"
#include "agent/shadow/payload_blob.h"
#include "agent/shadow/protocol.h"

namespace perfd::agent {

class InjectedRankTest : public ::testing::Test {
 protected:
  static constexpr size_t kPage = 4096, kRegion = 64 * kPage;

  InjectedRankTest()
      : text_(Map(kPage, MAP_PRIVATE)),
        cache_(Map(kPage, MAP_PRIVATE)),
        region_(Map(kRegion, MAP_SHARED)),
        log_(absl::StrCat(::testing::TempDir(), "/holds-", getpid())) {
    std::filesystem::remove(log_);
    std::memcpy(text_ + 0x10, kJump.data(), kJump.size());
    std::memcpy(text_ + 0x40, kJump.data(), kJump.size());
    std::memcpy(cache_, PayloadBlob().data(), 64);
    std::memcpy(region_, &kShadowMagic, sizeof(kShadowMagic));
  }
  ~InjectedRankTest() override {
    Kill();
    munmap(text_, kPage);
    munmap(cache_, kPage);
    munmap(region_, kRegion);
    std::filesystem::remove(log_);
  }

  // From here on the process has its own copy of everything.
  void StartRank() {
    pid_ = fork();
    if (pid_ == 0) {
      alarm(60);
      for (;;) pause();
    }
    injection_.pid = pid_;
    injection_.start_ticks = *ProcFs().StartTicks(pid_);
    for (const uint64_t at : {uint64_t{0x10}, uint64_t{0x40}}) {
      InjectedSite& site = injection_.sites.emplace_back();
      site.header = Address(text_) + at;
      site.original = kOriginal;
      site.written = kJump;
      site.pairs = {{site.header, Address(cache_) + at}};
      const auto maps = ProcFs().Maps(pid_);
      site.text = IdentityOf(*FindMapping(*maps, site.header));
    }
  }
  void NameCacheAndRegion() {
    injection_.caches = {{Address(cache_), Address(cache_) + kPage}};
    injection_.region = {Address(region_), Address(region_) + kRegion};
  }
  void Kill() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }

  void StartTracer(std::vector<std::string> answers) {
    answers.insert(answers.begin(), log_);
    auto tracer = Tracer::Start({PERFD_FAKE_TRACER, answers});
    ASSERT_TRUE(tracer.ok()) << tracer.status();
    tracer_ = *std::move(tracer);
  }

  std::vector<uint8_t> TextAt(uint64_t offset) const {
    const auto memory = Memory::Open(pid_, injection_.start_ticks);
    return memory.ok() ? *memory->Read(Address(text_) + offset, kJump.size())
                       : std::vector<uint8_t>();
  }
  void WriteText(uint64_t offset, const std::vector<uint8_t>& bytes) const {
    const auto memory = Memory::Open(pid_, injection_.start_ticks);
    ASSERT_TRUE(memory.ok() && memory->Write(Address(text_) + offset, bytes).ok());
  }
  // One line per hold: which ops, by index in HoldOp.
  std::vector<std::string> Holds() const {
    std::vector<std::string> lines;
    std::ifstream file(log_);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  static uint64_t Address(const uint8_t* at) { return reinterpret_cast<uint64_t>(at); }

  const std::vector<uint8_t> kJump = {0xe9, 1, 2, 3, 4};
  const std::vector<uint8_t> kOriginal = {0xf2, 0x0f, 0x58, 0x07, 0x90};
  uint8_t* const text_;
  uint8_t* const cache_;
  uint8_t* const region_;
  const std::string log_;
  pid_t pid_ = 0;
  Injection injection_;
  std::unique_ptr<Tracer> tracer_;

 private:
  static uint8_t* Map(size_t bytes, int flags) {
    // An unused page on both sides: neighbours must not become one mapping.
    void* at = mmap(nullptr, bytes + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at = mmap(static_cast<uint8_t*>(at) + kPage, bytes, PROT_READ | PROT_WRITE,
              flags | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return static_cast<uint8_t*>(at);
  }
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_SHADOW_INJECTED_RANK_H_
