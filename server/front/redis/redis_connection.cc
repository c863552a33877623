// The commands of RedisCommands that set or read the state of a connection.

#include <algorithm>
#include <atomic>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "server/front/redis/redis_commands.h"
#include "server/front/redis/resp_answer.h"

namespace firn::front {
namespace {

constexpr int kFailedLoginsMax = 3;
constexpr size_t kNameBytesMax = 128;
constexpr std::string_view kDefaultUser = "default";
constexpr std::string_view kNoUserFile =
    "this server has no users, and needs no login (--redis_auth_file)";

constexpr std::string_view kBadName =
    "a client's name has at most 128 printable ASCII characters without spaces";

// The number of the last connection of this process, for CLIENT ID.
std::atomic<int64_t> g_connections{0};

bool Is(std::string_view word, std::string_view lower_case) {
  return std::equal(word.begin(), word.end(), lower_case.begin(), lower_case.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a | 0x20 : a) == b; });
}

bool IsName(std::string_view name) {
  return name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

RedisSession& RedisCommands::SessionOf(DoorCall& door) {
  if (door.session == nullptr) {
    auto made = std::make_unique<RedisSession>();
    made->id = g_connections.fetch_add(1, std::memory_order_relaxed) + 1;
    door.session = std::move(made);
  }
  return static_cast<RedisSession&>(*door.session);
}

int RedisCommands::VersionOf(const DoorCall& door) {
  const auto* const session = static_cast<const RedisSession*>(door.session.get());
  return session == nullptr ? 2 : session->version;
}

ServeStep RedisCommands::Error(Call& call, std::string_view text) {
  resp::AppendError("ERR", text, call.out);
  return Answered();
}

ServeStep RedisCommands::Ok(Call& call) {
  resp::AppendSimple("OK", call.out);
  return Answered();
}

std::optional<ServeStep> RedisCommands::LogIn(Call& call, std::string_view user,
                                              std::string_view password) {
  if (!logins_) return Error(call, kNoUserFile);
  if (InTransaction(call.door)) return Error(call, "the user cannot change in a transaction");
  RedisSession& session = SessionOf(call.door);
  // Before the check: if the file is read meanwhile, the user is checked again.
  const uint64_t edition = logins_->edition();
  if (logins_->Accepts(user, password)) {
    call.door.user = Cat(kLoginPrefix, user);
    session.edition = edition;
    session.failed_logins = 0;
    return std::nullopt;
  }
  resp::AppendError("WRONGPASS", "invalid username-password pair or user is disabled.", call.out);
  const bool too_often = ++session.failed_logins >= kFailedLoginsMax;
  return too_often ? Closing() : Answered();
}

ServeStep RedisCommands::Auth(Call& call) {
  const bool named = call.words.count == 3;
  auto refused = LogIn(call, named ? call.words[1] : kDefaultUser, call.words[named ? 2 : 1]);
  return refused ? *std::move(refused) : Ok(call);
}

// HELLO [version [AUTH user password] [SETNAME name]]. Changes nothing if any part is invalid.
ServeStep RedisCommands::Hello(Call& call) {
  const RespRequest& words = call.words;
  std::optional<int> version = VersionOf(call.door);
  if (words.count > 1) {
    version = ParseNumber<int>(words[1]);
    if (!version) return Error(call, "Protocol version is not an integer or out of range");
    if (*version != 2 && *version != 3) {
      resp::AppendError("NOPROTO", "unsupported protocol version", call.out);
      return Answered();
    }
  }
  std::optional<size_t> login, name;  // positions of their words
  for (size_t i = 2; i < words.count;) {
    if (Is(words[i], "auth") && words.count - i > 2) {
      login = i + 1;
      i += 3;
    } else if (Is(words[i], "setname") && words.count - i > 1) {
      name = i + 1;
      i += 2;
    } else {
      return Error(call, Cat("Syntax error in HELLO option '", words[i], "'"));
    }
  }
  if (name && !IsName(words[*name])) return Error(call, kBadName);
  if (login) {
    if (auto refused = LogIn(call, words[*login], words[*login + 1])) return *std::move(refused);
  }
  if (!MayAsk(call.door)) {
    resp::AppendError("NOAUTH",
                      "HELLO must be called with the client already authenticated, otherwise the "
                      "HELLO <proto> AUTH <user> <pass> option can be used to authenticate the "
                      "client and select the RESP protocol version at the same time",
                      call.out);
    return Answered();
  }
  RedisSession& session = SessionOf(call.door);
  session.version = *version;
  if (name) session.name = words[*name];
  AnswerHello(session, call.out);
  return Answered();
}

void RedisCommands::AnswerHello(const RedisSession& session, OutBuffer& out) {
  constexpr int64_t kFields = 7;
  const auto text = [&out](std::string_view field, std::string_view value) {
    resp::AppendBulk(field, out);
    resp::AppendBulk(value, out);
  };
  const auto number = [&out](std::string_view field, int64_t value) {
    resp::AppendBulk(field, out);
    resp::AppendInteger(value, out);
  };
  const bool map = session.version == 3;
  resp::AppendNumber(map ? '%' : '*', map ? kFields : 2 * kFields, out);
  text("server", "firn");
  text("version", kRedisVersion);
  number("proto", session.version);
  number("id", session.id);
  text("mode", "standalone");
  text("role", "master");
  resp::AppendBulk("modules", out);
  resp::AppendArray(0, out);
}

ServeStep RedisCommands::Client(Call& call) {
  const RespRequest& words = call.words;
  const std::string_view sub = words[1];
  RedisSession& session = SessionOf(call.door);
  if (Is(sub, "id") && words.count == 2) {
    resp::AppendInteger(session.id, call.out);
  } else if (Is(sub, "getname") && words.count == 2) {
    AnswerName(session, call.out);
  } else if (Is(sub, "setname") && words.count == 3) {
    if (!IsName(words[2])) return Error(call, kBadName);
    session.name = words[2];
    return Ok(call);
  } else if (Is(sub, "setinfo") && words.count == 4) {
    return Ok(call);  // the name of the client library is ignored
  } else {
    return Error(call, Cat("unknown subcommand '", sub.substr(0, kNameBytesMax),
                           "' or wrong number of arguments; CLIENT has ID, GETNAME, SETNAME and "
                           "SETINFO here"));
  }
  return Answered();
}

void RedisCommands::AnswerName(const RedisSession& session, OutBuffer& out) {
  if (!session.name.empty()) {
    resp::AppendBulk(session.name, out);
  } else {
    out.Append(session.version == 3 ? "_\r\n" : "$-1\r\n");
  }
}

ServeStep RedisCommands::Select(Call& call) {
  const auto number = ParseNumber<int64_t>(call.words[1]);
  if (!number) return Error(call, "value is not an integer or out of range");
  return *number == 0 ? Ok(call) : Error(call, "DB index is out of range");
}

ServeStep RedisCommands::Ping(Call& call) {
  if (call.words.count == 1) {
    resp::AppendSimple("PONG", call.out);
    return Answered();
  }
  return Echo(call);
}

ServeStep RedisCommands::Echo(Call& call) {
  resp::AppendBulk(call.words[1], call.out);
  return Answered();
}

ServeStep RedisCommands::Quit(Call& call) {
  Ok(call);
  return Closing();
}

ServeStep RedisCommands::Reset(Call& call) {
  call.door.user.clear();
  if (call.door.session != nullptr) {
    RedisSession& session = SessionOf(call.door);
    session.version = 2;
    session.name.clear();
    session.transaction.reset();
  }
  resp::AppendSimple("RESET", call.out);
  return Answered();
}

}  // namespace firn::front
