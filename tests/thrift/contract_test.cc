#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "thrift/gen/IdService.h"

namespace firn {
namespace {

using apache::thrift::protocol::TBinaryProtocol;
using apache::thrift::protocol::TMessageType;
using apache::thrift::protocol::TProtocol;
using apache::thrift::protocol::TType;
using apache::thrift::transport::TMemoryBuffer;

// A server that refuses, as the contract says.
class Refusing final : public wire::IdServiceNull {
 public:
  int64_t get_id(const std::string& useragent) override {
    if (useragent != "tester") throw Agent();
    return Refuse();
  }
  int64_t getId(const std::string&) override { return Refuse(); }

 private:
  static wire::InvalidUserAgentError Agent() {
    wire::InvalidUserAgentError error;
    error.message = "not a user agent";
    return error;
  }
  static int64_t Refuse() {
    wire::Refusal refusal;
    refusal.reason = wire::Reason::NOT_READY;
    refusal.another_server_may_help = true;
    throw refusal;
  }
};

// A client and a server on two buffers: Send, then Serve, then receive.
class ContractTest : public testing::Test {
 protected:
  void Serve() { processor_.process(requests_protocol_, replies_protocol_, nullptr); }

  std::shared_ptr<TMemoryBuffer> requests_ = std::make_shared<TMemoryBuffer>();
  std::shared_ptr<TMemoryBuffer> replies_ = std::make_shared<TMemoryBuffer>();
  std::shared_ptr<TProtocol> requests_protocol_ = std::make_shared<TBinaryProtocol>(requests_);
  std::shared_ptr<TProtocol> replies_protocol_ = std::make_shared<TBinaryProtocol>(replies_);
  wire::IdServiceProcessor processor_{std::make_shared<Refusing>()};
  wire::IdServiceClient client_{replies_protocol_, requests_protocol_};
};

TEST_F(ContractTest, ARefusalArrivesTyped) {
  client_.send_getId("order");
  Serve();
  try {
    client_.recv_getId();
    FAIL() << "no refusal";
  } catch (const wire::Refusal& refusal) {
    EXPECT_EQ(refusal.reason, wire::Reason::NOT_READY);
    EXPECT_TRUE(refusal.another_server_may_help);
  }
}

TEST_F(ContractTest, AnInvalidUserAgentArrivesAsTwittersError) {
  client_.send_get_id("9");
  Serve();
  EXPECT_THROW(client_.recv_get_id(), wire::InvalidUserAgentError);
}

// Reads an answer like a client generated from Twitter's own file, which declares no exceptions:
// it reads field 0 and skips all other fields.
bool OldClientFindsAnId(TProtocol& in) {
  std::string name;
  TMessageType type{};
  int32_t sequence = 0;
  in.readMessageBegin(name, type, sequence);
  EXPECT_EQ(type, apache::thrift::protocol::T_REPLY);
  in.readStructBegin(name);
  bool found = false;
  for (;;) {
    TType field_type{};
    int16_t number = 0;
    in.readFieldBegin(name, field_type, number);
    if (field_type == apache::thrift::protocol::T_STOP) break;
    found = found || number == 0;
    in.skip(field_type);
    in.readFieldEnd();
  }
  in.readStructEnd();
  in.readMessageEnd();
  return found;
}

TEST_F(ContractTest, AnOldClientTakesNoRefusalForAnId) {
  client_.send_get_id("tester");
  Serve();
  EXPECT_FALSE(OldClientFindsAnId(*replies_protocol_));
  EXPECT_EQ(replies_->available_read(), 0U);
}

TEST_F(ContractTest, TwittersMethodsKeepTheirNamesAndArguments) {
  client_.send_get_id("tester");
  std::string name;
  TMessageType type{};
  int32_t sequence = 0;
  requests_protocol_->readMessageBegin(name, type, sequence);
  EXPECT_EQ(name, "get_id");
  TType field_type{};
  int16_t number = 0;
  requests_protocol_->readStructBegin(name);
  requests_protocol_->readFieldBegin(name, field_type, number);
  EXPECT_EQ(field_type, apache::thrift::protocol::T_STRING);
  EXPECT_EQ(number, 1);
}

}  // namespace
}  // namespace firn
