#include "agent/shadow/rank/copied_addresses.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace perfd::agent {

void CopiedAddresses::Publish(const InjectedCode& code) {
  std::vector<AddressPair> addresses;
  auto add = [&](const CodeCopy& copy) {
    addresses.insert(addresses.end(), copy.address_map.begin(), copy.address_map.end());
  };
  for (const PatchSite& site : code.sites) {
    if (!site.accepted()) continue;
    addresses.push_back({site.built.patch.address, site.built.trampoline});
    add(site.built.live);
    if (site.built.timed) add(*site.built.timed);
    if (site.built.timed_batch) add(site.built.timed_batch->copy);
    for (const CodeCopy& copy : site.built.installed.copies) add(copy);
  }
  std::sort(addresses.begin(), addresses.end(),
            [](const AddressPair& a, const AddressPair& b) { return a.copy < b.copy; });
  MutexLock lock(&mutex_);
  code_ = code.injection.caches;
  addresses_ = std::move(addresses);
}

void CopiedAddresses::Clear() {
  MutexLock lock(&mutex_);
  addresses_.clear();
  code_.clear();
}

std::optional<RuntimeAddress> CopiedAddresses::Original(RuntimeAddress address) const {
  MutexLock lock(&mutex_);
  const bool ours = std::any_of(code_.begin(), code_.end(), [&](const PcRange& range) {
    return address >= range.start && address < range.end;
  });
  if (!ours) return std::nullopt;
  auto after = std::upper_bound(
      addresses_.begin(), addresses_.end(), address,
      [](RuntimeAddress value, const AddressPair& pair) { return value < pair.copy; });
  if (after == addresses_.begin()) return std::nullopt;
  return std::prev(after)->original;
}

}  // namespace perfd::agent
