// core/wire/weight/message_weight.h - about how much memory a message takes once it is parsed.
//
// Shape    MessageWeight reads the wire format and makes nothing: two bytes of it may become an object of 56.
// Units    bytes, an estimate from above for the messages of perfd/v1.
// Bounds   stops when more than `most` is found, and at kMostDepth messages within each other.
// Source   protobuf's wire format; google/protobuf/io/coded_stream.h.
#ifndef CORE_WIRE_WEIGHT_MESSAGE_WEIGHT_H_
#define CORE_WIRE_WEIGHT_MESSAGE_WEIGHT_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstddef>

namespace perfd::wire {

// More than `most`, too, where it would be read no further: groups, which no message of ours has. What is no message weighs what is read of it.
size_t MessageWeight(google::protobuf::io::ZeroCopyInputStream& bytes,
                     const google::protobuf::Descriptor& type, size_t most);

}  // namespace perfd::wire

#endif  // CORE_WIRE_WEIGHT_MESSAGE_WEIGHT_H_
