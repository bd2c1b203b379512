// daemon/http/page_cache.h - rendered pages, kept as long as the profile is what it was.
//
// Shape    Get gives a page back while the profile's status is the same (a PARTIAL one may yet get late windows).
// Limits   pages and bytes; the page unused for longest goes.
// Threads  thread-safe.
#ifndef DAEMON_HTTP_PAGE_CACHE_H_
#define DAEMON_HTTP_PAGE_CACHE_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "core/model/profile.h"

namespace perfd::daemon {

class PageCache {
 public:
  using Page = std::shared_ptr<const std::string>;  // shared with answers under way

  PageCache(size_t most_pages, size_t most_bytes)
      : most_pages_(most_pages), most_bytes_(most_bytes) {}

  // Null: not kept.
  Page Get(const ProfileStatus& status);
  // A page that is larger than all the room is not kept.
  void Insert(const ProfileStatus& status, Page page);
  size_t bytes();

 private:
  struct Entry {
    ProfileStatus status;
    Page page;
  };
  void Drop(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_pages_;
  const size_t most_bytes_;
  Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // last used first
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_HTTP_PAGE_CACHE_H_
