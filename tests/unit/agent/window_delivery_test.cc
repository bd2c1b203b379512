#include "agent/pipeline/window_delivery.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

class FakeOutput final : public SessionOutput {
 public:
  void OnUpdate(const SessionUpdate&) override {}
  absl::StatusOr<uint64_t> OnWindow(Window window) override {
    if (full) return absl::ResourceExhaustedError("the disk is full");
    windows.push_back(std::move(window));
    return windows.size();
  }
  bool full = false;
  std::vector<Window> windows;
};

Window WithSamples(uint64_t samples) {
  Window window;
  window.accounting.seen = window.accounting.kept = samples;
  return window;
}

TEST(WindowDelivery, StampsAndCountsSequences) {
  FakeOutput output;
  WindowDelivery delivery(&output, "p-1", "node");
  delivery.Expect();
  EXPECT_FALSE(delivery.AwaitAll(absl::ZeroDuration()));
  delivery.Deliver(WithSamples(3), {});
  EXPECT_TRUE(delivery.AwaitAll(absl::ZeroDuration()));
  ASSERT_EQ(output.windows.size(), 1u);
  EXPECT_EQ(output.windows[0].profile_id, "p-1");
  EXPECT_EQ(output.windows[0].node, "node");
  EXPECT_EQ(delivery.last_sequence(), 1u);
}

TEST(WindowDelivery, ARefusedWindowIsCountedInTheNext) {
  FakeOutput output;
  WindowDelivery delivery(&output, "p-1", "node");
  output.full = true;
  for (int i = 0; i < 2; ++i) {
    delivery.Expect();
    delivery.Deliver(WithSamples(10), {});
  }
  EXPECT_EQ(delivery.DrainNotices().size(), 1u) << "said once, not once per window";
  output.full = false;
  delivery.Expect();
  delivery.Deliver(WithSamples(5), {});
  ASSERT_EQ(output.windows.size(), 1u);
  const Accounting& accounting = output.windows[0].accounting;
  EXPECT_EQ(accounting.seen, 25u);
  EXPECT_EQ(accounting.kept, 5u);
  EXPECT_EQ(accounting.dropped[static_cast<size_t>(DropReason::kSpoolFull)], 20u);
  EXPECT_TRUE(accounting.Balanced());
}

TEST(WindowDelivery, WhatIsLostAtTheEndIsSaidAndMakesTheProfilePartial) {
  FakeOutput output;
  WindowDelivery delivery(&output, "p-1", "node");
  output.full = true;
  delivery.Expect();
  delivery.Deliver(WithSamples(10), {});
  delivery.Flush();
  const auto notices = delivery.DrainNotices();
  ASSERT_EQ(notices.size(), 2u);
  for (const Notice& notice : notices) EXPECT_EQ(notice.code, absl::StatusCode::kDataLoss);
  EXPECT_NE(notices[1].text.find("last 10 samples"), std::string::npos) << notices[1].text;
}

TEST(WindowDelivery, NothingIsSaidAtTheEndWhenALaterWindowCarriedTheCount) {
  FakeOutput output;
  WindowDelivery delivery(&output, "p-1", "node");
  output.full = true;
  delivery.Expect();
  delivery.Deliver(WithSamples(10), {});
  output.full = false;
  delivery.Expect();
  delivery.Deliver(WithSamples(1), {});
  delivery.Flush();
  EXPECT_EQ(delivery.DrainNotices().size(), 1u);
}

TEST(WindowDelivery, UnreadableModulesAreSaidOnce) {
  FakeOutput output;
  WindowDelivery delivery(&output, "p-1", "node");
  for (int i = 0; i < 2; ++i) {
    delivery.Expect();
    delivery.Deliver(WithSamples(1), {{"/lib/x.so", absl::NotFoundError("gone"), {}}});
  }
  const auto notices = delivery.DrainNotices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].code, absl::StatusCode::kNotFound);
}

TEST(WindowDelivery, WhatHasNoLinesIsSaidOnceWithTheReason) {
  FakeOutput output;
  WindowDelivery delivery(&output, "p-1", "node");
  for (int i = 0; i < 2; ++i) {
    delivery.Expect();
    delivery.Deliver(WithSamples(1), {{"/lib/x.so", absl::OkStatus(), LinesProblem::kCompression},
                                      {"/lib/y.so", absl::OkStatus(), LinesProblem::kTooLarge},
                                      {"/lib/z.so", absl::OkStatus(), LinesProblem::kDamaged}});
  }
  delivery.Expect();
  delivery.Deliver(WithSamples(1), {{"/lib/x.so", absl::NotFoundError("gone"), {}}});
  const auto notices = delivery.DrainNotices();
  ASSERT_EQ(notices.size(), 4u);
  EXPECT_NE(notices[0].text.find("no source lines of /lib/x.so: "), std::string::npos);
  EXPECT_NE(notices[0].text.find("objcopy --decompress-debug-sections"), std::string::npos);
  EXPECT_NE(notices[1].text.find("1 GiB"), std::string::npos) << notices[1].text;
  EXPECT_NE(notices[2].text.find("DWARF"), std::string::npos) << notices[2].text;
  EXPECT_EQ(notices[3].code, absl::StatusCode::kNotFound) << "a later trouble is no repetition";
}

TEST(WindowDelivery, FlushCarriesTheCountsOfRefusedWindows) {
  FakeOutput output;
  WindowDelivery delivery(&output, "p-1", "node");
  delivery.Flush();
  EXPECT_TRUE(output.windows.empty()) << "nothing was refused";
  output.full = true;
  delivery.Expect();
  delivery.Deliver(WithSamples(4), {});
  delivery.Flush();  // still full: nothing is forgotten
  output.full = false;
  delivery.Flush();
  ASSERT_EQ(output.windows.size(), 1u);
  EXPECT_EQ(output.windows[0].accounting.seen, 4u);
  EXPECT_EQ(output.windows[0].accounting.TotalDropped(), 4u);
  EXPECT_TRUE(output.windows[0].accounting.Balanced());
  delivery.Flush();
  EXPECT_EQ(output.windows.size(), 1u);
}

}  // namespace
}  // namespace perfd::agent
