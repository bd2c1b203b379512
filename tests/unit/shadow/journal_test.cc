#include "agent/shadow/journal.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/shadow/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

Injection Example() {
  Injection injection;
  injection.pid = 4711;
  injection.start_ticks = 123456;
  injection.boot_id = "0b1c-22";
  injection.region = {0x555500000000, 0x555500100000};
  injection.caches = {{0x5554fff00000, 0x555500000000}, {0x7f0000000000, 0x7f0000010000}};
  InjectedSite site;
  site.loop_id = "loop 1\nwith a line";
  site.header = 0x555500401000;
  site.original = {0xf2, 0x0f, 0x58, 0x07, 0x48};
  site.written = {0xe9, 1, 2, 3, 4};
  site.text = {"/home/a b/lulesh", 99, 8, 1, 0x555500400000};
  site.pairs = {{0x555500401000, 0x5554fff00100}, {0x555500401004, 0x5554fff00104}};
  injection.sites = {site, site};
  injection.sites[1].pairs.clear();
  return injection;
}

void ExpectSame(const Injection& a, const Injection& b) {
  EXPECT_EQ(a.pid, b.pid);
  EXPECT_EQ(a.start_ticks, b.start_ticks);
  EXPECT_EQ(a.boot_id, b.boot_id);
  EXPECT_EQ(a.region.start, b.region.start);
  EXPECT_EQ(a.region.end, b.region.end);
  ASSERT_EQ(a.caches.size(), b.caches.size());
  EXPECT_EQ(a.caches[1].start, b.caches[1].start);
  ASSERT_EQ(a.sites.size(), b.sites.size());
  for (size_t i = 0; i < a.sites.size(); ++i) {
    EXPECT_EQ(a.sites[i].loop_id, b.sites[i].loop_id);
    EXPECT_EQ(a.sites[i].header, b.sites[i].header);
    EXPECT_EQ(a.sites[i].original, b.sites[i].original);
    EXPECT_EQ(a.sites[i].written, b.sites[i].written);
    EXPECT_EQ(a.sites[i].text, b.sites[i].text);
    EXPECT_EQ(a.sites[i].pairs, b.sites[i].pairs);
  }
}

TEST(JournalTest, WhatIsWrittenIsRead) {
  auto decoded = DecodeInjection(EncodeInjection(Example()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ExpectSame(*decoded, Example());
}

// Anonymous text has no path.
TEST(JournalTest, EmptyNamesSurvive) {
  Injection injection = Example();
  injection.sites[0].text = {};
  injection.sites[0].loop_id.clear();
  auto decoded = DecodeInjection(EncodeInjection(injection));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ExpectSame(*decoded, injection);
}

TEST(JournalTest, EveryCutIsNoticed) {
  const std::string text = EncodeInjection(Example());
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(DecodeInjection(text.substr(0, size)).ok()) << size;
}

TEST(JournalTest, EveryChangedByteIsNoticed) {
  const std::string text = EncodeInjection(Example());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(DecodeInjection(changed).ok()) << i;
  }
}

// FNV-1a, 64 bits, written anew: what a careless writer would seal.
std::string Sealed(const std::string& body) {
  uint64_t sum = 14695981039346656037u;
  for (const char c : body) {
    sum ^= static_cast<unsigned char>(c);
    sum *= 1099511628211u;
  }
  char line[32];
  snprintf(line, sizeof(line), "end %016llx\n", static_cast<unsigned long long>(sum));
  return body + line;
}

TEST(JournalTest, SealedNonsenseIsRefused) {
  const std::string head = "perfd injection 1\n", process = "process 1 2 -\n";
  const auto reads = [](const std::string& body) { return DecodeInjection(Sealed(body)).ok(); };
  EXPECT_TRUE(reads(head + process));
  EXPECT_FALSE(reads(head));  // names no process
  EXPECT_FALSE(reads(head + "process 0 2 -\n"));
  EXPECT_FALSE(reads(head + process + "pair 1 2\n"));  // of no site
  EXPECT_FALSE(reads(head + process + "jump 1 2\n"));
  const auto site = [&](const char* original, const char* written) {
    return reads(head + process + "site 10 " + original + " " + written + " 1 2 3 4 2f61 6c\n");
  };
  EXPECT_TRUE(site("0102", "e901"));
  EXPECT_FALSE(site("0102", "e9"));  // of different length
  EXPECT_FALSE(site("01zz", "e901"));
  EXPECT_FALSE(site("010", "e90"));
}

TEST(JournalTest, StatedLimitsAreKept) {
  const auto reads = [](const Injection& injection) {
    return DecodeInjection(EncodeInjection(injection)).ok();
  };
  Injection injection = Example();
  injection.sites[0].original.assign(kMaxStolenBytes, 1);
  injection.sites[0].written.assign(kMaxStolenBytes, 2);
  EXPECT_TRUE(reads(injection));
  injection.sites[0].original.push_back(1);
  injection.sites[0].written.push_back(2);
  EXPECT_FALSE(reads(injection));
  injection = Example();
  injection.sites.assign(kMaxSites, Example().sites[0]);
  EXPECT_TRUE(reads(injection));
  injection.sites.push_back(Example().sites[0]);
  EXPECT_FALSE(reads(injection));
  injection = Example();
  injection.caches.assign(kMaxCaches, {1, 2});
  EXPECT_TRUE(reads(injection));
  injection.caches.push_back({1, 2});
  EXPECT_FALSE(reads(injection));
  injection = Example();
  injection.region = {5, 5};
  EXPECT_TRUE(reads(injection));
  injection.region = {5, 4};
  EXPECT_FALSE(reads(injection));
}

TEST(JournalTest, NobodyElseReadsItOrChoosesWhereItIsWritten) {
  const std::string directory = absl::StrCat(::testing::TempDir(), "/journal-mode-", getpid());
  const std::string path = directory + "/4711-123456.injection";
  const Journal journal = *Journal::Make(directory);
  ASSERT_TRUE(journal.Write(Example()).ok());
  EXPECT_EQ(std::filesystem::status(path).permissions() & std::filesystem::perms::all,
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::ofstream(directory + "/victim") << "mine";
  std::filesystem::create_symlink(directory + "/victim", path + ".new");
  EXPECT_TRUE(journal.Write(Example()).ok()) << "the link is taken away";
  EXPECT_EQ(std::filesystem::file_size(directory + "/victim"), 4u);
  std::filesystem::remove_all(directory);
}

// What a journal says is written into processes (the attack: a folder of another user in its place, with such a file).
TEST(JournalTest, OnlyOursAreBelievedAndTheOthersStay) {
  const std::string directory = absl::StrCat(::testing::TempDir(), "/journal-whose-", getpid());
  const std::string path = directory + "/4711-123456.injection";
  const Journal journal = *Journal::Make(directory);
  ASSERT_TRUE(journal.Write(Example()).ok());
  std::vector<std::string> damaged;
  std::filesystem::rename(directory, directory + "-away");
  std::filesystem::create_directory(directory);
  std::ofstream(directory + "/7-7.injection") << EncodeInjection(Example());
  EXPECT_EQ(journal.ReadAll(&damaged).size(), 1u) << "of the folder that was opened";
  EXPECT_TRUE(absl::IsNotFound(journal.Read(7, 7).status()));
  std::filesystem::remove_all(directory);
  std::filesystem::rename(directory + "-away", directory);

  std::filesystem::permissions(path, std::filesystem::perms(0606));
  EXPECT_TRUE(absl::IsPermissionDenied(journal.Read(4711, 123456).status()));
  EXPECT_TRUE(journal.ReadAll(&damaged).empty());
  EXPECT_THAT(damaged, ::testing::ElementsAre(::testing::HasSubstr("can be written by others")));
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  std::filesystem::permissions(directory, std::filesystem::perms(0707));
  EXPECT_TRUE(absl::IsPermissionDenied(Journal::Make(directory).status()));
  std::filesystem::permissions(directory, std::filesystem::perms(0700));
  if (chown(path.c_str(), 30001, 30001) != 0) {
    std::filesystem::remove_all(directory);
    GTEST_SKIP() << "needs root to give a file away";
  }
  damaged.clear();
  EXPECT_TRUE(journal.ReadAll(&damaged).empty());
  EXPECT_THAT(damaged, ::testing::ElementsAre(::testing::HasSubstr("belongs to uid 30001")));
  std::filesystem::remove_all(directory);
}

TEST(JournalTest, AReusedPidHasAJournalOfItsOwn) {
  const std::string directory = absl::StrCat(::testing::TempDir(), "/journal-pid-", getpid());
  const Journal journal = *Journal::Make(directory);
  Injection next = Example();
  next.start_ticks += 1;
  ASSERT_TRUE(journal.Write(Example()).ok());
  ASSERT_TRUE(journal.Write(next).ok());
  std::vector<std::string> damaged;
  EXPECT_EQ(journal.ReadAll(&damaged).size(), 2u);
  ASSERT_TRUE(journal.Remove(Example()).ok());
  ASSERT_EQ(journal.ReadAll(&damaged).size(), 1u);
  EXPECT_EQ(journal.ReadAll(&damaged)[0].start_ticks, next.start_ticks);
  std::filesystem::remove_all(directory);
}

TEST(JournalTest, OneAgentHoldsIt) {
  const std::string directory = absl::StrCat(::testing::TempDir(), "/held-", getpid());
  const Journal journal = *Journal::Make(directory);
  {
    const absl::StatusOr<UniqueFd> held = journal.Lock();
    ASSERT_TRUE(held.ok()) << held.status();
    EXPECT_EQ(Journal::Open(directory)->Lock().status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(journal.Lock().ok());
  std::filesystem::remove_all(directory);
}

TEST(JournalTest, FilesComeAndGo) {
  const std::string directory = absl::StrCat(::testing::TempDir(), "/journal-test-", getpid());
  const Journal journal = *Journal::Make(directory);
  std::vector<std::string> damaged;
  EXPECT_TRUE(journal.ReadAll(&damaged).empty());
  ASSERT_TRUE(journal.Write(Example()).ok());
  ASSERT_TRUE(journal.Write(Example()).ok());  // replaces
  std::ofstream(directory + "/9-9.injection") << "perfd injection 1\nend 0\n";
  std::ofstream(directory + "/1-1.injection.new") << "half";  // a writer died
  auto all = journal.ReadAll(&damaged);
  ASSERT_EQ(all.size(), 1u);
  ExpectSame(all[0], Example());
  EXPECT_THAT(damaged, ::testing::ElementsAre(::testing::HasSubstr("9-9.injection")));
  EXPECT_TRUE(journal.Remove(Example()).ok());
  EXPECT_TRUE(journal.Remove(Example()).ok());  // again is no error
  damaged.clear();
  EXPECT_TRUE(journal.ReadAll(&damaged).empty());
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace perfd::agent
