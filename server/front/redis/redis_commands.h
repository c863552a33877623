#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/front/desk/backend.h"
#include "server/front/desk/id_desk.h"
#include "server/front/net/protocol.h"
#include "server/front/redis/redis_logins.h"
#include "server/front/redis/redis_session.h"
#include "server/front/redis/resp_request.h"

namespace firn::front {

// The version of Redis whose clients and commands this door is made for.
inline constexpr std::string_view kRedisVersion = "7.2.0";

// The commands of the Redis protocol. Belongs to one IO thread.
class RedisCommands {
 public:
  enum class Outcome : uint8_t {
    kAnswered,
    kPark,   // no ids yet: the call is parked at the door, and nothing was answered
    kClose,  // answered, and the connection is to end
  };

  // All must outlive it. `logins`: only their users get ids; null: everyone.
  RedisCommands(const Backend& backend, IdDesk& desk, const RedisLogins* logins);

  // Whether this connection may use every command: it has logged in, or need not.
  bool MayAsk(DoorCall& door);

  // Runs a request that has at least one word, and appends its answer.
  Outcome Run(const RespRequest& request, DoorCall& door, OutBuffer& out);

  // The tag of which the last Run took one id as INCR, in the fast way; null: it did something
  // else.
  const Tag* incremented() const { return incremented_; }

 private:
  // A request that is being run.
  struct Call {
    const RespRequest& words;
    DoorCall& door;
    OutBuffer& out;
  };
  struct Command {
    std::string_view name;  // in lower case
    size_t least, most;     // words, with the name
    bool before_login;
    Outcome (RedisCommands::*run)(Call&);
  };
  static const Command* Find(std::string_view name);

  // Ids.
  Outcome Incr(Call& call);
  Outcome IncrBy(Call& call);
  Outcome Id(Call& call);
  Outcome Ids(Call& call);
  Outcome Text(Call& call);
  Outcome Get(Call& call);
  // Requests ids, and appends the answer by `write(runs)`, or the refusal.
  template <typename Write>
  Outcome Ask(Call& call, int64_t count, Form form, Write&& write);
  Outcome OneInteger(Call& call);
  Outcome Refuse(Call& call, std::string message);

  // The connection.
  Outcome Hello(Call& call);
  Outcome Auth(Call& call);
  Outcome Client(Call& call);
  Outcome Select(Call& call);
  Outcome Ping(Call& call);
  Outcome Echo(Call& call);
  Outcome Quit(Call& call);
  Outcome Reset(Call& call);
  static Outcome Ok(Call& call);
  static Outcome Error(Call& call, std::string_view text);
  static void AnswerHello(const RedisSession& session, OutBuffer& out);
  static void AnswerName(const RedisSession& session, OutBuffer& out);
  // Nullopt: the connection has the user's rights now.
  std::optional<Outcome> LogIn(Call& call, std::string_view user, std::string_view password);
  // Creates it if the connection has none.
  static RedisSession& SessionOf(DoorCall& door);
  static int VersionOf(const DoorCall& door);

  // The server.
  Outcome Info(Call& call);
  Outcome CommandList(Call& call);
  Outcome Cluster(Call& call);
  std::string InfoText() const;

  const Backend& backend_;
  IdDesk& desk_;
  std::optional<RedisLogins::Reader> logins_;  // none: no login is required
  const Tag* incremented_ = nullptr;
};

}  // namespace firn::front
