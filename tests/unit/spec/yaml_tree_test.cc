#include "core/spec/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace perfd {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(absl::string_view text) {
  const auto tree = ReadYaml(text);
  return tree.ok() ? "" : std::string(tree.status().message());
}

TEST(YamlTreeTest, KeepsTextPositionsAndQuotes) {
  const auto tree = ReadYaml("a: off\nb:\n  - \"x\"\n  - ~\n");
  ASSERT_TRUE(tree.ok());
  ASSERT_EQ(tree->items.size(), 2u);
  EXPECT_EQ(tree->items[0].key, "a");
  EXPECT_EQ(tree->items[0].text, "off");
  EXPECT_FALSE(tree->items[0].quoted);
  EXPECT_EQ(tree->items[0].line, 1);
  EXPECT_EQ(tree->items[0].column, 4);
  EXPECT_EQ(tree->items[1].key_line, 2);
  ASSERT_EQ(tree->items[1].items.size(), 2u);
  EXPECT_TRUE(tree->items[1].items[0].quoted);
  EXPECT_EQ(tree->items[1].items[1].kind, YamlNode::Kind::kNull);
}

TEST(YamlTreeTest, RefusesAnchorsAliasesTagsAndDocuments) {
  EXPECT_THAT(ErrorOf("a: &x 1\nb: *x\n"), HasSubstr("line 1, column 4: anchors"));
  EXPECT_THAT(ErrorOf("a: &x [1]\nb: [*x,*x]\n"), HasSubstr("anchors"));
  EXPECT_THAT(ErrorOf("a: !!python/object x\n"), HasSubstr("tags"));
  EXPECT_THAT(ErrorOf("a: 1\n---\nb: 2\n"), HasSubstr("second document"));
  EXPECT_THAT(ErrorOf("? [a, b]\n: 1\n"), HasSubstr("plain word"));
}

TEST(YamlTreeTest, RefusesTabsWithTheirPosition) {
  EXPECT_THAT(ErrorOf("a:\n\tb: 1\n"), HasSubstr("line 2, column 1: tab"));
  EXPECT_THAT(ErrorOf("a:\n  \tb: 1\n"), HasSubstr("line 2, column 3: tab"));
  EXPECT_EQ(ErrorOf("a: 1\t# fine\n\t# a comment\n \t\n"), "");
}

TEST(YamlTreeTest, SizeLimitIsExact) {
  const std::string head = "a: 1\n#";
  EXPECT_EQ(ErrorOf(head + std::string(kMaxYamlBytes - head.size(), 'x')), "");
  EXPECT_THAT(ErrorOf(head + std::string(kMaxYamlBytes - head.size() + 1, 'x')),
              HasSubstr("65537 bytes"));
}

TEST(YamlTreeTest, DepthAndNodeLimits) {
  EXPECT_EQ(ErrorOf(std::string(16, '[') + std::string(16, ']')), "");
  EXPECT_THAT(ErrorOf(std::string(17, '[') + std::string(17, ']')), HasSubstr("too deeply"));
  EXPECT_NE(ErrorOf(std::string(60000, '[')), "");
  EXPECT_NE(ErrorOf(std::string(60000, '{')), "");
  std::string many = "[1";
  for (int i = 0; i < 16384; ++i) many += ",1";
  EXPECT_THAT(ErrorOf(many + "]"), HasSubstr("too many values"));
}

TEST(YamlTreeTest, SyntaxErrorsCarryTheirPosition) {
  EXPECT_THAT(ErrorOf("a: [1, 2\nb: 3\n"), HasSubstr("line "));
  EXPECT_THAT(ErrorOf("a: b: c\n"), HasSubstr("line 1, column "));
}

TEST(YamlTreeTest, BinaryIsRefused) {
  EXPECT_THAT(ErrorOf(absl::string_view("a: \0b", 5)), HasSubstr("not UTF-8"));
  EXPECT_THAT(ErrorOf("\xFF\xFE\x61\x3A"), HasSubstr("not UTF-8"));
}

}  // namespace
}  // namespace perfd
