// core/wire/weight/message_weight.h - about how much memory a message takes once it is parsed.
//
// Shape    MessageWeight reads the wire format and makes nothing: two bytes of it may become an object of 56.
// Units    bytes, an estimate from above for the messages of perfd/v1.
// Bounds   stops when more than `most` is found.
// Source   protobuf's wire format; google/protobuf/io/coded_stream.h.
#ifndef CORE_WIRE_WEIGHT_MESSAGE_WEIGHT_H_
#define CORE_WIRE_WEIGHT_MESSAGE_WEIGHT_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstddef>

namespace perfd::wire {

// More than `most`, too, for what no message of ours has: groups, and dozens of messages within each other. Bytes that are no message weigh what
// is read of them, which is as far as they would be parsed.
size_t MessageWeight(google::protobuf::io::ZeroCopyInputStream& bytes,
                     const google::protobuf::Descriptor& type, size_t most);

}  // namespace perfd::wire

#endif  // CORE_WIRE_WEIGHT_MESSAGE_WEIGHT_H_
