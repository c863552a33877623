#include "server/store/redis/redis_connection.h"

#include <array>
#include <utility>

#include <hiredis/hiredis.h>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/base/secret_file.h"
#include "server/store/redis/redis_socket.h"

namespace firn {
namespace {

constexpr std::string_view kNoScript = "NOSCRIPT";

// Commands in the scripts, and commands that run the scripts.
constexpr std::string_view kRights =
    "EVALSHA, EVAL, SCRIPT LOAD, HMGET, HSET, HINCRBY, HDEL, INFO and TIME";

// Returns whether the user lacks a right. For a command in a script, Redis 7.0 reports neither an
// error code nor the command.
bool IsAboutRights(std::string_view error) {
  return error.starts_with("NOPERM") || error.find("can't run this command") != error.npos ||
         error.find("ACL failure in script") != error.npos;
}

// Translates the server's error code.
Status Refusal(const Endpoint& server, const std::string& error) {
  const std::string_view word = std::string_view(error).substr(0, error.find(' '));
  if (word == "NOAUTH" || word == "WRONGPASS" || IsAboutRights(error)) return Denied(error);
  if (word == "WRONGTYPE") return Corrupt(error);
  const std::string address = server.ToString();
  if (word == "READONLY") {
    return Unavailable(address + " takes no writes (" + error +
                       "); promote it, or name the primary as its address");
  }
  if (word == "MOVED" || word == "ASK" || word == "CLUSTERDOWN") {
    return Unavailable(address + " is of a Redis Cluster, which Firn does not use (" + error +
                       "); name a Redis outside of a cluster");
  }
  return Unavailable(error);
}

}  // namespace

// Formats commands and parses replies with the library. The socket is Firn's, because Debian 12's
// hiredis lacks TLS.
struct RedisConnection::Client {
  explicit Client(std::unique_ptr<RedisSocket> connected)
      : socket(std::move(connected)), reader(redisReaderCreate()) {}
  ~Client() { redisReaderFree(reader); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends one command and returns its reply.
  Result<redisReply*> Ask(const std::vector<std::string_view>& words);

  const std::unique_ptr<RedisSocket> socket;
  redisReader* const reader;
};

Result<redisReply*> RedisConnection::Client::Ask(const std::vector<std::string_view>& words) {
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* command = nullptr;
  const auto size =  // int or long long, depending on hiredis' version
      redisFormatCommandArgv(&command, static_cast<int>(words.size()), texts.data(), sizes.data());
  if (size < 0) return Internal("out of memory");
  const Status sent = socket->Send({command, static_cast<size_t>(size)});
  redisFreeCommand(command);
  FIRN_TRY(sent);
  std::array<char, 16'384> buffer;
  for (;;) {
    void* reply = nullptr;
    if (redisReaderGetReply(reader, &reply) != REDIS_OK) return Unavailable(reader->errstr);
    if (reply != nullptr) return static_cast<redisReply*>(reply);
    FIRN_ASSIGN(const size_t came, socket->Receive(buffer.data(), buffer.size()));
    if (redisReaderFeed(reader, buffer.data(), came) != REDIS_OK) {
      return Unavailable(reader->errstr);
    }
  }
}

struct RedisConnection::Reply {
  struct Free {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };

  explicit Reply(redisReply* reply) : handle(reply) {}

  static std::string TextOf(const redisReply& reply) {
    if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
    return reply.str == nullptr ? std::string() : std::string(reply.str, reply.len);
  }

  bool is_error() const { return handle->type == REDIS_REPLY_ERROR; }
  std::string text() const { return TextOf(*handle); }
  std::vector<std::string> items() const {
    std::vector<std::string> texts;
    for (size_t i = 0; i < handle->elements; ++i) texts.push_back(TextOf(*handle->element[i]));
    return texts;
  }

  std::unique_ptr<redisReply, Free> handle;
};

RedisConnection::RedisConnection(RedisPlace place) : place_(std::move(place)) {}

RedisConnection::~RedisConnection() { Close(); }

void RedisConnection::Close() {
  digests_.clear();
  client_.reset();
}

Status RedisConnection::Open() {
  Status status;
  if (place_.sentinels.empty()) {
    status = OpenServer(place_.address);
  } else {
    std::string failures;
    for (const Endpoint& sentinel : place_.sentinels) {
      status = OpenMaster(sentinel);
      if (status.ok()) return status;
      failures += Cat(failures.empty() ? "" : "; ", "sentinel ", sentinel.ToString(), ": ",
                      status.message());
    }
    status = Status(status.code(), failures);
  }
  if (status.code() == Code::kUnknown) return Unavailable(status.message());
  return status;
}

Status RedisConnection::Connect(const Endpoint& address) {
  Close();
  address_ = address;
  FIRN_ASSIGN(auto socket, RedisSocket::Connect(address, place_.tls, place_.time_limit));
  client_ = std::make_unique<Client>(std::move(socket));
  return client_->reader != nullptr ? Status() : Internal("out of memory");
}

Status RedisConnection::OpenServer(const Endpoint& address) {
  Status status = Connect(address);
  if (status.ok()) status = Authenticate();
  if (!status.ok()) Close();
  return status;
}

// A sentinel may be outdated, so the server itself must confirm that it is the master.
Status RedisConnection::OpenMaster(const Endpoint& sentinel) {
  FIRN_ASSIGN(const Endpoint master, AskForMaster(sentinel));
  FIRN_TRY(OpenServer(master));
  auto role = Command({"ROLE"});
  if (!role.ok()) return role.status();
  const std::vector<std::string> items = role->items();
  if (!role->is_error() && !items.empty() && items.front() == "master") return {};
  const Status refusal = role->is_error() ? Refusal(master, role->text()) : Status();
  Close();
  FIRN_TRY(refusal);
  return Unavailable(master.ToString() + " is not the master yet");
}

Result<Endpoint> RedisConnection::AskForMaster(const Endpoint& sentinel) {
  FIRN_TRY(Connect(sentinel));
  FIRN_ASSIGN(const Reply answer, Command({"SENTINEL", "get-master-addr-by-name", place_.master}));
  const std::vector<std::string> items = answer.items();
  Close();
  if (answer.is_error()) return Unavailable(answer.text());
  if (items.size() != 2) return NotFound("it knows no master " + Quoted(place_.master));
  const auto port = ParseNumberWithin<uint16_t>(items[1], 1);
  if (!port) return Corrupt("its answer has no port");
  return Endpoint{items[0], *port};
}

Status RedisConnection::Authenticate() {
  if (!place_.credentials_file.empty()) {
    FIRN_ASSIGN(const std::string text, ReadSecretFile(place_.credentials_file));
    const std::string_view line = std::string_view(text).substr(0, text.find_first_of("\r\n"));
    const size_t colon = line.find(':');
    std::vector<std::string_view> words{"AUTH"};
    if (colon != line.npos) words.push_back(line.substr(0, colon));
    words.push_back(colon == line.npos ? line : line.substr(colon + 1));
    FIRN_ASSIGN(const Reply answer, Command(words));
    // Redis 5 and 6 do not always report WRONGPASS; any error here concerns the login.
    if (answer.is_error()) return Denied(answer.text());
  }
  if (place_.database == 0) return {};
  const std::string database = std::to_string(place_.database);
  FIRN_ASSIGN(const Reply answer, Command({"SELECT", database}));
  return answer.is_error() ? Refusal(address_, answer.text()) : Status();
}

Result<RedisConnection::Reply> RedisConnection::Command(
    const std::vector<std::string_view>& words) {
  const Result<redisReply*> answer = client_->Ask(words);
  if (answer.ok()) return Reply{*answer};
  Close();
  return Unknown(answer.status().message());
}

Result<std::string> RedisConnection::Load(std::string_view script) {
  std::string& digest = digests_[script];
  if (!digest.empty()) return digest;
  auto answer = Command({"SCRIPT", "LOAD", script});
  if (!answer.ok()) return Unavailable(answer.status().message());
  if (answer->is_error()) {
    Status failure = Refusal(address_, answer->text());
    Close();
    return failure;
  }
  return digest = answer->text();
}

Result<std::vector<std::string>> RedisConnection::Eval(std::string_view script,
                                                       const std::string& key,
                                                       const std::vector<std::string>& arguments) {
  if (!is_open()) return Unavailable("not connected");
  FIRN_ASSIGN(const std::string digest, Load(script));
  std::vector<std::string_view> words{"EVALSHA", digest, "1", key};
  words.insert(words.end(), arguments.begin(), arguments.end());
  FIRN_ASSIGN(Reply answer, Command(words));
  if (answer.is_error() && answer.text().starts_with(kNoScript)) {
    // The server has lost its scripts, so this one has not run; sending it again does not run it
    // twice.
    words[0] = "EVAL";
    words[1] = script;
    FIRN_ASSIGN(answer, Command(words));
  }
  if (!answer.is_error()) return answer.items();
  Status failure = Refusal(address_, answer.text());
  if (IsAboutRights(answer.text())) {
    failure = Denied(Cat(answer.text(), "; grant the user ", kRights, " on ", key));
  }
  if (failure.code() != Code::kCorrupt) Close();  // kCorrupt concerns only this key
  return failure;
}

}  // namespace firn
