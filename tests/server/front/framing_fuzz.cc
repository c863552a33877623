// For arbitrary bytes in arbitrary pieces, every protocol of the public port answers, waits for
// more or closes, and changes its output only if it answers.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/front/dubbo/dubbo_protocol.h"
#include "server/front/redis/redis_protocol.h"
#include "tests/server/front/http/http_calls.h"
#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/leases/scripted_leases.h"

namespace firn::front {
namespace {

class Door {
 public:
  Door() {
    const Backend& backend = issuing_.backend;
    leases_.reply = {.verdict = LeaseVerdict::kUnknown, .message = "unknown"};
    set_.thrift_binary =
        MakeThriftProtocol(ThriftCoding::kBinary, backend, issuing_.counters, &leases_);
    set_.thrift_compact =
        MakeThriftProtocol(ThriftCoding::kCompact, backend, issuing_.counters, &leases_);
    set_.http = MakeHttp(issuing_, desk_);
    set_.redis = MakeRedisProtocol(backend, redis_desk_, nullptr);
    set_.dubbo = MakeDubboProtocol(backend, dubbo_desk_, dubbo_state_, dubbo_messages_);
  }

  void Feed(std::string_view in) {
    Protocol* protocol = set_.For(Recognise(in));
    while (protocol != nullptr && !in.empty()) {
      DoorCall door{.last = true};
      OutBuffer out;
      const ServeStep step = protocol->Serve(in, door, out);
      if (step.kind != ServeStep::Kind::kServed) {
        const bool may_say_why = protocol == set_.http.get() || protocol == set_.redis.get() ||
                                 protocol == set_.dubbo.get();
        const bool says_why = step.kind == ServeStep::Kind::kClose && may_say_why;
        if (!out.empty() && !says_why) std::abort();
        return;
      }
      // An empty request of Redis, or a one-way call of Dubbo, has no answer.
      const bool must_answer = step.requests != 0 && protocol != set_.dubbo.get();
      if (out.empty() && must_answer) std::abort();
      leases_.calls.clear();
      if (step.bytes == 0 || step.bytes > in.size()) std::abort();
      in.remove_prefix(step.bytes);
    }
  }

 private:
  Issuing issuing_;
  IdDesk desk_{issuing_.issuer, issuing_.counters, Method::kHttp, "order"};
  IdDesk redis_desk_{issuing_.issuer, issuing_.counters, Method::kRedis, "order"};
  IdDesk dubbo_desk_{issuing_.issuer, issuing_.counters, Method::kDubbo, "order"};
  DubboState dubbo_state_;
  DubboCounters dubbo_messages_;
  ScriptedLeases leases_;
  ProtocolSet set_;
};

}  // namespace
}  // namespace firn::front

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static firn::front::Door door;
  door.Feed({reinterpret_cast<const char*>(data), size});
  return 0;
}
