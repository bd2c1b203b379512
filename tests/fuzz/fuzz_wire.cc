// The first byte selects the message; the rest is parsed, read, written and read again: both values
// must be equal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/wire/wire.h"

namespace {

template <typename Message, typename Read>
void Check(const uint8_t* data, size_t size, Read read) {
  Message message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return;
  const auto value = read(message);
  if (!value.ok()) return;
  Message again;
  if (!again.ParseFromString(perfd::wire::ToProto(*value).SerializeAsString())) std::abort();
  const auto second = read(again);
  if (!second.ok() || !(*second == *value)) std::abort();
}

template <typename Message>
void CheckMessage(const uint8_t* data, size_t size) {
  Check<Message>(data, size, [](const Message& m) { return perfd::wire::FromProto(m); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace v1 = perfd::v1;
  namespace wire = perfd::wire;
  google::protobuf::SetLogHandler(nullptr);
  if (size == 0 || size > (1u << 20)) return 0;
  const uint8_t* rest = data + 1;
  --size;
  switch (data[0] % 9) {
    case 0:
      CheckMessage<v1::Window>(rest, size);
      break;
    case 1:
      CheckMessage<v1::ProfileSpec>(rest, size);
      break;
    case 2:
      CheckMessage<v1::Report>(rest, size);
      break;
    case 3:
      CheckMessage<v1::ProfileStatus>(rest, size);
      break;
    case 4:
      Check<v1::ReaderReply>(rest, size, wire::ModuleFactsFromProto);
      break;
    case 5:
      Check<v1::ReaderReply>(rest, size, wire::CodeFactsFromProto);
      break;
    case 6:
      CheckMessage<v1::UnwindTarget>(rest, size);
      break;
    case 7:
      CheckMessage<v1::UnwindRequest>(rest, size);
      break;
    default:
      CheckMessage<v1::UnwindReply>(rest, size);
      break;
  }
  return 0;
}
