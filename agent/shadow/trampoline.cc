#include "agent/shadow/trampoline.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// The kind of entry rides in the low bits of the site's address (agent/shadow/payload/meet.cc).
constexpr uint64_t kTagExit = 1, kTagTimed = 2, kTagBatch = 4;

class Code {
 public:
  explicit Code(uint64_t address) : address_(address) {}

  void Bytes(std::initializer_list<uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes); }

  void MoveRcx(uint64_t value) {  // movabs $value, %rcx
    Bytes({0x48, 0xb9});
    for (int shift = 0; shift < 64; shift += 8)
      bytes_.push_back(static_cast<uint8_t>(value >> shift));
  }

  // A jump (0xe9) or call (0xe8) with a 32-bit displacement.
  absl::Status Branch(uint8_t opcode, uint64_t target) {
    auto distance = static_cast<int64_t>(target - (address_ + bytes_.size() + 5));
    if (distance != static_cast<int32_t>(distance)) {
      return absl::OutOfRangeError(absl::StrCat("branch from ", absl::Hex(address_), " to ",
                                                absl::Hex(target), ": out of reach"));
    }
    bytes_.push_back(opcode);
    for (int shift = 0; shift < 32; shift += 8)
      bytes_.push_back(static_cast<uint8_t>(distance >> shift));
    return absl::OkStatus();
  }

  // Below the red zone, so that the thread's own data there stays; neither touches the flags.
  void Enter() { Bytes({0x48, 0x8d, 0x64, 0x24, 0x80, 0x51}); }  // lea -128(%rsp),%rsp; push %rcx
  void RestoreStack() {                                          // pop %rcx; lea 128(%rsp),%rsp
    Bytes({0x59, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00});
  }

  // Room for the displacement of a short branch; Land() fills it in.
  size_t ShortBranch(uint8_t opcode) {
    Bytes({opcode, 0});
    return bytes_.size();
  }
  void Land(size_t from) { bytes_[from - 1] = static_cast<uint8_t>(bytes_.size() - from); }

  absl::Status CallPayload(uint64_t tagged_site, uint64_t slow_entry) {
    MoveRcx(tagged_site);
    return Branch(0xe8, slow_entry);
  }

  // After the call.
  absl::Status GoOn(uint64_t target) {
    // movq $0,-8(%rsp): the return address must not stay on the stack, see entry.S.
    Bytes({0x48, 0xc7, 0x44, 0x24, 0xf8, 0, 0, 0, 0});
    RestoreStack();
    return Branch(0xe9, target);
  }

  // Repeated in timing/live_reading.cc: what it takes is no part of a live instance.
  absl::Status Slow(uint64_t tagged_site, uint64_t slow_entry, uint64_t target) {
    RETURN_IF_ERROR(CallPayload(tagged_site, slow_entry));
    return GoOn(target);
  }

  std::vector<uint8_t> Release() { return std::move(bytes_); }

 private:
  uint64_t address_;
  std::vector<uint8_t> bytes_;
};

}  // namespace

absl::StatusOr<std::vector<uint8_t>> EmitTrampoline(const TrampolineAddresses& place) {
  constexpr uint8_t kJump = 0xe9, kJrcxz = 0xe3, kShortJump = 0xeb;
  Code code(place.address);
  code.Enter();
  code.MoveRcx(place.site);
  code.Bytes({0x0f, 0xb6, 0x09});  // movzbl (%rcx),%ecx: low byte of Site::mode
  size_t idle = code.ShortBranch(kJrcxz);
  size_t busy = code.ShortBranch(kShortJump);
  code.Land(idle);
  code.RestoreStack();
  RETURN_IF_ERROR(code.Branch(kJump, place.live_copy));
  code.Land(busy);
  code.Bytes({0x8d, 0x49, 0xfd});  // lea -kModeLive(%rcx),%ecx
  size_t timed = code.ShortBranch(kJrcxz);
  code.Bytes({0x8d, 0x49, 0xff});  // lea -1(%rcx),%ecx: kModeLiveBatch
  size_t batch = code.ShortBranch(kJrcxz);
  RETURN_IF_ERROR(code.Slow(place.site, place.slow_entry, place.live_copy));
  code.Land(timed);
  RETURN_IF_ERROR(code.Slow(place.site | kTagTimed, place.slow_entry, place.timed_copy));
  code.Land(batch);
  RETURN_IF_ERROR(code.CallPayload(place.site | kTagBatch, place.slow_entry));
  size_t others = code.ShortBranch(kJrcxz);  // rcx is what payload_enter returned
  RETURN_IF_ERROR(code.GoOn(place.timed_batch));
  code.Land(others);
  RETURN_IF_ERROR(code.GoOn(place.live_copy));
  return code.Release();
}

absl::StatusOr<std::vector<uint8_t>> EmitTimedExit(const TimedExitAddresses& place) {
  Code code(place.address);
  code.Enter();
  RETURN_IF_ERROR(code.Slow(place.site | kTagExit, place.slow_entry, place.target));
  return code.Release();
}

absl::StatusOr<std::vector<uint8_t>> EmitJump(uint64_t address, uint64_t target) {
  Code code(address);
  RETURN_IF_ERROR(code.Branch(0xe9, target));
  return code.Release();
}

}  // namespace perfd::agent
