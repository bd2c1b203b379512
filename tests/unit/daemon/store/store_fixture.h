// A store in a folder of its own, and the values to put into it.
#ifndef TESTS_UNIT_DAEMON_STORE_STORE_FIXTURE_H_
#define TESTS_UNIT_DAEMON_STORE_STORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "core/base/notification.h"
#include "daemon/store/sqlite_store.h"

namespace perfd::daemon {

class StoreFixture : public testing::Test {
 protected:
  StoreFixture() {
    std::string name = (std::filesystem::temp_directory_path() / "perfd-store-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~StoreFixture() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  absl::Status Open(int64_t hard_limit_bytes = 0) {
    store_.reset();
    StoreOptions options;
    options.directory = folder_ + "/store";
    options.hard_limit_bytes = hard_limit_bytes;
    auto store = SqliteStore::Open(std::move(options));
    if (!store.ok()) return store.status();
    store_ = *std::move(store);
    return absl::OkStatus();
  }

  static ProfileStatus Profile(uint32_t uid, ProfileState state = ProfileState::kPending) {
    ProfileStatus status;
    status.name = "test";
    status.state = state;
    status.requester = {uid, "user", false};
    status.spec.target.command = "app";
    status.submitted_unix_ns = 1000;
    return status;
  }

  static WindowRecord Record(const std::string& profile, uint64_t sequence, size_t bytes = 100) {
    return {profile, {"stream"}, sequence, "node", std::string(bytes, 'w')};
  }

  absl::StatusOr<AppendResult> Append(WindowRecord record) {
    return AppendTo(*store_, std::move(record));
  }

  static absl::StatusOr<AppendResult> AppendTo(SqliteStore& store, WindowRecord record) {
    Notification ready;
    absl::StatusOr<AppendResult> result;
    const absl::Status queued =
        store.Append(std::move(record), [&](absl::StatusOr<AppendResult> got) {
          result = std::move(got);
          ready.Notify();
        });
    if (!queued.ok()) return queued;
    ready.WaitForNotification();
    return result;
  }

  std::vector<std::string> Windows(const std::string& profile) {
    return ReadAll(*store_, profile).windows;
  }

  struct Stored {
    std::string aggregate;
    int64_t up_to_row_id = 0;
    std::vector<std::string> windows;
  };
  static Stored ReadAll(SqliteStore& store, const std::string& profile) {
    Stored stored;
    ResultsVisitor visitor;
    visitor.aggregate = [&](const std::string& body, int64_t up_to_row_id) {
      stored.aggregate = body;
      stored.up_to_row_id = up_to_row_id;
      return absl::OkStatus();
    };
    visitor.window = [&](int64_t row_id, const std::string& body) {
      EXPECT_LE(row_id, stored.up_to_row_id);
      stored.windows.push_back(body);
      return absl::OkStatus();
    };
    EXPECT_TRUE(ReadResults(store, profile, visitor).ok());
    return stored;
  }

  absl::Status Skip(const std::string& stream, uint64_t sequence, const std::string& owner = "") {
    Notification ready;
    absl::Status result;
    absl::Status queued = store_->Skip({stream, owner}, sequence, [&](const absl::Status& status) {
      result = status;
      ready.Notify();
    });
    if (!queued.ok()) return queued;
    ready.WaitForNotification();
    return result;
  }

  std::string folder_;
  std::unique_ptr<SqliteStore> store_;
};

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_STORE_STORE_FIXTURE_H_
