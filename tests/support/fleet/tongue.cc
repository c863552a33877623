#include "tests/support/fleet/tongue.h"

#include <charconv>
#include <utility>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "common/json/json.h"
#include "tests/support/json_of.h"
#include "thrift/gen/IdService.h"

namespace firn {
namespace {

using apache::thrift::TException;
using apache::thrift::protocol::TBinaryProtocol;
using apache::thrift::protocol::TCompactProtocol;
using apache::thrift::protocol::TMessageType;
using apache::thrift::protocol::TProtocol;
using apache::thrift::transport::TMemoryBuffer;

std::string WithLength(std::string_view body) {
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame.push_back(static_cast<char>(body.size() >> shift));
  }
  return frame.append(body);
}

size_t LengthAt(std::string_view bytes) {
  size_t length = 0;
  for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<uint8_t>(bytes[i]);
  return length;
}

TongueAnswer WithCount(TongueAnswer answer, int32_t count) {
  if (answer.fault.empty() && !answer.refused && answer.ids.size() != static_cast<size_t>(count)) {
    answer.fault =
        std::to_string(answer.ids.size()) + " ids for a call of " + std::to_string(count);
  }
  return answer;
}

// Framed, by the generated stubs' own structures; the sequence id distinguishes the calls.
template <typename Coding>
class ThriftTongue final : public Tongue {
 public:
  std::string Call(const std::string& tag, int32_t number, int32_t count) override {
    out_->resetBuffer();
    writer_.writeMessageBegin("getIds", apache::thrift::protocol::T_CALL, number);
    wire::IdService_getIds_pargs arguments;
    arguments.tag = &tag;
    arguments.count = &count;
    arguments.write(static_cast<TProtocol*>(&writer_));
    writer_.writeMessageEnd();
    return WithLength(out_->getBufferAsString());
  }

  TongueAnswer Answer(std::string_view bytes, int32_t number, int32_t count) override {
    TongueAnswer answer;
    if (bytes.size() < 4) return answer;
    const size_t length = LengthAt(bytes);
    if (length > kFrameMax) {
      answer = {.bytes = bytes.size(), .fault = "a frame of " + std::to_string(length) + " bytes"};
      return answer;
    }
    if (bytes.size() < 4 + length) return answer;
    answer.bytes = 4 + length;
    std::string frame(bytes.substr(4, length));
    in_->resetBuffer(reinterpret_cast<uint8_t*>(frame.data()), static_cast<uint32_t>(length));
    try {
      Read(number, answer);
    } catch (const TException& e) {
      answer.fault = std::string("a frame that cannot be read: ") + e.what();
    }
    return WithCount(std::move(answer), count);
  }

 private:
  static constexpr size_t kFrameMax = 16 << 20;

  void Read(int32_t number, TongueAnswer& answer) {
    std::string name;
    TMessageType type{};
    int32_t got = 0;
    reader_.readMessageBegin(name, type, got);
    if (name != "getIds" || type != apache::thrift::protocol::T_REPLY) {
      answer.fault = "another message: " + name;
      return;
    }
    if (got != number) {
      answer.fault = "answer " + std::to_string(got) + " to call " + std::to_string(number);
      return;
    }
    wire::IdService_getIds_presult result;
    result.success = &answer.ids;
    result.read(static_cast<TProtocol*>(&reader_));
    reader_.readMessageEnd();
    answer.refused = result.__isset.refusal;
    if (result.__isset.success == result.__isset.refusal)
      answer.fault = "neither ids nor a refusal";
    if (in_->available_read() != 0) answer.fault = "a frame with bytes behind its message";
  }

  const std::shared_ptr<TMemoryBuffer> in_ = std::make_shared<TMemoryBuffer>();
  const std::shared_ptr<TMemoryBuffer> out_ = std::make_shared<TMemoryBuffer>();
  Coding reader_{in_}, writer_{out_};
};

// HTTP/1.1 with keep-alive; answers are distinguished by their number of ids.
class HttpTongue final : public Tongue {
 public:
  std::string Call(const std::string& tag, int32_t, int32_t count) override {
    return "GET /v1/ids/" + tag + "?count=" + std::to_string(count) +
           " HTTP/1.1\r\nHost: firn\r\n\r\n";
  }

  TongueAnswer Answer(std::string_view bytes, int32_t, int32_t count) override {
    TongueAnswer answer;
    const size_t head = bytes.find("\r\n\r\n");
    if (head == std::string_view::npos) {
      if (bytes.size() > kHeadMax) answer = Fault(bytes, "a head that does not end");
      return answer;
    }
    size_t length = 0;
    if (!LengthOf(bytes.substr(0, head + 2), length))
      return Fault(bytes, "a head without a length");
    if (bytes.size() < head + 4 + length) return answer;
    answer.bytes = head + 4 + length;
    if (!bytes.starts_with("HTTP/1.1 ")) return Fault(bytes, "no status line");
    const std::string_view status = bytes.substr(9, 3);
    const std::string_view body = bytes.substr(head + 4, length);
    answer.refused = status != "200" && body.starts_with(R"({"error":{"reason":")");
    if (status != "200" && !answer.refused) return Fault(bytes, "status " + std::string(status));
    Read(body, answer);
    return WithCount(std::move(answer), count);
  }

 private:
  static constexpr size_t kHeadMax = 4096;

  static TongueAnswer Fault(std::string_view bytes, std::string what) {
    return {.bytes = bytes.size(), .ids = {}, .refused = false, .fault = std::move(what)};
  }

  static bool LengthOf(std::string_view head, size_t& length) {
    constexpr std::string_view kName = "\r\nContent-Length: ";
    const size_t at = head.find(kName);
    if (at == std::string_view::npos) return false;
    const char* const begin = head.data() + at + kName.size();
    return std::from_chars(begin, head.data() + head.size(), length).ec == std::errc();
  }

  static void Read(std::string_view body, TongueAnswer& answer) {
    const auto json = JsonOf(body);
    if (json.is_null() || !json.is_object()) {
      answer.fault = "a body that is not JSON";
      return;
    }
    if (answer.refused) return;
    if (!json.contains("ids") || !json.at("ids").is_array()) {
      answer.fault = "a body without ids";
      return;
    }
    for (const auto& id : json.at("ids")) {
      if (!id.is_string()) answer.fault = "an id that is not a text";
      const std::string text = id.is_string() ? id.text() : "";
      int64_t value = 0;
      const auto end = text.data() + text.size();
      if (std::from_chars(text.data(), end, value).ptr != end) answer.fault = "no id: " + text;
      answer.ids.push_back(value);
    }
  }
};

}  // namespace

std::unique_ptr<Tongue> MakeTongue(TongueName name) {
  switch (name) {
    case TongueName::kThriftBinary:
      return std::make_unique<ThriftTongue<TBinaryProtocol>>();
    case TongueName::kThriftCompact:
      return std::make_unique<ThriftTongue<TCompactProtocol>>();
    case TongueName::kHttp:
      break;
  }
  return std::make_unique<HttpTongue>();
}

const char* TextOf(TongueName name) {
  constexpr const char* kTexts[] = {"Thrift binary", "Thrift compact", "HTTP"};
  return kTexts[static_cast<int>(name)];
}

}  // namespace firn
