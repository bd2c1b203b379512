// tests/integration/shadow/system_call_code.h - machine code that makes one system call or calls one function, as a copy of a loop may.
//
// Shape    the result of the call is told as the run's number of iterations. Only registers that a call changes are used.
#ifndef TESTS_INTEGRATION_SHADOW_SYSTEM_CALL_CODE_H_
#define TESTS_INTEGRATION_SHADOW_SYSTEM_CALL_CODE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace perfd::agent {

template <typename T>
uint64_t AddressOf(const T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

struct CallToMake {
  uint64_t number = 0;
  std::vector<uint64_t> arguments = {};  // at most six
};

class CodeBytes {
 public:
  void Add(std::initializer_list<uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes); }
  void AddWord(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
      bytes_.push_back(static_cast<uint8_t>(value >> shift));
  }
  std::vector<uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// `door`: 0: the copy's own instruction, else what it calls with all registers set.
inline std::vector<uint8_t> SystemCall(const CallToMake& call, uint64_t door = 0) {
  // movabs into rdi, rsi, rdx, r10, r8, r9
  constexpr uint8_t kMoves[][2] = {{0x48, 0xbf}, {0x48, 0xbe}, {0x48, 0xba},
                                   {0x49, 0xba}, {0x49, 0xb8}, {0x49, 0xb9}};
  CodeBytes code;
  for (size_t i = 0; i < 6; ++i) {
    code.Add({kMoves[i][0], kMoves[i][1]});
    code.AddWord(i < call.arguments.size() ? call.arguments[i] : 0);
  }
  code.Add({0x48, 0xb8});  // movabs, rax
  code.AddWord(call.number);
  if (door == 0) {
    code.Add({0x0f, 0x05});
  } else {
    code.Add({0x49, 0xbb});  // movabs, r11; call *%r11
    code.AddWord(door);
    code.Add({0x41, 0xff, 0xd3});
  }
  code.Add({0x65, 0x48, 0x89, 0x04, 0x25, 0, 0, 0, 0});  // mov %rax, %gs:kBlockIterations
  return code.bytes();
}

// Where the instruction of the above ends.
inline constexpr uint64_t kSystemCallBytes = 7 * 10 + 2;

using Callee = uint64_t (*)(uint64_t argument);

// Calls a function as the loop itself might; what it returns is told like the result of a system call.
inline std::vector<uint8_t> FunctionCall(Callee callee, uint64_t argument) {
  CodeBytes code;
  // push %rbp; mov %rsp,%rbp; and $-16,%rsp; movabs into rdi and rax; call *%rax
  code.Add({0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xf0, 0x48, 0xbf});
  code.AddWord(argument);
  code.Add({0x48, 0xb8});
  code.AddWord(reinterpret_cast<uint64_t>(callee));
  code.Add({0xff, 0xd0});
  // mov %rax, %gs:kBlockIterations; mov %rbp,%rsp; pop %rbp
  code.Add({0x65, 0x48, 0x89, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x89, 0xec, 0x5d});
  return code.bytes();
}

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_SHADOW_SYSTEM_CALL_CODE_H_
