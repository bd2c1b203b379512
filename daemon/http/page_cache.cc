#include "daemon/http/page_cache.h"

#include <algorithm>
#include <utility>

#include "core/base/mutex.h"

namespace perfd::daemon {

PageCache::Page PageCache::Get(const ProfileStatus& status) {
  MutexLock lock(&mutex_);
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& entry) { return entry.status.id == status.id; });
  if (it == entries_.end() || !(it->status == status)) return nullptr;
  entries_.splice(entries_.begin(), entries_, it);
  return it->page;
}

void PageCache::Drop(const std::string& id) {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& entry) { return entry.status.id == id; });
  if (it == entries_.end()) return;
  bytes_ -= it->page->size();
  entries_.erase(it);
}

void PageCache::Insert(const ProfileStatus& status, Page page) {
  MutexLock lock(&mutex_);
  Drop(status.id);
  if (page->size() > most_bytes_) return;
  bytes_ += page->size();
  entries_.push_front({status, std::move(page)});
  while (entries_.size() > most_pages_ || bytes_ > most_bytes_) {
    bytes_ -= entries_.back().page->size();
    entries_.pop_back();
  }
}

size_t PageCache::bytes() {
  MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace perfd::daemon
