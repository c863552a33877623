#include "tests/support/database/redis.h"

#include <fstream>
#include <system_error>
#include <utility>

#include <hiredis/hiredis.h>
#include <sys/stat.h>
#include <sys/time.h>

namespace firn {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
  if (reply.type != REDIS_REPLY_ARRAY) return std::string(reply.str, reply.len);
  std::string text;
  for (size_t i = 0; i < reply.elements; ++i) text += TextOf(*reply.element[i]) + "\n";
  return text;
}

// A connection for one command.
class Client {
 public:
  explicit Client(int port)
      : context_(redisConnectWithTimeout("127.0.0.1", port, {.tv_sec = 5, .tv_usec = 0})) {
    if (Connected()) redisSetTimeout(context_, {.tv_sec = 20, .tv_usec = 0});
  }
  ~Client() {
    if (context_ != nullptr) redisFree(context_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Result<std::string> Run(const std::vector<std::string>& words) {
    if (!Connected()) return Unavailable("cannot connect");
    std::vector<const char*> texts;
    std::vector<size_t> sizes;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    void* const answer =
        redisCommandArgv(context_, static_cast<int>(words.size()), texts.data(), sizes.data());
    if (answer == nullptr) return Unavailable(context_->errstr);
    redisReply* const reply = static_cast<redisReply*>(answer);
    const bool refused = reply->type == REDIS_REPLY_ERROR;
    std::string text = reply->type == REDIS_REPLY_NIL ? "" : TextOf(*reply);
    freeReplyObject(reply);
    if (refused) return Unavailable(std::move(text));
    return text;
  }

 private:
  bool Connected() const { return context_ != nullptr && context_->err == 0; }

  redisContext* const context_;
};

}  // namespace

Result<std::unique_ptr<Redis>> Redis::Start(RedisOptions options) {
  constexpr int kTriesMax = 3;  // another program may take a free port first
  Status failure;
  for (int i = 0; i < kTriesMax; ++i) {
    std::unique_ptr<Redis> server(new Redis(options));
    std::ofstream(server->credentials_file()) << options.password << "\n";
    chmod(server->credentials_file().c_str(), 0600);
    failure = server->Restart();
    if (failure.ok()) return server;
  }
  return std::move(failure).WithContext("Redis (package redis-server)");
}

Status Redis::Restart() {
  process_.reset();
  std::vector<std::string> command{"redis-server",
                                   "--bind",
                                   "127.0.0.1",
                                   "--port",
                                   std::to_string(port_),
                                   "--dir",
                                   folder().string(),
                                   "--save",
                                   "",
                                   "--appendonly",
                                   options_.append_only ? "yes" : "no",
                                   "--appendfsync",
                                   options_.sync_always ? "always" : "everysec",
                                   "--repl-diskless-sync-delay",
                                   "0",
                                   "--enable-debug-command",
                                   "yes"};
  if (!options_.password.empty()) {
    for (const char* word : {"--requirepass", "--masterauth"}) {
      command.insert(command.end(), {word, options_.password});
    }
  }
  if (!options_.tls_cert.empty()) {
    const bool asks = !options_.client_ca.empty();
    for (const std::string& word :
         {std::string("--tls-port"), std::to_string(tls_port_), std::string("--tls-cert-file"),
          options_.tls_cert, std::string("--tls-key-file"), options_.tls_key,
          std::string("--tls-ca-cert-file"), asks ? options_.client_ca : options_.tls_cert,
          std::string("--tls-auth-clients"), std::string(asks ? "yes" : "no")}) {
      command.push_back(word);
    }
  }
  if (options_.cluster) {
    for (const std::string& word : {std::string("--cluster-enabled"), std::string("yes"),
                                    std::string("--cluster-port"), std::to_string(FreePort())}) {
      command.push_back(word);
    }
  }
  process_ = Process(command, {.output_file = folder_ / "output.log"});
  const bool ready =
      Eventually(kPatience, [this] { return !process_->Running() || Run({"PING"}).ok(); });
  if (ready && process_->Running()) return {};
  folder_.Keep();
  return Unavailable("not serving, see " + folder().string());
}

Status Redis::Replace() {
  process_.reset();
  std::error_code error;
  fs::remove_all(folder() / "appendonlydir", error);
  return Restart();
}

Result<std::string> Redis::Run(const std::vector<std::string>& words) {
  Client client(port_);
  if (!options_.password.empty()) {
    FIRN_TRY(client.Run({"AUTH", options_.password}).status());
  }
  return client.Run(words);
}

std::string Redis::Info(const std::string& field) {
  const std::string text = "\n" + Run({"INFO"}).value_or("");
  const std::string key = "\n" + field + ":";
  const size_t at = text.find(key);
  if (at == std::string::npos) return {};
  const size_t begin = at + key.size();
  return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

Status Redis::Follow(Redis& primary) {
  FIRN_TRY(Run({"REPLICAOF", "127.0.0.1", std::to_string(primary.port())}).status());
  const bool caught_up = Eventually(kPatience, [&] {
    return Info("master_link_status") == "up" &&
           Info("slave_repl_offset") == primary.Info("master_repl_offset");
  });
  return caught_up ? Status() : Unavailable("the replica does not catch up");
}

Status Redis::JoinCluster(Redis& other) {
  FIRN_TRY(other.Run({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}).status());
  FIRN_ASSIGN(const std::string nodes, other.Run({"CLUSTER", "NODES"}));  // id host:port@bus ...
  const std::string bus = nodes.substr(nodes.find('@') + 1);
  FIRN_TRY(Run({"CLUSTER", "MEET", "127.0.0.1", std::to_string(other.port()),
                bus.substr(0, bus.find_first_of(", "))})
               .status());
  const bool joined = Eventually(kPatience, [this] {
    return Run({"GET", "key"}).status().message().starts_with("MOVED");
  });
  return joined ? Status() : Unavailable("the node does not join");
}

RedisSentinel::RedisSentinel(const Redis& server) : port_(FreePort()) {
  const std::string file = folder_ / "sentinel.conf", name = kMaster;
  std::ofstream(file) << "bind 127.0.0.1\nport " << port_ << "\ndir " << folder_.path().string()
                      << "\nsentinel monitor " << name << " 127.0.0.1 " << server.port() << " 1\n"
                      << "sentinel down-after-milliseconds " << name << " 500\n"
                      << "sentinel failover-timeout " << name << " 2000\n";
  process_ = Process({"redis-server", file, "--sentinel"}, {.output_file = folder_ / "output.log"});
}

bool RedisSentinel::KnowsAReplica() const {
  const Result<std::string> found = Client(port_).Run({"SENTINEL", "replicas", kMaster});
  return found.ok() && found->find("slave-priority") != std::string::npos &&
         found->find("master-link-status\nok") != std::string::npos;
}

}  // namespace firn
