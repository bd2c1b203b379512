#include "client/commands/terminal.h"

#include <gtest/gtest.h>

namespace perfd::client {
namespace {

StyleInputs Tty() {
  return {true, 120, "xterm-256color", "en_US.UTF-8", false};
}

TEST(TerminalTest, ATerminalGetsEverything) {
  const TextStyle style = ChooseStyle(Tty());
  EXPECT_TRUE(style.utf8);
  EXPECT_TRUE(style.color);
  EXPECT_EQ(style.width, 120);
}

TEST(TerminalTest, APipeGetsPlainText) {
  StyleInputs inputs = Tty();
  inputs.is_tty = false;
  const TextStyle style = ChooseStyle(inputs);
  EXPECT_FALSE(style.utf8);
  EXPECT_FALSE(style.color);
  EXPECT_EQ(style.width, 100);
}

TEST(TerminalTest, NoColorDumbAndPlainLocales) {
  StyleInputs inputs = Tty();
  inputs.no_color = true;
  EXPECT_FALSE(ChooseStyle(inputs).color);
  inputs = Tty();
  inputs.term = "dumb";
  EXPECT_FALSE(ChooseStyle(inputs).color);
  inputs = Tty();
  inputs.locale = "C";
  EXPECT_FALSE(ChooseStyle(inputs).utf8);
  inputs.locale = "C.utf8";
  EXPECT_TRUE(ChooseStyle(inputs).utf8);
}

TEST(TerminalTest, WidthsAreBounded) {
  StyleInputs inputs = Tty();
  inputs.columns = 10;
  EXPECT_EQ(ChooseStyle(inputs).width, 60);
  inputs.columns = 5000;
  EXPECT_EQ(ChooseStyle(inputs).width, 240);
}

}  // namespace
}  // namespace perfd::client
