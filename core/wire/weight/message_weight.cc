#include "core/wire/weight/message_weight.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>

namespace perfd::wire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

constexpr size_t kObject = 96;  // a message, and the pointer to it
constexpr size_t kText = 64;    // a string and its allocation, or an unknown field
constexpr size_t kNumber = 8;
constexpr int kMostDepth = 32;  // ours have fewer than ten

class Scale {
 public:
  Scale(google::protobuf::io::CodedInputStream& in, size_t most) : in_(in), most_(most) {}

  size_t weight() const { return weight_; }
  // False: no further.
  bool Weigh(const Descriptor& type, int depth) {
    if (depth > kMostDepth) return Refuse();
    while (const uint32_t tag = in_.ReadTag()) {
      if (!WeighField(type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag)), tag, depth))
        return false;
      if (weight_ > most_) return false;
    }
    return true;
  }

 private:
  // Of what no message of ours has.
  bool Refuse() {
    weight_ = most_ + 1;
    return false;
  }

  bool WeighField(const FieldDescriptor* field, uint32_t tag, int depth) {
    const auto kind = WireFormatLite::GetTagWireType(tag);
    if (kind == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) return WeighBytes(field, depth);
    if (kind == WireFormatLite::WIRETYPE_START_GROUP) return Refuse();
    const bool known =
        field != nullptr &&
        kind == WireFormatLite::WireTypeForFieldType(
                    static_cast<WireFormatLite::FieldType>(static_cast<int>(field->type())));
    weight_ += known ? kNumber : kText;
    return WireFormatLite::SkipField(&in_, tag);
  }

  bool WeighBytes(const FieldDescriptor* field, int depth) {
    uint32_t size = 0;
    if (!in_.ReadVarint32(&size)) return false;
    if (field == nullptr || field->message_type() == nullptr) {
      // Packed numbers have a byte at least each.
      weight_ += field != nullptr && field->is_packable() ? size * kNumber : kText + size;
      return in_.Skip(static_cast<int>(size));
    }
    weight_ += kObject;
    const auto limit = in_.PushLimit(static_cast<int>(size));
    const bool whole = Weigh(*field->message_type(), depth + 1) && in_.ConsumedEntireMessage();
    in_.PopLimit(limit);
    return whole;
  }

  google::protobuf::io::CodedInputStream& in_;
  const size_t most_;
  size_t weight_ = 0;
};

}  // namespace

size_t MessageWeight(google::protobuf::io::ZeroCopyInputStream& bytes, const Descriptor& type,
                     size_t most) {
  google::protobuf::io::CodedInputStream in(&bytes);
  Scale scale(in, most);
  scale.Weigh(type, 0);
  return scale.weight();
}

}  // namespace perfd::wire
