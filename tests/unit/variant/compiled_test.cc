// Loops as gcc and clang write them: found in the library's own ELF file, copied, installed over their headers and run.
// Oracles: REF gives the same bits; every variant goes round as often as the original; objdump reads the same instructions.
#include <asm/prctl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/binary/module_reader.h"
#include "agent/variant/copy.h"
#include "agent/variant/dataflow.h"
#include "agent/variant/decode.h"
#include "agent/variant/patch_plan.h"
#include "agent/variant/thread_block.h"

namespace perfd {
namespace {

constexpr const char* kKernels[] = {
    "triad",   "sum",       "dot",     "svdcmp",  "roots",      "stencil", "scale", "gather",
    "scatter", "histogram", "choose",  "search",  "prefix",     "horner",  "chase", "list",
    "widen",   "integers",  "maximum", "strided", "remainders", "matrix"};

constexpr const char* kVariants[] = {
    "LS",       "FP",       "DL1",          "NO_DIV", "NO_SQRT", "NO_RED",  "S2L",
    "NO_STORE", "GROUP(0)", "PREFETCH(50)", "CTRL",   "REF_FTZ", "REF_CTL", "NO_RED+NO_DIV"};

struct Node {
  Node* next = nullptr;
  double value = 0;
};

constexpr size_t kElements = 1024;
constexpr long kTrips = 211;

// What the kernels take; mirrors struct data of kernels.c.
struct Arrays {
  double *a, *b, *c;
  float* f;
  long* index;
  int* small;
  Node* list;
};

struct Content {
  std::vector<double> a, b, c;
  std::vector<float> f;
  std::vector<long> index;
  std::vector<int> small;
  std::vector<Node> nodes;

  static Content Make() {
    Content x;
    for (size_t i = 0; i < kElements; ++i) {
      x.a.push_back(static_cast<double>((i * 37) % 101) / 97);
      x.b.push_back(1 + static_cast<double>((i * 53) % 89) / 83);
      x.c.push_back(2 + static_cast<double>((i * 29) % 71) / 67);
      x.f.push_back(static_cast<float>(i) / 7);
      x.index.push_back(static_cast<long>((i * 61) % kElements));
      x.small.push_back(static_cast<int>(i % 13));
      x.nodes.push_back({nullptr, static_cast<double>(i)});
    }
    for (size_t i = 0; i < kElements; ++i) x.nodes[i].next = &x.nodes[(i * 5 + 1) % kElements];
    return x;
  }
  Arrays Pointers() {
    return {a.data(), b.data(), c.data(), f.data(), index.data(), small.data(), nodes.data()};
  }
};

struct Result {
  double value = 0;
  std::vector<double> a, c;
  std::vector<int> small;

  bool operator==(const Result&) const = default;
};

using Kernel = double (*)(Arrays*, long);

Result RunKernel(Kernel kernel) {
  Content content = Content::Make();
  Arrays arrays = content.Pointers();
  Result result;
  result.value = kernel(&arrays, kTrips);
  result.a = content.a;
  result.c = content.c;
  result.small = content.small;
  return result;
}

uint8_t* Bytes(uint64_t address) {
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

  Kernel Find(const char* name) const {
    void* symbol = dlsym(handle_, absl::StrCat("kernel_", name).c_str());
    return reinterpret_cast<Kernel>(symbol);
  }
  uint64_t cache() const { return reinterpret_cast<uint64_t>(cache_); }

  // The innermost loops of a kernel, ready to decode; its text becomes writable.
  std::vector<LoopBytes> Loops(Kernel kernel) {
    if (kernel == nullptr) return {};
    const uint64_t address = reinterpret_cast<uint64_t>(kernel) - bias_;
    const CodeFacts facts = reader_->FunctionsAt(std::span(&address, 1));
    std::vector<LoopBytes> loops;
    for (const FunctionFacts& f : facts.functions) {
      const uint64_t low = (f.low + bias_) & ~uint64_t{4095};
      mprotect(Bytes(low), f.high + bias_ - low, PROT_READ | PROT_WRITE | PROT_EXEC);
      for (uint32_t n = 0; n < f.loops.size(); ++n)
        if (f.loops[n].innermost) loops.push_back(LoopOf(f, n));
    }
    return loops;
  }

 private:
  LoopBytes LoopOf(const FunctionFacts& f, uint32_t n) const {
    LoopBytes loop;
    loop.address = f.low + bias_;
    loop.bytes.assign(Bytes(loop.address), Bytes(f.high + bias_));
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

struct Tally {
  int loops = 0;
  int refused_loops = 0;
  int copies = 0;
  int refused_copies = 0;
  std::map<std::string, int> reasons;
};

class CompiledTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string name = GetParam();
    runs_ = !absl::StrContains(name, "avx512") ||
            (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"));
    runs_ = runs_ && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  }

  void CheckRef(const LoopCode& code, const PatchPlan& plan, Kernel kernel, uint64_t place) {
    const auto ref = MakeCopy(code, SingleVariant(Change::kRef), {place, Exits::kOriginalText, 0});
    ASSERT_TRUE(ref.ok()) << ref.status();
    EXPECT_TRUE(ref->same_layout);
    if (!runs_) return;
    const Result original = RunKernel(kernel);
    std::copy(ref->bytes.begin(), ref->bytes.end(), Bytes(ref->address));
    const Installed installed(plan, ref->entry);
    EXPECT_EQ(RunKernel(kernel), original);
  }

  // Passes through the header of a counted copy.
  uint64_t Passes(const CodeCopy& copy, const PatchPlan& plan, Kernel kernel, const Block& block) {
    block.Prepare(copy);
    std::copy(copy.bytes.begin(), copy.bytes.end(), Bytes(copy.address));
    const Installed installed(plan, copy.entry);
    RunKernel(kernel);
    return block.Word(kBlockIterations);
  }

  void CheckVariants(const LoopCode& code, const PatchPlan& plan, Kernel kernel, uint64_t place) {
    const Block block;
    const CopyPlace where = {place, Exits::kOriginalText, 0};
    const auto count = MakeCopy(code, SingleVariant(Change::kCount), where);
    ASSERT_TRUE(count.ok()) << count.status();
    const uint64_t passes = runs_ ? Passes(*count, plan, kernel, block) : 0;
    for (const char* text : kVariants) {
      VariantName name = *ParseVariantName(text);
      if (name.Has(Change::kGroup) && code.groups == 0) continue;
      name.parts.push_back({Change::kCount});
      const auto copy = MakeCopy(code, name, where);
      ++(copy.ok() ? tally_.copies : tally_.refused_copies);
      if (!copy.ok()) ++tally_.reasons[absl::StrCat(text, ": ", copy.status().message())];
      if (!copy.ok() || !runs_) continue;
      EXPECT_EQ(Passes(*copy, plan, kernel, block), passes) << text;
    }
    const auto trace = MakeCopy(code, SingleVariant(Change::kTrace), where);
    ASSERT_TRUE(trace.ok()) << trace.status();
    for (const Reference& r : trace->references) EXPECT_TRUE(r.traced);
    if (!runs_) return;
    EXPECT_EQ(Passes(*trace, plan, kernel, block), passes);
    CheckTrace(*trace, plan, kernel, block);
  }

  // TRACE changes no result, and every address it notes lies in something the kernel may touch.
  void CheckTrace(const CodeCopy& trace, const PatchPlan& plan, Kernel kernel, const Block& block) {
    const Result original = RunKernel(kernel);
    block.Prepare(trace);
    auto* records = reinterpret_cast<TraceRecord*>(block.address() + kBlockTrace);
    for (size_t n = 0; n < trace.references.size(); ++n) records[n] = {~uint64_t{0}, 0, 0, 0};
    const Installed installed(plan, trace.entry);
    EXPECT_EQ(RunKernel(kernel), original);
    for (size_t n = 0; n < trace.references.size(); ++n) {
      const TraceRecord& r = records[n];
      if (r.count == 0) continue;
      EXPECT_LE(r.lowest, r.first);
      EXPECT_LE(r.first, r.highest);
      // A list is entered through its head, which lies elsewhere.
      const bool list = kernel_ == "chase" || kernel_ == "list";
      EXPECT_TRUE(list || r.highest - r.lowest < kElements * sizeof(Node)) << "one array holds it";
    }
  }

  void CheckLoop(const LoopBytes& bytes, Kernel kernel, uint64_t place) {
    ++tally_.loops;
    const auto code = DecodeLoop(bytes);
    const auto plan = code.ok() ? PlanPatch(*code) : code.status();
    if (!plan.ok()) {
      ++tally_.refused_loops;
      ++tally_.reasons[std::string(plan.status().message())];
      return;
    }
    CheckRef(*code, *plan, kernel, place);
    CheckVariants(*code, *plan, kernel, place);
  }

  static bool IsFortran() { return absl::StrContains(GetParam(), "fortran"); }

  bool runs_ = false;
  std::string kernel_;
  Tally tally_;
};

std::string PathOf(const char* name) {
  return absl::StrCat(PERFD_VARIANT_FIXTURES, "/", name);
}

TEST_P(CompiledTest, CopiesOfCompiledLoopsBehave) {
  Library library(PathOf(GetParam()));
  for (const char* name : kKernels) {
    SCOPED_TRACE(name);
    kernel_ = name;
    const Kernel kernel = library.Find(name);
    if (kernel == nullptr && IsFortran()) continue;  // it has some of them
    ASSERT_NE(kernel, nullptr);
    const std::vector<LoopBytes> loops = library.Loops(kernel);
    EXPECT_FALSE(loops.empty());
    for (const LoopBytes& loop : loops) CheckLoop(loop, kernel, library.cache());
  }
  for (const auto& [reason, count] : tally_.reasons)
    std::printf("  %d x %s\n", count, reason.c_str());
  std::printf("  %d loops, %d refused; %d copies, %d refused%s\n", tally_.loops,
              tally_.refused_loops, tally_.copies, tally_.refused_copies,
              runs_ ? "" : "; not run: the CPU lacks the instructions");
  EXPECT_GE(tally_.loops, IsFortran() ? 4 : 22);
  EXPECT_LE(tally_.refused_loops * 10, tally_.loops) << "nine loops in ten can be copied";
  EXPECT_LE(tally_.refused_copies * 10, tally_.copies) << "and nine variants in ten";
}

// Address -> mnemonic, as objdump sees the bytes.
std::map<uint64_t, std::string> Disassemble(const CodeCopy& copy) {
  const std::string path = testing::TempDir() + "variant_copy_" + std::to_string(getpid()) + ".bin";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(copy.bytes.data()),
             static_cast<long>(copy.bytes.size()));
  const std::string command = absl::StrCat(
      "objdump -D -b binary -m i386:x86-64 --no-show-raw-insn --adjust-vma=", copy.address, " ",
      path);
  std::map<uint64_t, std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  char line[512];
  while (pipe != nullptr && std::fgets(line, sizeof(line), pipe) != nullptr) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(":\t", 1));
    if (parts.size() != 2) continue;
    const std::vector<std::string> words =
        absl::StrSplit(parts[1], absl::ByAnyChar(" \n"), absl::SkipEmpty());
    if (words.empty()) continue;
    lines[std::strtoull(parts[0].c_str(), nullptr, 16)] = words[0];
  }
  if (pipe != nullptr) pclose(pipe);
  std::remove(path.c_str());
  return lines;
}

TEST_P(CompiledTest, ObjdumpReadsTheSameInstructions) {
  Library library(PathOf(GetParam()));
  for (const char* name : {"svdcmp", "triad", "roots", "gather", "widen", "choose"}) {
    for (const LoopBytes& bytes : library.Loops(library.Find(name))) {
      const auto code = DecodeLoop(bytes);
      if (!code.ok()) continue;
      for (const char* text : {"REF", "LS", "FP", "DL1", "S2L", "NO_STORE", "REF_CTL"}) {
        const auto copy =
            MakeCopy(*code, *ParseVariantName(text), {library.cache(), Exits::kOriginalText, 0});
        if (!copy.ok()) continue;
        const std::map<uint64_t, std::string> lines = Disassemble(*copy);
        size_t count = 0;
        for (size_t at = 0; at < copy->bytes.size(); ++count) {
          const auto i =
              DecodeLoopInstruction(std::span(copy->bytes).subspan(at), copy->address + at);
          ASSERT_TRUE(i.has_value());
          const auto line = lines.find(copy->address + at);
          ASSERT_NE(line, lines.end()) << name << " " << text << ": no line for " << i->text;
          const bool alias = absl::StrContains(i->mnemonic, "cmp") || i->flow != LoopFlow::kPlain;
          if (i->Is(kVectorOp) && !alias) {
            EXPECT_TRUE(absl::StartsWith(line->second, i->mnemonic))
                << line->second << " " << i->text;
          }
          at += i->length;
        }
        EXPECT_EQ(count, lines.size()) << name << " " << text;
      }
    }
  }
}

TEST_P(CompiledTest, NoVariantAddsARecurrence) {
  Library library(PathOf(GetParam()));
  for (const char* name : kKernels) {
    for (const LoopBytes& bytes : library.Loops(library.Find(name))) {
      const auto code = DecodeLoop(bytes);
      if (!code.ok()) continue;
      for (const char* text : kVariants) {
        const VariantName variant = *ParseVariantName(text);
        if (variant.Has(Change::kGroup) || variant.Has(Change::kPrefetch)) continue;
        const auto copy = MakeCopy(*code, variant, {library.cache(), Exits::kOriginalText, 0});
        if (!copy.ok()) continue;
        // The copy decoded afresh: one effect per original instruction, from all the code between two boundaries.
        std::vector<Effect> effects = Effects(*code);
        for (size_t n = 0; n < copy->address_map.size(); ++n) {
          const auto& instructions = code->instructions;
          size_t index = 0;
          while (index < instructions.size() &&
                 instructions[index].address != copy->address_map[n].original)
            ++index;
          if (index == instructions.size()) continue;
          const uint64_t end = n + 1 < copy->address_map.size()
                                   ? copy->address_map[n + 1].copy
                                   : copy->address + copy->bytes.size();
          std::vector<LoopInstruction> codes;
          for (uint64_t at = copy->address_map[n].copy; at < end;) {
            const auto i =
                DecodeLoopInstruction(std::span(copy->bytes).subspan(at - copy->address), at);
            ASSERT_TRUE(i.has_value());
            codes.push_back(*i);
            at += i->length;
          }
          effects[index] = EffectOf(codes);
        }
        EXPECT_TRUE(AddedRecurrences(*code, effects).empty()) << name << " " << text;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compilers, CompiledTest, testing::Values(PERFD_VARIANT_LIBRARIES),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = std::isalnum(c) != 0 ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace perfd
