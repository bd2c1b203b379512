#include "agent/attach/thread/own_stack.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// For a signal that arrives when we have died and the thread goes home: a frame of the kernel's, and a handler.
constexpr uint64_t kHandlerRoomBytes = 8192;

// Exclusive of its end, where the stack pointer of an empty stack may be.
bool Holds(const MapEntry& map, uint64_t stack_pointer) {
  return stack_pointer > map.start && stack_pointer <= map.end;
}

bool MayBeStack(const MapEntry& map) {
  return map.readable && map.writable && !map.shared && map.inode == 0;
}

bool IsOwn(const MapEntry& map, const StackPlace& place) {
  if (place.main) return map.path == "[stack]";
  const bool nameless = map.path.empty() || absl::StartsWith(map.path, "[anon");
  return nameless && place.control_block >= map.start && place.control_block < map.end &&
         place.stack_pointer <= place.control_block;
}

absl::StatusOr<uint64_t> StartOfOwn(const std::vector<MapEntry>& maps, const StackPlace& place) {
  const auto map = std::partition_point(maps.begin(), maps.end(), [&](const MapEntry& entry) {
    return entry.end < place.stack_pointer;
  });
  if (map == maps.end() || !Holds(*map, place.stack_pointer) || !MayBeStack(*map) ||
      !IsOwn(*map, place))
    return absl::FailedPreconditionError(
        absl::StrCat("the stack pointer of thread ", place.tid,
                     " is in memory that need not be its own stack (a coroutine's, a signal "
                     "handler's, or data)"));
  return map->start;
}

absl::Status NoRoom(const StackPlace& place) {
  return absl::UnavailableError(
      absl::StrCat("thread ", place.tid, " has little room left on its stack"));
}

}  // namespace

absl::Status CheckOwnStack(const std::vector<MapEntry>& maps, const StackPlace& place,
                           uint64_t low) {
  ASSIGN_OR_RETURN(const uint64_t start, StartOfOwn(maps, place));
  const uint64_t handler = place.main ? 0 : kHandlerRoomBytes;
  const bool room = low <= place.stack_pointer && low >= start && low - start >= handler;
  return room ? absl::OkStatus() : NoRoom(place);
}

absl::Status CheckOwnStackHolds(const std::vector<MapEntry>& maps, const StackPlace& place,
                                uint64_t bytes) {
  ASSIGN_OR_RETURN(const uint64_t start, StartOfOwn(maps, place));
  return place.main || place.stack_pointer - start >= bytes ? absl::OkStatus() : NoRoom(place);
}

}  // namespace perfd::agent
