// For arbitrary bytes in arbitrary pieces, every protocol of the public port answers, waits for
// more or closes, and changes its output only if it answers.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/front/redis/redis_protocol.h"
#include "tests/server/front/http/http_calls.h"
#include "tests/server/front/issuing_fixture.h"

namespace firn::front {
namespace {

class Door {
 public:
  Door() {
    const Backend& backend = issuing_.backend;
    set_.thrift_binary = MakeThriftProtocol(ThriftCoding::kBinary, backend, issuing_.counters);
    set_.thrift_compact = MakeThriftProtocol(ThriftCoding::kCompact, backend, issuing_.counters);
    set_.http = MakeHttp(issuing_, desk_);
    set_.redis = MakeRedisProtocol(backend, redis_desk_, nullptr);
  }

  void Feed(std::string_view in) {
    Protocol* protocol = set_.For(Recognise(in));
    while (protocol != nullptr && !in.empty()) {
      DoorCall door{.last = true};
      OutBuffer out;
      const ServeStep step = protocol->Serve(in, door, out);
      if (step.kind != ServeStep::Kind::kServed) {
        const bool may_say_why = protocol == set_.http.get() || protocol == set_.redis.get();
        const bool says_why = step.kind == ServeStep::Kind::kClose && may_say_why;
        if (!out.empty() && !says_why) std::abort();
        return;
      }
      // An empty request of Redis has no answer.
      if (out.empty() && step.requests != 0) std::abort();
      if (step.bytes == 0 || step.bytes > in.size()) std::abort();
      in.remove_prefix(step.bytes);
    }
  }

 private:
  Issuing issuing_;
  IdDesk desk_{issuing_.issuer, issuing_.counters, Method::kHttp, "order"};
  IdDesk redis_desk_{issuing_.issuer, issuing_.counters, Method::kRedis, "order"};
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
