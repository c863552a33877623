#include "server/front/redis/redis_protocol.h"

#include <optional>
#include <utility>

#include "server/front/redis/known_increments.h"
#include "server/front/redis/redis_commands.h"
#include "server/front/redis/resp_answer.h"
#include "server/front/redis/resp_request.h"

namespace firn::front {
namespace {

// Limits before login, as in Redis.
constexpr RespLimits kBeforeLogin{.words_max = 10, .bytes_max = 16 * 1024};
constexpr size_t kWordsMax = 1024;

class RedisProtocol final : public Protocol {
 public:
  RedisProtocol(const Backend& backend, IdDesk& desk, const RedisLogins* logins, bool incr_64bit)
      : after_login_{.words_max = kWordsMax, .bytes_max = kFrameBytesMax},
        commands_(backend, desk, logins, incr_64bit ? INT64_MAX : kExactMax),
        known_(desk, commands_, incr_64bit ? INT64_MAX : kExactMax) {}

  ServeStep Serve(std::string_view in, DoorCall& door, OutBuffer& out) override {
    const bool may_ask = commands_.MayAsk(door);
    if (may_ask && !RedisCommands::InTransaction(door)) {
      if (auto served = known_.Serve(in, door, out)) return *std::move(served);
    }
    const RespParsed parsed = ParseResp(in, may_ask ? after_login_ : kBeforeLogin, request_);
    switch (parsed.kind) {
      case RespParsed::Kind::kNeedMore:
        return ServeStep::NeedMore(parsed.bytes);
      case RespParsed::Kind::kBad:
        resp::AppendError("ERR", parsed.fault, out);
        return ServeStep::Close(CloseCause::kBadFrame);
      case RespParsed::Kind::kWhole:
        break;
    }
    if (request_.count == 0) return ServeStep::Served(parsed.bytes, 0);
    return Run(in.substr(0, parsed.bytes), door, out);
  }

 private:
  ServeStep Run(std::string_view request, DoorCall& door, OutBuffer& out) {
    ServeStep step = commands_.Run(request_, request, door, out);
    step.bytes = request.size();
    if (const Tag* const tag = commands_.incremented()) known_.Remember(request, *tag);
    return step;
  }

  const RespLimits after_login_;
  RespRequest request_;
  RedisCommands commands_;
  KnownIncrements known_;
};

}  // namespace

std::unique_ptr<Protocol> MakeRedisProtocol(const Backend& backend, IdDesk& desk,
                                            const RedisLogins* logins, bool incr_64bit) {
  return std::make_unique<RedisProtocol>(backend, desk, logins, incr_64bit);
}

}  // namespace firn::front
