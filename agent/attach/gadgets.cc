#include "agent/attach/gadgets.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr std::array<uint8_t, 3> kCall = {0x0f, 0x05, 0xc3};
constexpr std::array<uint8_t, 9> kRestorer = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
constexpr std::array<uint8_t, 7> kShortRestorer = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
constexpr size_t kMaxCodeBytes = size_t{64} << 20;  // of one mapping

template <size_t kSize>
uint64_t Find(uint64_t address, std::span<const uint8_t> code,
              const std::array<uint8_t, kSize>& bytes) {
  const auto found = std::search(code.begin(), code.end(), bytes.begin(), bytes.end());
  return found == code.end() ? 0 : address + static_cast<uint64_t>(found - code.begin());
}

template <size_t kSize>
bool Holds(const Memory& memory, uint64_t address, const std::array<uint8_t, kSize>& bytes) {
  std::array<uint8_t, kSize> found{};
  return memory.Read(address, found).ok() && found == bytes;
}

bool Searchable(const MapEntry& map) {
  return map.readable && map.executable && !map.writable && !map.shared &&
         (map.inode != 0 || map.path == "[vdso]");
}

bool LooksLikeLibc(const MapEntry& map) {
  return absl::StrContains(map.path, "/libc.so") || absl::StrContains(map.path, "/libc-") ||
         absl::StrContains(map.path, "/ld-musl");
}

bool InExecutableMap(const std::vector<MapEntry>& maps, uint64_t start, uint64_t size) {
  return std::any_of(maps.begin(), maps.end(), [=](const MapEntry& map) {
    return Searchable(map) && start >= map.start && start < map.end && map.end - start >= size;
  });
}

}  // namespace

void FindGadgets(uint64_t address, std::span<const uint8_t> code, Gadgets& gadgets) {
  if (gadgets.call == 0) gadgets.call = Find(address, code, kCall);
  if (gadgets.restorer == 0) gadgets.restorer = Find(address, code, kRestorer);
  if (gadgets.restorer == 0) gadgets.restorer = Find(address, code, kShortRestorer);
}

absl::StatusOr<Gadgets> FindGadgets(const Memory& memory, const std::vector<MapEntry>& maps) {
  std::vector<const MapEntry*> order;
  for (const MapEntry& map : maps)
    if (Searchable(map)) order.push_back(&map);
  std::stable_partition(order.begin(), order.end(),
                        [](const MapEntry* map) { return LooksLikeLibc(*map); });
  Gadgets gadgets;
  std::vector<uint8_t> code;
  for (const MapEntry* map : order) {
    code.resize(std::min<size_t>(map->end - map->start, kMaxCodeBytes));
    code.resize(memory.ReadSome(map->start, code));
    FindGadgets(map->start, code, gadgets);
    if (gadgets.call != 0 && gadgets.restorer != 0) return gadgets;
  }
  uint8_t byte = 0;
  if (order.empty() || memory.ReadSome(order.front()->start, {&byte, 1}) == 0)
    return absl::NotFoundError("the process has ended");
  return absl::FailedPreconditionError(
      "no 'syscall; ret' or no return from signals in the process's code: no C library");
}

absl::Status CheckGadgets(const Memory& memory, const std::vector<MapEntry>& maps,
                          const Gadgets& gadgets) {
  if (InExecutableMap(maps, gadgets.call, kCall.size()) &&
      InExecutableMap(maps, gadgets.restorer, kRestorer.size()) &&
      Holds(memory, gadgets.call, kCall) &&
      (Holds(memory, gadgets.restorer, kRestorer) ||
       Holds(memory, gadgets.restorer, kShortRestorer)))
    return absl::OkStatus();
  if (maps.empty()) return absl::NotFoundError("the process has ended");
  return absl::UnavailableError("the C library's code moved while the stop was prepared");
}

}  // namespace perfd::agent
