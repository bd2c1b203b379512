#include "client/render/pprof.h"

#include <google/protobuf/io/coded_stream.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>

#include "tests/unit/client/sample_report.h"

namespace perfd::client {
namespace {

// A decoder of its own: every field of a message by number.
struct Decoded {
  std::map<int, std::vector<uint64_t>> numbers;
  std::map<int, std::vector<std::string>> texts;
};

Decoded Decode(const std::string& bytes) {
  Decoded message;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  while (const uint32_t tag = in.ReadTag()) {
    const int field = static_cast<int>(tag >> 3);
    uint64_t value = 0;
    EXPECT_TRUE(in.ReadVarint64(&value));
    if ((tag & 7) == 0) {
      message.numbers[field].push_back(value);
      continue;
    }
    EXPECT_EQ(tag & 7, 2u);
    std::string text;
    EXPECT_TRUE(in.ReadString(&text, static_cast<int>(value)));
    message.texts[field].push_back(text);
  }
  EXPECT_EQ(static_cast<size_t>(in.CurrentPosition()), bytes.size());
  return message;
}

std::string Gunzip(const std::string& packed) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(1 << 20, '\0');
  std::string in = packed;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

// The names of a sample's frames, leaf first, through location and function tables.
std::vector<std::string> FrameNames(const Decoded& profile, const Decoded& sample) {
  std::map<uint64_t, uint64_t> function_name;
  for (const std::string& bytes : profile.texts.at(5)) {
    const Decoded function = Decode(bytes);
    function_name[function.numbers.at(1)[0]] = function.numbers.at(2)[0];
  }
  std::map<uint64_t, std::string> location_name;
  for (const std::string& bytes : profile.texts.at(4)) {
    const Decoded location = Decode(bytes);
    const Decoded line = Decode(location.texts.at(4)[0]);
    location_name[location.numbers.at(1)[0]] =
        profile.texts.at(6)[function_name.at(line.numbers.at(1)[0])];
  }
  std::vector<std::string> names;
  for (const uint64_t id : sample.numbers.at(1)) names.push_back(location_name.at(id));
  return names;
}

TEST(PprofTest, DecodesToTheSamplesOfTheReport) {
  const auto packed = RenderPprof(SampleReport());
  ASSERT_TRUE(packed.ok());
  const Decoded profile = Decode(Gunzip(*packed));
  EXPECT_EQ(profile.texts.at(6)[0], "");
  ASSERT_EQ(profile.texts.at(1).size(), 2u);
  const Decoded type = Decode(profile.texts.at(1)[1]);
  EXPECT_EQ(profile.texts.at(6)[type.numbers.at(1)[0]], "cpu");
  EXPECT_EQ(profile.texts.at(6)[type.numbers.at(2)[0]], "nanoseconds");
  ASSERT_EQ(profile.texts.at(2).size(), 8u);  // four places, two ranks
  const Decoded first = Decode(profile.texts.at(2)[0]);
  EXPECT_EQ(FrameNames(profile, first),
            (std::vector<std::string>{"loop@lulesh.cc:812", "compute_forces", "lulesh2.0"}));
  EXPECT_EQ(first.numbers.at(2), (std::vector<uint64_t>{250, 1'000'000'000}));
  const Decoded label = Decode(Decode(profile.texts.at(2)[1]).texts.at(3)[0]);
  EXPECT_EQ(profile.texts.at(6)[label.numbers.at(1)[0]], "rank");
  EXPECT_EQ(label.numbers.at(3)[0], 1u);
  EXPECT_EQ(profile.numbers.at(10)[0], 60'000'000'000u);
}

TEST(PprofTest, CallPathsAreLeafFirst) {
  Report report = SampleReport();
  report.stacks = {{0, {"main", "foo", "bar"}, 199}};
  const Decoded profile = Decode(EncodePprof(report).Message());
  ASSERT_EQ(profile.texts.at(2).size(), 1u);
  const Decoded sample = Decode(profile.texts.at(2)[0]);
  EXPECT_EQ(FrameNames(profile, sample), (std::vector<std::string>{"bar", "foo", "main"}));
  EXPECT_EQ(sample.numbers.at(2)[0], 199u);
  EXPECT_EQ(sample.numbers.at(2)[1], 2'500'000'000u);  // all that rank 0 used
}

TEST(PprofTest, SharedFramesAreStoredOnce) {
  Report report = SampleReport();
  report.stacks = {{0, {"main", "foo"}, 1}, {0, {"main", "bar"}, 1}};
  EXPECT_EQ(Decode(EncodePprof(report).Message()).texts.at(5).size(), 3u);
}

}  // namespace
}  // namespace perfd::client
