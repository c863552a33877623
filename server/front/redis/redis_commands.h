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
#include "server/front/redis/resp_request.h"

namespace firn::front {

// The requests between MULTI and EXEC.
struct RedisTransaction {
  static constexpr size_t kBytesMax = 1024 * 1024;

  std::string requests{};  // their bytes, as received
  size_t count = 0;
  bool aborted = false;  // one was refused: EXEC runs none of them
};

// State of a connection that has sent HELLO, AUTH, CLIENT or MULTI. Others have the defaults.
struct RedisSession final : DoorSession {
  size_t memory() const override { return transaction ? transaction->requests.capacity() : 0; }

  int64_t id = 0;        // of CLIENT ID
  int version = 2;       // of the protocol: 2 or 3
  std::string name{};    // of CLIENT SETNAME
  uint64_t edition = 0;  // of the logins when they were last checked for this user
  int failed_logins = 0;
  std::optional<RedisTransaction> transaction{};  // since MULTI
};

// The version of Redis that this server emulates.
inline constexpr std::string_view kRedisVersion = "7.2.0";

// The commands of the Redis protocol. Belongs to one IO thread.
class RedisCommands {
 public:
  // All must outlive it. `logins`: only their users get ids; null: everyone. `integer_max`: the
  // largest id that is answered as an integer.
  RedisCommands(const Backend& backend, IdDesk& desk, const RedisLogins* logins,
                int64_t integer_max);

  // Whether this connection may use every command: it has logged in, or no login is required.
  bool MayAsk(DoorCall& door);

  // Whether the connection's requests are queued until EXEC.
  static bool InTransaction(const DoorCall& door) { return TransactionOf(door) != nullptr; }

  // Runs a request that has at least one word, and appends its answer, or queues it. `bytes`:
  // the request as received. The step consumes nothing.
  ServeStep Run(const RespRequest& request, std::string_view bytes, DoorCall& door, OutBuffer& out);

  // Serves `calls` INCRs of this tag, which wait as one. Nullopt, without an effect: each must be
  // run. The step consumes nothing.
  std::optional<ServeStep> IncrJointly(const Tag& tag, size_t calls, DoorCall& door,
                                       OutBuffer& out);

  // The tag whose INCR was the last Run, if KnownIncrements can serve equal ones; null otherwise.
  const Tag* incremented() const { return incremented_; }

 private:
  struct JointAnswers;

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
    bool queued;  // in a transaction
    ServeStep (RedisCommands::*run)(Call&);
  };
  static const Command* Find(std::string_view name);
  // Why it cannot run; empty: it can.
  static std::string FaultOf(const Command* command, const RespRequest& request);
  ServeStep RunNow(const RespRequest& request, DoorCall& door, OutBuffer& out);

  // Commands for ids.
  ServeStep Incr(Call& call);
  ServeStep IncrBy(Call& call);
  ServeStep Id(Call& call);
  ServeStep Ids(Call& call);
  ServeStep Text(Call& call);
  ServeStep Get(Call& call);
  // Appends the ids of a list from `at` on, in several turns if there are many.
  ServeStep List(WaitingIds call, RunsCursor at, OutBuffer& out);
  // Requests ids, and appends the answer by `write(runs, out)`, or the refusal.
  template <typename Write>
  ServeStep Ask(Call& call, int64_t count, Form form, Write write);
  template <typename Write>
  ServeStep Answer(Verdict verdict, OutBuffer& out, Write write);
  // Runs `serve()`. If it throws, the answer is an error.
  template <typename Serve>
  static ServeStep Safely(OutBuffer& out, Serve serve);
  ServeStep OneInteger(Call& call);
  // Whether the tag's next ids, `more` of them after the first, are known to exceed integer_max_.
  bool IsTooLarge(std::string_view tag, int64_t more, const DoorCall& door) const;
  ServeStep AnswerInteger(int64_t id, OutBuffer& out);
  ServeStep RefuseInteger(OutBuffer& out);
  void AppendRefusalOfDesk(OutBuffer& out) const;
  ServeStep Refuse(Call& call, std::string message);

  // Commands for the connection.
  ServeStep Hello(Call& call);
  ServeStep Auth(Call& call);
  ServeStep Client(Call& call);
  ServeStep Select(Call& call);
  ServeStep Ping(Call& call);
  ServeStep Echo(Call& call);
  ServeStep Quit(Call& call);
  ServeStep Reset(Call& call);
  static ServeStep Answered() { return ServeStep::Served(0); }
  static ServeStep Closing() { return ServeStep::Close(CloseCause::kPeer); }
  static ServeStep NoLogin(DoorCall& door, OutBuffer& out);
  static ServeStep Ok(Call& call);
  static ServeStep Error(Call& call, std::string_view text);
  static void AnswerHello(const RedisSession& session, OutBuffer& out);
  static void AnswerName(const RedisSession& session, OutBuffer& out);
  // Nullopt: the connection now has the user's rights.
  std::optional<ServeStep> LogIn(Call& call, std::string_view user, std::string_view password);
  // Creates the session if the connection has none.
  static RedisSession& SessionOf(DoorCall& door);
  static int VersionOf(const DoorCall& door);

  // Commands for transactions.
  ServeStep Multi(Call& call);
  ServeStep Exec(Call& call);
  ServeStep Discard(Call& call);
  ServeStep Watch(Call& call);
  ServeStep Unwatch(Call& call);
  // Null: the connection has none.
  static RedisTransaction* TransactionOf(const DoorCall& door);
  static ServeStep Queue(RedisTransaction& transaction, std::string_view request, OutBuffer& out);
  // Runs the requests in `queued` from `at` on.
  ServeStep RunQueued(std::string queued, size_t at, DoorCall& door, OutBuffer& out);
  ServeStep RunQueuedAfter(ServeStep step, std::string queued, size_t at);

  // Commands for the server.
  ServeStep Info(Call& call);
  ServeStep CommandList(Call& call);
  ServeStep Cluster(Call& call);
  std::string InfoText() const;

  const Backend& backend_;
  IdDesk& desk_;
  std::optional<RedisLogins::Reader> logins_;  // empty: no login is required
  const int64_t integer_max_;
  const Tag* incremented_ = nullptr;
};

}  // namespace firn::front
