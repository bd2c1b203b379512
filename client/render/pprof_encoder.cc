#include "client/render/pprof_encoder.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <zlib.h>

#include <limits>
#include <utility>

namespace perfd::client {
namespace {

namespace io = google::protobuf::io;

// Source: protobuf encoding guide, "message structure": tag = field number * 8 + wire type.
enum WireType : uint32_t { kVarint = 0, kBytes = 2 };
uint32_t Tag(int field, WireType type) {
  return static_cast<uint32_t>(field) << 3 | type;
}

// Field numbers of profile.proto.
enum ProfileField : int {
  kSampleType = 1,
  kSample = 2,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
};

// A message under construction.
class Fields {
 public:
  void Number(int field, uint64_t value) {
    Write([&](io::CodedOutputStream& out) {
      out.WriteTag(Tag(field, kVarint));
      out.WriteVarint64(value);
    });
  }
  void Text(int field, const std::string& value) {
    Write([&](io::CodedOutputStream& out) {
      out.WriteTag(Tag(field, kBytes));
      out.WriteVarint64(value.size());
      out.WriteString(value);
    });
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename F>
  void Write(F write) {
    io::StringOutputStream sink(&bytes_);
    io::CodedOutputStream out(&sink);
    write(out);
  }
  std::string bytes_;
};

}  // namespace

PprofEncoder::PprofEncoder() {
  String("");  // entry 0 of the table is the empty string
  Fields body;
  body.Text(kSampleType, ValueType("samples", "count"));
  body.Text(kSampleType, ValueType("cpu", "nanoseconds"));
  body_ = body.bytes();
}

uint64_t PprofEncoder::String(absl::string_view text) {
  const auto [it, fresh] = strings_.emplace(std::string(text), strings_.size());
  if (fresh) string_table_.emplace_back(text);
  return it->second;
}

std::string PprofEncoder::ValueType(absl::string_view type, absl::string_view unit) {
  Fields value;
  value.Number(1, String(type));
  value.Number(2, String(unit));
  return value.bytes();
}

uint64_t PprofEncoder::Function(const Frame& frame) {
  const uint64_t name = String(frame.function);
  const uint64_t file = String(frame.file);
  const auto [it, fresh] = functions_.emplace(std::pair(name, file), functions_.size() + 1);
  if (!fresh) return it->second;
  Fields function;  // id, name, system_name, filename
  function.Number(1, it->second);
  function.Number(2, name);
  function.Number(3, name);
  function.Number(4, file);
  Fields field;
  field.Text(kFunction, function.bytes());
  body_ += field.bytes();
  return it->second;
}

uint64_t PprofEncoder::Location(const Frame& frame) {
  const uint64_t function = Function(frame);
  const auto [it, fresh] =
      locations_.emplace(std::pair(function, frame.line), locations_.size() + 1);
  if (!fresh) return it->second;
  Fields line;  // function_id, line
  line.Number(1, function);
  line.Number(2, static_cast<uint64_t>(frame.line));
  Fields location;  // id, line
  location.Number(1, it->second);
  location.Text(4, line.bytes());
  Fields field;
  field.Text(kLocation, location.bytes());
  body_ += field.bytes();
  return it->second;
}

void PprofEncoder::AddSample(const std::vector<Frame>& frames, int64_t samples, int64_t cpu_ns,
                             int64_t rank) {
  Fields sample;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    sample.Number(1, Location(*frame));  // leaf first
  sample.Number(2, static_cast<uint64_t>(samples));
  sample.Number(2, static_cast<uint64_t>(cpu_ns));
  Fields label;  // key, num
  label.Number(1, String("rank"));
  label.Number(3, static_cast<uint64_t>(rank));
  sample.Text(3, label.bytes());
  Fields field;
  field.Text(kSample, sample.bytes());
  body_ += field.bytes();
}

void PprofEncoder::SetTimes(int64_t start_unix_ns, int64_t duration_ns, int64_t period_ns) {
  Fields times;
  times.Number(kTimeNanos, static_cast<uint64_t>(start_unix_ns));
  times.Number(kDurationNanos, static_cast<uint64_t>(duration_ns));
  times.Text(kPeriodType, ValueType("cpu", "nanoseconds"));
  times.Number(kPeriod, static_cast<uint64_t>(period_ns));
  times_ = times.bytes();
}

std::string PprofEncoder::Message() const {
  Fields table;
  for (const std::string& text : string_table_) table.Text(kStringTable, text);
  return body_ + times_ + table.bytes();
}

absl::StatusOr<std::string> PprofEncoder::Gzip() const {
  std::string message = Message();
  if (message.size() > std::numeric_limits<uInt>::max() / 2)
    return absl::ResourceExhaustedError("the profile is too large for one pprof file");
  z_stream stream{};
  // 15 + 16: a 32 KiB window in a gzip wrapper. Source: zlib.h, deflateInit2.
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return absl::InternalError("deflateInit2 failed");
  std::string packed(deflateBound(&stream, static_cast<uLong>(message.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(message.data());
  stream.avail_in = static_cast<uInt>(message.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return absl::InternalError("deflate did not finish");
  return packed;
}

}  // namespace perfd::client
