// core/base/address.h - the three kinds of address that a position in code goes through, told apart by their types.
//
// Shape    RuntimeAddress of a sample -> FileOffset through the mapping that holds it (core/model/stack.h) -> ElfAddress through
//          the module's segments (core/model/module.h). Back: ElfAddress + LoadBias.
// Units    bytes; arithmetic modulo 2^64, as the processor's.
// Errors   none: a number becomes an address by itself, but no kind becomes another one or a number (value() says so aloud).
#ifndef CORE_BASE_ADDRESS_H_
#define CORE_BASE_ADDRESS_H_

#include <compare>
#include <cstdint>
#include <ostream>
#include <utility>

namespace perfd {

template <typename Kind>
class TypedAddress {
 public:
  constexpr TypedAddress() = default;
  // Numbers from files and kernels come in freely.
  constexpr TypedAddress(uint64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  constexpr uint64_t value() const { return value_; }

  constexpr TypedAddress& operator+=(uint64_t bytes) {
    value_ += bytes;
    return *this;
  }
  friend constexpr TypedAddress operator+(TypedAddress a, uint64_t bytes) {
    return a.value_ + bytes;
  }
  friend constexpr TypedAddress operator-(TypedAddress a, uint64_t bytes) {
    return a.value_ - bytes;
  }
  friend constexpr uint64_t operator-(TypedAddress a, TypedAddress b) {
    return a.value_ - b.value_;
  }
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the operator for one of pointers
  friend constexpr auto operator<=>(TypedAddress, TypedAddress) = default;

  template <typename H>
  friend H AbslHashValue(H h, TypedAddress a) {
    return H::combine(std::move(h), a.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, TypedAddress a) {
    return out << std::showbase << std::hex << a.value_ << std::dec << std::noshowbase;
  }

 private:
  uint64_t value_ = 0;
};

using RuntimeAddress = TypedAddress<struct RuntimeKind>;  // in the address space of a process
using ElfAddress = TypedAddress<struct ElfKind>;          // virtual address as in the ELF file
using FileOffset = TypedAddress<struct FileKind>;         // of a byte in its file

// Run-time minus ELF address: the same for a whole module of a process.
class LoadBias {
 public:
  constexpr LoadBias() = default;
  constexpr LoadBias(RuntimeAddress at, ElfAddress of) : bytes_(at.value() - of.value()) {}
  friend constexpr RuntimeAddress operator+(ElfAddress a, LoadBias bias) {
    return a.value() + bias.bytes_;
  }
  friend constexpr ElfAddress operator-(RuntimeAddress a, LoadBias bias) {
    return a.value() - bias.bytes_;
  }
  friend constexpr bool operator==(LoadBias, LoadBias) = default;

 private:
  uint64_t bytes_ = 0;
};

}  // namespace perfd

#endif  // CORE_BASE_ADDRESS_H_
