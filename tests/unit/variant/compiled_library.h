// tests/unit/variant/compiled_library.h - kernels as compilers write them: a library, its loops, and running them patched.
#ifndef TESTS_UNIT_VARIANT_COMPILED_LIBRARY_H_
#define TESTS_UNIT_VARIANT_COMPILED_LIBRARY_H_

#include <asm/prctl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/binary/module_reader.h"
#include "agent/variant/copy.h"
#include "agent/variant/loop_code.h"
#include "agent/variant/patch_plan.h"
#include "agent/variant/thread_block.h"
#include "tests/unit/variant/kernel_run.h"

namespace perfd::agent {

inline constexpr const char* kKernels[] = {
    "triad",   "sum",       "dot",      "svdcmp",  "roots",   "stencil",    "scale",  "gather",
    "scatter", "histogram", "choose",   "search",  "prefix",  "horner",     "chase",  "hops",
    "list",    "widen",     "integers", "maximum", "strided", "remainders", "matrix", "rows",
    "pairs",   "walk",      "last",     "lookup",  "small",   "ends",       "blocks"};

inline constexpr const char* kVariants[] = {
    "LS",       "FP",       "DL1",          "NO_DIV", "NO_SQRT", "NO_RED",  "S2L",
    "NO_STORE", "GROUP(0)", "PREFETCH(50)", "CTRL",   "REF_FTZ", "REF_CTL", "NO_RED+NO_DIV"};

inline uint8_t* Bytes(uint64_t address) {
  return reinterpret_cast<uint8_t*>(address);
}

// The thread block that GS points to, as a shadow would prepare it.
class Block {
 public:
  Block() {
    at_ = mmap(nullptr, kThreadBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
               0);
    syscall(SYS_arch_prctl, ARCH_SET_GS, at_);
  }
  ~Block() {
    syscall(SYS_arch_prctl, ARCH_SET_GS, 0);
    munmap(at_, kThreadBlockBytes);
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(at_); }
  uint64_t& Word(uint32_t offset) const { return *reinterpret_cast<uint64_t*>(address() + offset); }
  void Prepare(const CodeCopy& copy) const {
    std::memset(at_, 0, kThreadBlockBytes);
    for (uint32_t i = 0; i < 64; i += 8) {
      const double dividend = 1.7320508075688772, divisor = 1.4142135623730951;
      std::memcpy(&Word(kControlDividendF64 + i), &dividend, 8);
      std::memcpy(&Word(kControlDivisorF64 + i), &divisor, 8);
    }
    for (const SelfPointer& p : copy.self_pointers)
      Word(p.word) = address() + static_cast<uint64_t>(p.value);
  }

 private:
  void* at_;
};

// Where copies go that, as in a shadow, have nobody behind their exits: registers that are dead there may hold anything.
class ExitStub {
 public:
  explicit ExitStub(uint64_t at) : at_(at) {
    // and $-16, %rsp; call *2(%rip); ud2
    constexpr uint8_t kCode[] = {0x48, 0x83, 0xe4, 0xf0, 0xff, 0x15, 2, 0, 0, 0, 0x0f, 0x0b};
    const auto leave = reinterpret_cast<uint64_t>(&Leave);
    std::memcpy(Bytes(at), kCode, sizeof(kCode));
    std::memcpy(Bytes(at + sizeof(kCode)), &leave, sizeof(leave));
  }
  uint64_t address() const { return at_; }

  // Until the kernel returns, or a copy leaves.
  static void Run(Kernel kernel) {
    Content content = Content::Make();
    Arrays arrays = content.Pointers();
    if (setjmp(back_) == 0) kernel(&arrays, kTrips);
  }

 private:
  [[noreturn]] static void Leave() { longjmp(back_, 1); }

  static inline jmp_buf back_;
  uint64_t at_;
};

// A jump over the header for as long as it lives.
class Installed {
 public:
  Installed(const PatchPlan& plan, uint64_t target) : plan_(plan) {
    std::copy_n(plan.Jump(target)->begin(), kJumpBytes, Bytes(plan.address));
  }
  ~Installed() { std::copy_n(plan_.original.begin(), kJumpBytes, Bytes(plan_.address)); }

 private:
  PatchPlan plan_;
};

class Library {
 public:
  explicit Library(const std::string& path) : path_(path) {
    handle_ = dlopen(path.c_str(), RTLD_NOW);
    EXPECT_NE(handle_, nullptr) << dlerror();
    link_map* map = nullptr;
    dlinfo(handle_, RTLD_DI_LINKMAP, &map);
    bias_ = map->l_addr;
    auto reader = ModuleReader::Open(UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    EXPECT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
    constexpr size_t kCacheBytes = 1 << 20;
    cache_ = mmap(Bytes(bias_ - (64 << 20)), kCacheBytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  ~Library() {
    munmap(cache_, 1 << 20);
    dlclose(handle_);
  }

  void* Symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }
  Kernel Find(const char* name) const {
    return reinterpret_cast<Kernel>(Symbol(absl::StrCat("kernel_", name)));
  }
  uint64_t cache() const { return reinterpret_cast<uint64_t>(cache_); }
  // Behind all copies.
  uint64_t stub() const { return cache() + (1 << 19); }

  struct Nest {
    LoopBytes inner, around;
  };

  // The innermost loops of a kernel, ready to decode; its text becomes writable.
  std::vector<LoopBytes> Loops(Kernel kernel) {
    std::vector<LoopBytes> loops;
    for (Nest& nest : Nests(kernel)) loops.push_back(std::move(nest.inner));
    return loops;
  }
  // Those that hold others, with all that lies in them.
  std::vector<LoopBytes> Outers(Kernel kernel) {
    std::vector<LoopBytes> loops;
    for (const FunctionFacts& f : Functions(kernel)) {
      for (uint32_t n = 0; n < f.loops.size(); ++n)
        if (!f.loops[n].innermost) loops.push_back(WholeOf(f, n));
    }
    return loops;
  }
  // The same with the loop around each of them; without a function where there is none.
  std::vector<Nest> Nests(Kernel kernel) {
    std::vector<Nest> loops;
    for (const FunctionFacts& f : Functions(kernel)) {
      for (uint32_t n = 0; n < f.loops.size(); ++n)
        if (f.loops[n].innermost) loops.push_back({LoopOf(f, n), AroundOf(f, n)});
    }
    return loops;
  }

 private:
  std::vector<FunctionFacts> Functions(Kernel kernel) const {
    if (kernel == nullptr) return {};
    const ElfAddress address = reinterpret_cast<uint64_t>(kernel) - bias_;
    const CodeFacts facts = reader_->FunctionsAt(std::span(&address, 1));
    for (const FunctionFacts& f : facts.functions) {
      for (const CodeRange& part : PartsOf(f)) {
        const uint64_t low = (part.low + bias_) & ~uint64_t{4095};
        mprotect(Bytes(low), part.high + bias_ - low, PROT_READ | PROT_WRITE | PROT_EXEC);
      }
    }
    return facts.functions;
  }

  static bool LiesIn(const FunctionFacts& f, uint32_t m, uint32_t n) {
    for (size_t levels = 0; levels <= f.loops.size(); ++levels) {
      if (m == n) return true;
      const auto parent = std::find_if(f.loops.begin(), f.loops.end(), [&](const LoopFacts& loop) {
        return loop.header == f.loops[m].parent_header;
      });
      if (f.loops[m].parent_header == 0 || parent == f.loops.end()) return false;
      m = static_cast<uint32_t>(parent - f.loops.begin());
    }
    return false;
  }

  LoopBytes WholeOf(const FunctionFacts& f, uint32_t n) const {
    LoopBytes whole = LoopOf(f, n);
    for (const LoopSpan& s : f.spans)
      if (s.loop != n && s.loop < f.loops.size() && LiesIn(f, s.loop, n))
        whole.body.push_back({s.low + bias_, s.high + bias_});
    return whole;
  }

  // Of two levels: what lies within the loop around is the inner loop, a neighbour of it, or belongs to neither.
  LoopBytes AroundOf(const FunctionFacts& f, uint32_t n) const {
    LoopBytes around;
    for (uint32_t m = 0; m < f.loops.size(); ++m) {
      if (f.loops[n].parent_header == 0 || f.loops[m].header != f.loops[n].parent_header) continue;
      around = LoopOf(f, m);
      for (const LoopSpan& s : f.spans)
        if (f.loops[s.loop].parent_header == f.loops[m].header)
          around.body.push_back({s.low + bias_, s.high + bias_});
    }
    return around;
  }

  LoopBytes LoopOf(const FunctionFacts& f, uint32_t n) const {
    LoopBytes loop;
    for (const CodeRange& part : PartsOf(f))
      loop.function.push_back(
          {part.low + bias_, {Bytes(part.low + bias_), Bytes(part.high + bias_)}});
    loop.header = f.loops[n].header + bias_;
    for (const LoopSpan& s : f.spans)
      if (s.loop == n) loop.body.push_back({s.low + bias_, s.high + bias_});
    return loop;
  }

  std::string path_;
  void* handle_ = nullptr;
  uint64_t bias_ = 0;
  std::unique_ptr<ModuleReader> reader_;
  void* cache_ = nullptr;
};

inline std::string PathOf(const char* name) {
  return absl::StrCat(PERFD_VARIANT_FIXTURES, "/", name);
}

inline std::string LibraryTestName(const testing::TestParamInfo<const char*>& test) {
  std::string name = test.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

}  // namespace perfd::agent

#endif  // TESTS_UNIT_VARIANT_COMPILED_LIBRARY_H_
