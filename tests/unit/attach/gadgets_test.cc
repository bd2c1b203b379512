#include "agent/attach/gadgets.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

TEST(GadgetsTest, FindsBothAndKeepsWhatItHas) {
  const std::vector<uint8_t> code = {0x90, 0x0f, 0x05, 0x90, 0x0f, 0x05, 0xc3, 0x48,
                                     0xc7, 0xc0, 0x0f, 0,    0,    0,    0x0f, 0x05};
  Gadgets gadgets;
  FindGadgets(0x1000, code, gadgets);
  EXPECT_EQ(gadgets.call, 0x1004U);
  EXPECT_EQ(gadgets.restorer, 0x1007U);
  FindGadgets(0x2000, code, gadgets);
  EXPECT_EQ(gadgets.call, 0x1004U);
}

TEST(GadgetsTest, NothingInAByteLess) {
  const std::vector<uint8_t> code = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f};
  Gadgets gadgets;
  FindGadgets(0x1000, code, gadgets);
  EXPECT_EQ(gadgets.call, 0U);
  EXPECT_EQ(gadgets.restorer, 0U);
}

TEST(GadgetsTest, TheShortFormOfTheRestorer) {
  const std::vector<uint8_t> code = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
  Gadgets gadgets;
  FindGadgets(0x1000, code, gadgets);
  EXPECT_EQ(gadgets.restorer, 0x1000U);
}

}  // namespace
}  // namespace perfd::agent
