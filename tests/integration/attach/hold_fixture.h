// tests/integration/attach/hold_fixture.h - requests that the tests of holds share; skips where ptrace is not allowed.
#ifndef TESTS_INTEGRATION_ATTACH_HOLD_FIXTURE_H_
#define TESTS_INTEGRATION_ATTACH_HOLD_FIXTURE_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/attach/hold_request.h"
#include "agent/attach/tracer.h"
#include "tests/integration/attach/attach_puppet.h"

namespace perfd::agent {

inline constexpr int64_t kLongStopNs = 2'000'000'000;  // tests share the machine with others

inline std::unique_ptr<Tracer> StartTracer(std::vector<std::string> arguments = {}) {
  auto tracer = Tracer::Start({PERFD_TRACER, std::move(arguments)});
  EXPECT_TRUE(tracer.ok()) << tracer.status();
  return tracer.ok() ? std::move(*tracer) : nullptr;
}

inline OpValue Number(uint64_t number) {
  return {number, kNoOp};
}
inline OpValue ResultOf(int32_t op, uint64_t plus = 0) {
  return {plus, op};
}

inline CallOp MapOp(uint64_t bytes) {
  CallOp map;
  map.call = SYS_mmap;
  map.arguments = {Number(0),
                   Number(bytes),
                   Number(PROT_READ | PROT_WRITE),
                   Number(MAP_PRIVATE | MAP_ANONYMOUS),
                   Number(~uint64_t{0}),
                   Number(0)};
  return map;
}

inline CallOp UnmapOp(OpValue address, uint64_t bytes) {
  CallOp unmap;
  unmap.call = SYS_munmap;
  unmap.arguments = {address, Number(bytes)};
  unmap.expect = CallOp::Expect::kEqual;
  return unmap;
}

inline HoldRequest RequestFor(const AttachPuppet& puppet, std::vector<HoldOp> ops) {
  return {puppet.pid(), puppet.start_ticks(), kLongStopNs, std::move(ops)};
}

// Maps 64 KiB, writes there, reads it back, unmaps: leaves nothing.
inline HoldRequest MapAndUnmap(const AttachPuppet& puppet) {
  constexpr uint64_t kBytes = 65536;
  const std::vector<uint8_t> text = {'p', 'e', 'r', 'f', 'd'};
  return RequestFor(puppet, {MapOp(kBytes), WriteOp{ResultOf(0, 100), text, false},
                             ExpectBytesOp{ResultOf(0, 100), text}, UnmapOp(ResultOf(0), kBytes)});
}

// A copy of the puppet's five-byte loop (dec %rcx; jnz) that goes on behind the loop; returns its address.
inline constexpr uint64_t kLoopBytes = 5, kDecBytes = 3, kCopyBytes = 4096;

inline absl::StatusOr<uint64_t> MapLoopCopy(Tracer& tracer, const AttachPuppet& puppet) {
  const uint64_t end = puppet.section().second;
  std::vector<uint8_t> copy = {0x48, 0xff, 0xc9, 0x75, 0xfb, 0xff, 0x25, 0, 0, 0, 0};
  for (int i = 0; i < 8; ++i) copy.push_back(static_cast<uint8_t>(end >> (8 * i)));
  CallOp protect;
  protect.call = SYS_mprotect;
  protect.arguments = {ResultOf(0), Number(kCopyBytes), Number(PROT_READ | PROT_EXEC)};
  const auto reply = tracer.Run(
      RequestFor(puppet, {MapOp(kCopyBytes), WriteOp{ResultOf(0), copy, false}, protect}));
  if (!reply.ok()) return reply.status();
  if (!reply->status.ok()) return reply->status;
  return reply->results[0].value;
}

inline MoveThreadsOp MoveIntoCopy(const AttachPuppet& puppet, uint64_t place) {
  const auto [start, end] = puppet.section();
  return {.pairs = {{start, place}, {start + kDecBytes, place + kDecBytes}},
          .ranges = {},
          .pairs_only = {{start, end}}};
}

inline MoveThreadsOp MoveOutOfCopy(const AttachPuppet& puppet, uint64_t place) {
  const uint64_t start = puppet.section().first;
  return {.pairs = {{place + kLoopBytes, start + kLoopBytes}},
          .ranges = {{{place, place + kLoopBytes}, start}},
          .pairs_only = {}};
}

class HoldTest : public ::testing::Test {
 protected:
  void SetUp() override {
    AttachPuppet puppet({"spin"});
    tracer_ = StartTracer();
    ASSERT_NE(tracer_, nullptr);
    const auto reply = tracer_->Run(RequestFor(puppet, {}));
    ASSERT_TRUE(reply.ok()) << reply.status();
    if (absl::IsPermissionDenied(reply->status))
      GTEST_SKIP() << "ptrace is not allowed here: " << reply->status;
    ASSERT_TRUE(reply->status.ok()) << reply->status;
  }

  std::unique_ptr<Tracer> tracer_;
};

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_ATTACH_HOLD_FIXTURE_H_
