#include "core/model/variant_name.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

std::string Canonical(const std::string& text) {
  const auto name = ParseVariantName(text);
  return name.ok() ? name->Text() : std::string(name.status().message());
}

TEST(VariantNameTest, EverySingleNameComesBack) {
  for (int i = 0; i < kChangeCount; ++i) {
    const auto change = static_cast<Change>(i);
    const int32_t parameter = change == Change::kGroup ? 7 : change == Change::kPrefetch ? 50 : 0;
    const VariantName name = SingleVariant(change, parameter);
    const auto parsed = ParseVariantName(name.Text());
    ASSERT_TRUE(parsed.ok()) << name.Text() << ": " << parsed.status();
    EXPECT_EQ(*parsed, name);
  }
}

TEST(VariantNameTest, CombinationsHaveOneSpelling) {
  EXPECT_EQ(Canonical("NO_RED+NO_DIV"), "NO_DIV+NO_RED");
  EXPECT_EQ(Canonical(" NO_DIV + NO_RED "), "NO_DIV+NO_RED");
  EXPECT_EQ(Canonical("GROUP(2)+GROUP(1)"), "GROUP(1)+GROUP(2)");
}

TEST(VariantNameTest, BadNamesSayWhatIsWrong) {
  EXPECT_NE(Canonical("NO_DIVS").find("unknown variant 'NO_DIVS'; known: REF,"), std::string::npos);
  EXPECT_EQ(Canonical("LS(3)"), "variant LS takes no parameter");
  EXPECT_EQ(Canonical("GROUP"), "variant GROUP needs a parameter: GROUP(0..63)");
  EXPECT_EQ(Canonical("PREFETCH(0)"), "parameter of PREFETCH(0) must be 1..100");
  EXPECT_EQ(Canonical("PREFETCH(101)"), "parameter of PREFETCH(101) must be 1..100");
  EXPECT_EQ(Canonical("GROUP(64)"), "parameter of GROUP(64) must be 0..63");
  EXPECT_EQ(Canonical("LS+LS"), "variant LS+LS names LS twice");
  EXPECT_EQ(Canonical("REF+LS"), "REF, COUNT and TRACE cannot be combined (REF+LS)");
  EXPECT_NE(Canonical("").find("unknown variant ''"), std::string::npos);
  EXPECT_NE(Canonical("LS+").find("unknown variant ''"), std::string::npos);
}

TEST(VariantNameTest, ParametersAreFound) {
  const auto name = ParseVariantName("GROUP(3)+S2L");
  ASSERT_TRUE(name.ok());
  EXPECT_TRUE(name->Has(Change::kS2l));
  EXPECT_FALSE(name->Has(Change::kLs));
  EXPECT_EQ(name->Parameter(Change::kGroup), 3);
  EXPECT_EQ(name->Parameter(Change::kPrefetch), 0);
}

}  // namespace
}  // namespace perfd
