#include "agent/attach/thread/signal_frame.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cstring>

namespace perfd::agent {
namespace {

constexpr uint64_t kTile = uint64_t{1} << 18;

// AVX, AVX-512 and AMX as Intel places them; the tile data comes last.
XsaveLayout Layout() {
  XsaveLayout layout;
  layout.components[2] = {576, 256};
  layout.components[5] = {1088, 64};
  layout.components[6] = {1152, 512};
  layout.components[7] = {1664, 1024};
  layout.components[17] = {2752, 64};
  layout.components[18] = {2816, 8192};
  return layout;
}

std::vector<uint8_t> Image(size_t size, uint64_t components, uint64_t in_use) {
  std::vector<uint8_t> image(size);
  for (size_t i = 0; i < size; ++i) image[i] = static_cast<uint8_t>(i * 7);
  std::memcpy(image.data() + 464, &components, 8);
  std::memcpy(image.data() + 512, &in_use, 8);
  return image;
}

uint64_t Word(const SignalFrame& frame, uint64_t address) {
  uint64_t word = 0;
  std::memcpy(&word, frame.bytes.data() + (address - frame.start), sizeof(word));
  return word;
}

ThreadState State(std::vector<uint8_t> image) {
  ThreadState state;
  state.registers.rsp = 0x7fff00001238;
  state.registers.rip = 0x5555'0002;
  state.registers.orig_rax = ~uint64_t{0};
  state.registers.rbx = 0xb0b0;
  state.registers.eflags = 0x246;
  state.registers.cs = 0x33;
  state.registers.ss = 0x2b;
  state.signal_mask = 0x1234'5678;
  state.vector_state = std::move(image);
  return state;
}

TEST(SignalFrameTest, LiesBelowTheRedZoneAndIsAligned) {
  for (uint64_t shift = 0; shift < 64; ++shift) {
    ThreadState state = State(Image(2816, 0x200e7, 0xe7));
    state.registers.rsp += shift;
    const auto frame = MakeSignalFrame(state, 0xabc, Layout());
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_LE(frame->start + frame->bytes.size(), state.registers.rsp - 128);
    EXPECT_EQ((frame->start + 8) % 16, 0U);
    EXPECT_EQ(Word(*frame, frame->start), 0xabcU);
    const uint64_t vector_address = Word(*frame, frame->start + 8 + 40 + 23 * 8);
    EXPECT_EQ(vector_address % 64, 0U);
    EXPECT_EQ(vector_address + 2816 + 4, frame->start + frame->bytes.size());
  }
}

TEST(SignalFrameTest, HoldsTheWholeState) {
  const ThreadState state = State(Image(2816, 0x200e7, 0xe7));
  const auto frame = MakeSignalFrame(state, 0xabc, Layout());
  ASSERT_TRUE(frame.ok());
  const uint64_t context = frame->start + 8;
  EXPECT_EQ(Word(*frame, context), 7U);                         // flags
  EXPECT_EQ(Word(*frame, context + 24) & 0xffffffff, 0x1234U);  // impossible alternate stack
  EXPECT_EQ(Word(*frame, context + 40 + 11 * 8), 0xb0b0U);      // rbx
  EXPECT_EQ(Word(*frame, context + 40 + 15 * 8), state.registers.rsp);
  EXPECT_EQ(Word(*frame, context + 40 + 16 * 8), state.registers.rip);
  EXPECT_EQ(Word(*frame, context + 40 + 17 * 8), 0x246U);
  EXPECT_EQ(Word(*frame, context + 40 + 18 * 8), 0x002b'0000'0000'0033U);  // ss, cs
  EXPECT_EQ(Word(*frame, context + 40 + 32 * 8), 0x1234'5678U);            // signal mask
  const uint64_t vector = Word(*frame, context + 40 + 23 * 8);
  EXPECT_EQ(Word(*frame, vector + 464) & 0xffffffff, 0x46505853U);
  EXPECT_EQ(Word(*frame, vector + 464) >> 32, 2820U);  // with the second magic
  EXPECT_EQ(Word(*frame, vector + 472), 0x200e7U);
  EXPECT_EQ(Word(*frame, vector + 480), 2816U);
  uint32_t magic2 = 0;
  std::memcpy(&magic2, frame->bytes.data() + (vector + 2816 - frame->start), 4);
  EXPECT_EQ(magic2, 0x46505845U);
  EXPECT_EQ(std::memcmp(frame->bytes.data() + (vector + 576 - frame->start),
                        state.vector_state.data() + 576, 2816 - 576),
            0);
}

// The kernel reports room for the tiles of a thread that may not use them; sigreturn would drop AVX from a frame with them.
TEST(SignalFrameTest, TileDataIsLeftOut) {
  const auto size = XsaveBytes(Image(11008, 0x600e7, 0xe7), Layout());
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(*size, 2816U);
  const auto frame = MakeSignalFrame(State(Image(11008, 0x600e7, 0xe7)), 0xabc, Layout());
  ASSERT_TRUE(frame.ok());
  const uint64_t vector = Word(*frame, frame->start + 8 + 40 + 23 * 8);
  EXPECT_EQ(Word(*frame, vector + 472), 0x200e7U);
  EXPECT_EQ(Word(*frame, vector + 480), 2816U);
}

TEST(SignalFrameTest, Refusals) {
  EXPECT_FALSE(XsaveBytes(Image(11008, 0x600e7, 0xe7 | kTile), Layout()).ok());  // live tiles
  EXPECT_FALSE(XsaveBytes(Image(2816, 0x200e7, 0x300e7), Layout()).ok());  // in use, not enabled
  EXPECT_FALSE(XsaveBytes(Image(2687, 0xe7, 0xe7), Layout()).ok());        // shorter than its parts
  EXPECT_TRUE(XsaveBytes(Image(2688, 0xe7, 0xe7), Layout()).ok());
  EXPECT_FALSE(XsaveBytes(Image(2688, 0xe5, 0xe5), Layout()).ok());  // without SSE
  EXPECT_FALSE(XsaveBytes(std::vector<uint8_t>(575), Layout()).ok());
}

TEST(SignalFrameTest, ARestartedCallIsMadeAgain) {
  ThreadState state = State(Image(2688, 0xe7, 0xe7));
  state.registers.orig_rax = SYS_futex;
  state.registers.rax = static_cast<uint64_t>(-512);
  const auto frame = MakeSignalFrame(state, 0xabc, Layout());
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(Word(*frame, frame->start + 8 + 40 + 13 * 8), static_cast<uint64_t>(SYS_futex));
  EXPECT_EQ(Word(*frame, frame->start + 8 + 40 + 16 * 8), state.registers.rip - 2);
}

TEST(SignalFrameTest, LayoutOfThisCpuHasNoGapsBelowTheLegacyArea) {
  const XsaveLayout layout = XsaveLayout::OfThisCpu();
  EXPECT_EQ(layout.Size(3), 576U);
  for (const auto& component : layout.components)
    EXPECT_TRUE(component.size == 0 || component.offset >= 576);
}

}  // namespace
}  // namespace perfd::agent
