#include "server/store/redis/redis_connection.h"

#include <utility>

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include "common/base/secret_file.h"

namespace firn {
namespace {

constexpr std::string_view kNoScript = "NOSCRIPT";

timeval TimevalOf(Milliseconds time) {
  return {.tv_sec = time.count() / 1000, .tv_usec = time.count() % 1000 * 1000};
}

// What the server's word for an error asks for.
Status Refusal(const RedisPlace& place, const std::string& error) {
  const std::string_view word = std::string_view(error).substr(0, error.find(' '));
  if (word == "NOAUTH" || word == "WRONGPASS" || word == "NOPERM") return Denied(error);
  if (word == "WRONGTYPE") return Corrupt(error);
  const std::string address = place.address.ToString();
  if (word == "READONLY") {
    return Unavailable(address +
                       " takes no writes: name the primary as its address, or promote it (" +
                       error + ")");
  }
  if (word == "MOVED" || word == "ASK" || word == "CLUSTERDOWN") {
    return Unavailable(address + " is of a Redis Cluster, which Firn does not use: name a Redis " +
                       "that is none (" + error + ")");
  }
  return Unavailable(error);
}

}  // namespace

struct RedisConnection::Client {
  explicit Client(redisContext* context) : handle(context) {}
  ~Client() {
    if (handle != nullptr) redisFree(handle);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  redisContext* const handle;
};

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
  Close();
  client_ = std::make_unique<Client>(redisConnectWithTimeout(
      place_.address.host.c_str(), place_.address.port, TimevalOf(place_.time_limit)));
  redisContext* const context = client_->handle;
  Status status;
  if (context == nullptr) {
    status = Internal("out of memory");
  } else if (context->err != 0 ||
             redisSetTimeout(context, TimevalOf(place_.time_limit)) != REDIS_OK) {
    status = Unavailable(context->errstr);
  } else {
    status = Authenticate();
  }
  if (!status.ok()) Close();
  if (status.code() == Code::kUnknown) return Unavailable(status.message());
  return status;
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
    // Redis 5 and 6 do not say WRONGPASS in all cases; whatever it says is about the password.
    if (answer.is_error()) return Denied(answer.text());
  }
  if (place_.database == 0) return {};
  const std::string database = std::to_string(place_.database);
  FIRN_ASSIGN(const Reply answer, Command({"SELECT", database}));
  return answer.is_error() ? Refusal(place_, answer.text()) : Status();
}

Result<RedisConnection::Reply> RedisConnection::Command(
    const std::vector<std::string_view>& words) {
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  redisContext* const context = client_->handle;
  void* const answer =
      redisCommandArgv(context, static_cast<int>(words.size()), texts.data(), sizes.data());
  if (answer != nullptr) return Reply{static_cast<redisReply*>(answer)};
  const std::string why = context->errstr;
  Close();
  return Unknown(why);
}

Result<std::string> RedisConnection::Load(std::string_view script) {
  std::string& digest = digests_[script];
  if (!digest.empty()) return digest;
  auto answer = Command({"SCRIPT", "LOAD", script});
  if (!answer.ok()) return Unavailable(answer.status().message());
  if (answer->is_error()) {
    Status failure = Refusal(place_, answer->text());
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
    // Scripts were flushed meanwhile: it has not run, so this does not send it twice.
    words[0] = "EVAL";
    words[1] = script;
    FIRN_ASSIGN(answer, Command(words));
  }
  if (!answer.is_error()) return answer.items();
  Status failure = Refusal(place_, answer.text());
  if (failure.code() != Code::kCorrupt) Close();  // else it is about that key only
  return failure;
}

}  // namespace firn
