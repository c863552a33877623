// The first bytes of a connection determine its protocol.

#include <memory>
#include <string>
#include <vector>

#include "tests/server/front/connection_rig.h"
#include "tests/server/front/dubbo/dubbo_messages.h"
#include "tests/server/front/http/http_calls.h"
#include "tests/server/front/redis/redis_side.h"
#include "tests/server/front/thrift_calls.h"

namespace firn::front {
namespace {

class OpeningsTest : public ConnectionTest {
 protected:
  OpeningsTest() { limits_ = {}; }

  ProtocolSet All() {
    const Backend& backend = issuing_.backend;
    DeskCounters& counters = issuing_.counters;
    return {.thrift_binary = MakeThriftProtocol(ThriftCoding::kBinary, backend, counters),
            .thrift_compact = MakeThriftProtocol(ThriftCoding::kCompact, backend, counters),
            .http = MakeHttp(issuing_, http_),
            .redis = MakeRedisProtocol(backend, redis_, nullptr),
            .dubbo = MakeDubboProtocol(backend, dubbo_, dubbo_state_, dubbo_messages_)};
  }

  // A request for one id of `slow` in each protocol.
  static std::vector<std::string> Requests() {
    return {ThriftCalls(ThriftCoding::kBinary).GetId("slow"),
            ThriftCalls(ThriftCoding::kCompact).GetId("slow"),
            "GET /v1/ids/slow HTTP/1.1\r\nHost: x\r\n\r\n", Resp({"INCR", "slow"}),
            DubboCall{}.Bytes()};
  }

  void OpenAll() { OneConnection::Open(all_); }
  void SayAll(std::string_view bytes) {
    while (!bytes.empty() && connection_ != nullptr && wire_->reading) {
      const size_t n = std::min(bytes.size(), wire_->room());
      Say(bytes.substr(0, n));
      bytes.remove_prefix(n);
    }
  }
  // Number of ids of `slow` that were ever issued.
  int64_t issued() const { return issuing_.slow->next - 1; }

  Issuing issuing_;
  IdDesk http_{issuing_.issuer, issuing_.counters, Method::kHttp, "order"};
  IdDesk redis_{issuing_.issuer, issuing_.counters, Method::kRedis, "order"};
  IdDesk dubbo_{issuing_.issuer, issuing_.counters, Method::kDubbo, "order"};
  DubboState dubbo_state_;
  DubboCounters dubbo_messages_;
  IoShare all_{limits_, clock_, All()};
};

TEST_F(OpeningsTest, ServesEveryRequestSplitAtEveryByte) {
  for (const std::string& request : Requests()) {
    for (size_t at = 1; at < request.size(); ++at) {
      const int64_t before = issued();
      OpenAll();
      SayAll(request.substr(0, at));
      EXPECT_EQ(issued(), before) << at;
      EXPECT_EQ(wire_->sent, "") << at;
      SayAll(request.substr(at));
      EXPECT_EQ(issued(), before + 1) << at << " " << testing::PrintToString(request);
      EXPECT_NE(wire_->sent, "");
      wire_->PeerCloses();
    }
  }
}

TEST_F(OpeningsTest, ServesEveryRequestByteByByte) {
  for (const std::string& request : Requests()) {
    const int64_t before = issued();
    OpenAll();
    for (const char byte : request) SayAll({&byte, 1});
    EXPECT_EQ(issued(), before + 1) << testing::PrintToString(request);
    wire_->PeerCloses();
  }
}

// A request of another protocol that is smuggled in behind the first one must not be served.
TEST_F(OpeningsTest, ServesNoOtherProtocolBehindTheFirstRequest) {
  const std::vector<std::string> requests = Requests();
  for (size_t first = 0; first < requests.size(); ++first) {
    for (size_t second = 0; second < requests.size(); ++second) {
      if (first == second) continue;
      for (const bool at_once : {false, true}) {
        const int64_t before = issued();
        OpenAll();
        if (at_once) {
          SayAll(requests[first] + requests[second]);
        } else {
          SayAll(requests[first]);
          SayAll(requests[second]);
        }
        EXPECT_EQ(issued(), before + 1) << first << " " << second;
        const bool is_over = wire_->finished || wire_->closed;
        // A compact frame is an invalid binary one; the other requests are not frames at all.
        EXPECT_TRUE(is_over) << first << " " << second;
        wire_->PeerCloses();
      }
    }
  }
}

}  // namespace
}  // namespace firn::front
