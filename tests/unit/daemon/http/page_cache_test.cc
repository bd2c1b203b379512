#include "daemon/http/page_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace perfd::daemon {
namespace {

ProfileStatus Status(const std::string& id) {
  ProfileStatus status;
  status.id = id;
  return status;
}

PageCache::Page Page(size_t bytes) {
  return std::make_shared<const std::string>(bytes, 'x');
}

TEST(PageCacheTest, APageIsAsGoodAsItsProfileIsTheSame) {
  PageCache cache(10, 1000);
  ProfileStatus status = Status("p-000001");
  EXPECT_EQ(cache.Get(status), nullptr);
  const PageCache::Page page = Page(10);
  cache.Insert(status, page);
  EXPECT_EQ(cache.Get(status), page);
  status.samples = 1;  // late windows
  EXPECT_EQ(cache.Get(status), nullptr);
  cache.Insert(status, Page(20));
  EXPECT_EQ(cache.Get(status)->size(), 20u);
  EXPECT_EQ(cache.bytes(), 20u);
}

TEST(PageCacheTest, TheLeastRecentlyUsedGoes) {
  PageCache cache(2, 1000);
  cache.Insert(Status("a"), Page(1));
  cache.Insert(Status("b"), Page(1));
  EXPECT_NE(cache.Get(Status("a")), nullptr);
  cache.Insert(Status("c"), Page(1));
  EXPECT_EQ(cache.Get(Status("b")), nullptr);
  EXPECT_NE(cache.Get(Status("a")), nullptr);
  EXPECT_NE(cache.Get(Status("c")), nullptr);
}

TEST(PageCacheTest, NeverMoreBytesThanItsRoom) {
  PageCache cache(100, 1000);
  cache.Insert(Status("a"), Page(600));
  cache.Insert(Status("b"), Page(400));
  EXPECT_EQ(cache.bytes(), 1000u);
  cache.Insert(Status("c"), Page(1));
  EXPECT_EQ(cache.bytes(), 401u);
  EXPECT_EQ(cache.Get(Status("a")), nullptr);
  cache.Insert(Status("d"), Page(1001));
  EXPECT_EQ(cache.Get(Status("d")), nullptr);
  EXPECT_EQ(cache.bytes(), 401u);
}

}  // namespace
}  // namespace perfd::daemon
