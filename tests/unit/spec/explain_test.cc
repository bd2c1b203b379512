#include "core/spec/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/spec/spec_key.h"

namespace perfd {
namespace {

using ::testing::HasSubstr;

TEST(ExplainTest, EveryKeyIsExplained) {
  const std::string all = ExplainAllKeys();
  for (const SpecKey& key : SpecKeys()) {
    EXPECT_THAT(all, HasSubstr(std::string(key.meaning)));
    EXPECT_TRUE(ExplainKey(key.path).ok()) << key.path;
  }
  EXPECT_THAT(all, HasSubstr("frequency, default 199Hz, range 1Hz..10000Hz"));
}

TEST(ExplainTest, FindsKeysByLeafAndSuggests) {
  EXPECT_THAT(*ExplainKey("callpaths"), HasSubstr("one of auto off fp dwarf"));
  EXPECT_THAT(*ExplainKey("budget"), HasSubstr("shadow:"));
  const auto missing = ExplainKey("hotspots.frequncy");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("'hotspots.frequency'"));
}

TEST(ExplainTest, SchemaHasEveryKeyOnce) {
  const auto schema = nlohmann::json::parse(ProfileJsonSchema());
  for (const SpecKey& key : SpecKeys()) {
    const std::string section(SectionName(key.path));
    const auto& parent = section.empty() ? schema : schema["properties"][section];
    EXPECT_TRUE(parent["properties"].contains(std::string(LeafName(key.path)))) << key.path;
    EXPECT_EQ(parent["additionalProperties"], false);
  }
  EXPECT_EQ(schema["required"], nlohmann::json::array({"target"}));
}

}  // namespace
}  // namespace perfd
