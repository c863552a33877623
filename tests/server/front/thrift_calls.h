#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "server/front/thrift/thrift_protocol.h"
#include "thrift/gen/IdService.h"

namespace firn::front {

// A generated client whose bytes a test carries: it returns a call's frame, and reads the answer
// from a frame.
class ThriftCalls {
 public:
  explicit ThriftCalls(ThriftCoding coding = ThriftCoding::kBinary)
      : client_(Coding(coding, in_), Coding(coding, out_)) {}

  // `call` must call one of the client's send_ methods.
  template <typename Call>
  std::string Frame(Call&& call) {
    out_->resetBuffer();
    call(client_);
    return WithLength(out_->getBufferAsString());
  }
  std::string GetId(const std::string& tag) {
    return Frame([&](wire::IdServiceClient& client) { client.send_getId(tag); });
  }

  // Returns the client, about to receive `frame`: call one of its recv_ methods.
  wire::IdServiceClient& Answer(std::string_view frame) {
    answer_ = frame.substr(4);
    in_->resetBuffer(reinterpret_cast<uint8_t*>(answer_.data()),
                     static_cast<uint32_t>(answer_.size()));
    return client_;
  }

  static std::string WithLength(std::string_view body) {
    std::string frame;
    for (int shift = 24; shift >= 0; shift -= 8) {
      frame.push_back(static_cast<char>(body.size() >> shift));
    }
    return frame.append(body);
  }

 private:
  using Buffer = apache::thrift::transport::TMemoryBuffer;
  using Protocol = apache::thrift::protocol::TProtocol;

  static std::shared_ptr<Protocol> Coding(ThriftCoding coding, std::shared_ptr<Buffer> buffer) {
    if (coding == ThriftCoding::kCompact) {
      return std::make_shared<apache::thrift::protocol::TCompactProtocol>(buffer);
    }
    return std::make_shared<apache::thrift::protocol::TBinaryProtocol>(buffer);
  }

  std::shared_ptr<Buffer> in_ = std::make_shared<Buffer>();
  std::shared_ptr<Buffer> out_ = std::make_shared<Buffer>();
  std::string answer_;
  wire::IdServiceClient client_;
};

}  // namespace firn::front
