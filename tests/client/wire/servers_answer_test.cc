// Tests how a client parses an answer to servers().

#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <thrift/TApplicationException.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "client/wire/wire_codec.h"
#include "thrift/gen/IdService.h"

namespace firn::client {
namespace {

namespace thrift = apache::thrift;
using thrift::protocol::TMessageType;

constexpr int32_t kSequence = 5;

class ServersAnswerTest : public testing::Test {
 protected:
  // Returns a frame with `body` as the generated code writes it.
  template <typename Body>
  static std::string Frame(TMessageType type, const Body& body,
                           const std::string& name = "servers") {
    const auto memory = std::make_shared<thrift::transport::TMemoryBuffer>();
    thrift::protocol::TBinaryProtocol protocol(memory);
    protocol.writeMessageBegin(name, type, kSequence);
    body.write(&protocol);
    protocol.writeMessageEnd();
    const std::string bytes = memory->getBufferAsString();
    std::string frame;
    for (int shift = 24; shift >= 0; shift -= 8) {
      frame.push_back(static_cast<char>(bytes.size() >> shift));
    }
    return frame + bytes;
  }
  Outcome Read(const wire::IdService_servers_result& result) {
    return codec_.ReadAnswer(Frame(thrift::protocol::T_REPLY, result), ask_, kSequence, reply_);
  }
  Outcome ReadRefusal(wire::Reason::type reason) {
    wire::IdService_servers_result result;
    result.refusal.__set_reason(reason);
    result.__isset.refusal = true;
    return Read(result);
  }

  // Returns the outcome of a call that a server answers with `body`.
  template <typename Body>
  Outcome ReadOf(Ask::Method method, std::string name, const Body& body, TMessageType type) {
    return codec_.ReadAnswer(Frame(type, body, name), {.method = method}, kSequence, reply_);
  }

  const Ask ask_{.method = Ask::Method::kServers, .number = 76};
  WireCodec codec_;
  Reply reply_;
};

wire::ServerEntry Entry(const std::string& address, wire::ServerState::type state, int32_t rack,
                        int32_t weight, bool online) {
  wire::ServerEntry entry;
  entry.__set_address(address);
  entry.__set_state(state);
  entry.__set_rack(rack);
  entry.__set_weight(weight);
  entry.__set_online(online);
  return entry;
}

TEST_F(ServersAnswerTest, ReadsEveryFieldAndIgnoresInvalidServers) {
  wire::IdService_servers_result result;
  result.__isset.success = true;
  result.success.__set_cluster_uuid("1b4e28ba-2fa1-11d2-883f-0016d3cca427");
  result.success.__set_version(77);
  result.success.__set_age_ms(1'234);
  result.success.__set_ask_again_ms(-1);
  result.success.__set_servers({Entry("a:1", wire::ServerState::READY, 3, 50, true),
                                Entry("no address", wire::ServerState::READY, 0, 100, true),
                                Entry("unix:/run/a.sock", wire::ServerState::READY, 0, 100, true),
                                Entry("b:1", wire::ServerState::DRAINING, -1, -1, false)});
  result.success.servers[0].__set_tls(true);
  ASSERT_TRUE(Read(result).answered());
  EXPECT_EQ(reply_.told->version, 77);
  EXPECT_EQ(reply_.told->age, Milliseconds(1'234));
  EXPECT_EQ(reply_.told->ask_again, Milliseconds(0));
  ASSERT_TRUE(reply_.told->list.has_value());
  const ServerList& list = *reply_.told->list;
  EXPECT_EQ(list.cluster.uuid, "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
  ASSERT_EQ(list.servers.size(), 2u);
  EXPECT_EQ(list.servers[0], (KnownServer{.address = "a:1", .rack = 3, .weight = 50, .tls = true}));
  EXPECT_EQ(list.servers[1],
            (KnownServer{
                .address = "b:1", .weight = 0, .disabled = true, .phase = ServerPhase::kDraining}));
}

TEST_F(ServersAnswerTest, DistinguishesAnOmittedListFromAnEmptyOne) {
  wire::IdService_servers_result result;
  result.__isset.success = true;
  result.success.__set_version(76);
  ASSERT_TRUE(Read(result).answered());
  EXPECT_FALSE(reply_.told->list.has_value());
}

TEST_F(ServersAnswerTest, AServerWithoutAListStaysHealthy) {
  const thrift::TApplicationException unknown(thrift::TApplicationException::UNKNOWN_METHOD);
  const Outcome older =
      codec_.ReadAnswer(Frame(thrift::protocol::T_EXCEPTION, unknown), ask_, kSequence, reply_);
  EXPECT_TRUE(older.lacks_method) << "it is no other service";
  for (const auto reason : {wire::Reason::NOT_READY, wire::Reason::DRAINING}) {
    EXPECT_EQ(ReadRefusal(reason).refusal, Reason::kOverloaded)
        << "of ids, " << reason << " would say more";
  }
}

// The text contains escape sequences, and line feeds that would forge log lines.
TEST_F(ServersAnswerTest, MakesAServersTextPrintable) {
  const std::string hostile = "\x1b]0;owned\x07\x1b[2J\r\nfirn: all is well \xc2\x9b\xff";
  const std::string shown = "\\x1b]0;owned\\x07\\x1b[2J\\x0d\\x0afirn: all is well \\xc2\\x9b\\xff";
  wire::IdService_servers_result refused;
  refused.refusal.__set_message(hostile);
  refused.__isset.refusal = true;
  EXPECT_EQ(Read(refused).detail, shown);
  const thrift::TApplicationException defect(thrift::TApplicationException::INTERNAL_ERROR,
                                             hostile);
  EXPECT_EQ(ReadOf(Ask::Method::kServers, "servers", defect, thrift::protocol::T_EXCEPTION).detail,
            "it says: " + shown);
  EXPECT_EQ(Outcome::Of(AttemptEnd::kUnreachable, hostile).detail, shown);
}

TEST_F(ServersAnswerTest, AnUnprintableValueIsABrokenAnswer) {
  wire::IdService_getText_result text;
  text.success = "order-\x1b[2J";
  text.__isset.success = true;
  EXPECT_EQ(ReadOf(Ask::Method::kGetText, "getText", text, thrift::protocol::T_REPLY).end,
            AttemptEnd::kBroken);
  text.success = "order-1";
  EXPECT_TRUE(ReadOf(Ask::Method::kGetText, "getText", text, thrift::protocol::T_REPLY).answered());
  wire::IdService_status_result status;
  status.success.cluster_name = "shop\n";
  status.__isset.success = true;
  EXPECT_EQ(ReadOf(Ask::Method::kStatus, "status", status, thrift::protocol::T_REPLY).end,
            AttemptEnd::kBroken);
}

// An empty struct has one byte in an answer, but a hundred bytes in memory.
TEST_F(ServersAnswerTest, AStatusWithTooManyTagsIsABrokenAnswer) {
  wire::IdService_status_result status;
  status.__isset.success = true;
  status.success.tags.resize(10'000);
  EXPECT_TRUE(ReadOf(Ask::Method::kStatus, "status", status, thrift::protocol::T_REPLY).answered());
  status.success.tags.resize(10'001);
  EXPECT_EQ(ReadOf(Ask::Method::kStatus, "status", status, thrift::protocol::T_REPLY).end,
            AttemptEnd::kBroken);
}

}  // namespace
}  // namespace firn::client
