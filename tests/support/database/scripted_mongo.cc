#include "tests/support/database/scripted_mongo.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <bson/bson.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/status.h"

namespace firn {
namespace {

constexpr int32_t kReply = 1, kQuery = 2004, kMessage = 2013;
constexpr size_t kHeaderBytes = 16;
constexpr size_t kMessageBytesMax = 1 << 20;

bool ReadAll(int socket, char* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = recv(socket, data + done, size - done, 0);
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

int32_t NumberAt(const std::string& bytes, size_t at) {
  int32_t number = 0;
  if (at + sizeof number <= bytes.size()) std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

template <typename Number>
void Append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

struct Bson {
  explicit Bson(bson_t* owned) : handle(owned) {
    if (handle == nullptr) Die("a scripted answer is not JSON");
  }
  static Bson FromJson(const std::string& json) {
    return Bson(bson_new_from_json(reinterpret_cast<const uint8_t*>(json.data()),
                                   static_cast<ssize_t>(json.size()), nullptr));
  }
  ~Bson() { bson_destroy(handle); }
  Bson(const Bson&) = delete;
  Bson& operator=(const Bson&) = delete;

  std::string bytes() const {
    return {reinterpret_cast<const char*>(bson_get_data(handle)), handle->len};
  }
  std::string json() const {
    char* const text = bson_as_relaxed_extended_json(handle, nullptr);
    std::string out = text;
    bson_free(text);
    return out;
  }
  bool Find(const char* path, bson_iter_t& found) const {
    bson_iter_t from;
    return bson_iter_init(&from, handle) && bson_iter_find_descendant(&from, path, &found);
  }
  std::string Text(const char* path) const {
    bson_iter_t at;
    return Find(path, at) && BSON_ITER_HOLDS_UTF8(&at) ? bson_iter_utf8(&at, nullptr) : "";
  }
  std::optional<int64_t> Number(const char* path) const {
    bson_iter_t at;
    if (!Find(path, at)) return std::nullopt;
    return bson_iter_as_int64(&at);
  }
  std::string first_key() const {
    bson_iter_t at;
    return bson_iter_init(&at, handle) && bson_iter_next(&at) ? bson_iter_key(&at) : "";
  }

  bson_t* const handle;
};

// A store does not read the _id of an answer.
std::string CounterJson(int64_t max, const std::string& cluster) {
  return "{\"max\": {\"$numberLong\": \"" + std::to_string(max) +
         "\"}, \"step\": {\"$numberLong\": \"10\"}, \"cluster\": \"" + cluster + "\"}";
}

}  // namespace

ScriptedMongo::ScriptedMongo() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    Die("no port for a scripted MongoDB");
  }
  port_ = ntohs(address.sin_port);
  threads_.emplace_back([this] { Accept(); });
}

ScriptedMongo::~ScriptedMongo() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    shutdown(listener_, SHUT_RDWR);
    for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
  }
  threads_.front().join();  // this thread starts all others
  threads_.pop_front();
  for (std::thread& thread : threads_) thread.join();
  close(listener_);
}

void ScriptedMongo::Join(std::vector<std::string> members) {
  const std::scoped_lock lock(mutex_);
  members_ = std::move(members);
}

void ScriptedMongo::BePrimary(bool primary) {
  const std::scoped_lock lock(mutex_);
  primary_ = primary;
}

void ScriptedMongo::Script(const std::string& command, Reply reply) {
  const std::scoped_lock lock(mutex_);
  script_.emplace(command, std::move(reply));
}

std::vector<std::string> ScriptedMongo::commands() {
  const std::scoped_lock lock(mutex_);
  return commands_;
}

int64_t ScriptedMongo::max(const std::string& tag) {
  const std::scoped_lock lock(mutex_);
  return counters_[tag];
}

void ScriptedMongo::SetMax(const std::string& tag, int64_t max) {
  const std::scoped_lock lock(mutex_);
  counters_[tag] = max;
}

void ScriptedMongo::Accept() {
  for (;;) {
    const int socket = accept(listener_, nullptr, nullptr);
    const std::scoped_lock lock(mutex_);
    if (stopped_ || socket < 0) {
      if (socket >= 0) close(socket);
      return;
    }
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { Serve(socket); });
  }
}

void ScriptedMongo::Serve(int socket) {
  for (std::string head(kHeaderBytes, '\0'); ReadAll(socket, head.data(), head.size());) {
    const auto size = static_cast<size_t>(NumberAt(head, 0));
    if (size < kHeaderBytes || size > kMessageBytesMax) break;
    std::string body(size - kHeaderBytes, '\0');
    if (!ReadAll(socket, body.data(), body.size())) break;
    const int32_t operation = NumberAt(head, 12);
    // A message begins with flags and the kind of its section, a query with the collection and
    // counts.
    const size_t begin = operation == kMessage ? 5 : body.find('\0', 4) + 1 + 8;
    if (begin >= body.size() || (operation != kMessage && operation != kQuery)) break;
    const std::optional<std::string> answer = Answer(body.substr(begin));
    if (!answer) break;
    std::string reply;
    if (operation == kMessage) {
      Append(reply, uint32_t{0});
      reply += '\0';
    } else {
      Append(reply, int32_t{8});  // as servers set it
      Append(reply, int64_t{0});
      Append(reply, int32_t{0});
      Append(reply, int32_t{1});
    }
    reply += *answer;
    std::string message;
    Append(message, static_cast<int32_t>(kHeaderBytes + reply.size()));
    Append(message, int32_t{1});
    Append(message, NumberAt(head, 4));
    Append(message, operation == kMessage ? kMessage : kReply);
    message += reply;
    if (send(socket, message.data(), message.size(), MSG_NOSIGNAL) < 0) break;
  }
  const std::scoped_lock lock(mutex_);
  sockets_.remove(socket);
  close(socket);
}

std::string ScriptedMongo::Greeting() {
  std::string json =
      "{\"ok\": 1, \"maxBsonObjectSize\": 16777216, \"maxMessageSizeBytes\": 48000000,"
      " \"maxWriteBatchSize\": 1000, \"minWireVersion\": 0, \"maxWireVersion\": 17,"
      " \"readOnly\": false, \"isWritablePrimary\": " +
      std::string(primary_ ? "true" : "false") +
      ", \"ismaster\": " + (primary_ ? "true" : "false") +
      ", \"secondary\": " + (primary_ ? "false" : "true");
  if (!members_.empty()) {
    json += ", \"setName\": \"rs\", \"setVersion\": 1, \"me\": \"" + address() + "\", \"hosts\": [";
    for (const std::string& member : members_) json += "\"" + member + "\", ";
    json.resize(json.size() - 2);
    json += "]";
  }
  return json + "}";
}

std::optional<std::string> ScriptedMongo::Answer(const std::string& document) {
  const auto size = static_cast<size_t>(NumberAt(document, 0));
  if (size > document.size()) return std::nullopt;
  const Bson command(bson_new_from_data(reinterpret_cast<const uint8_t*>(document.data()), size));
  const std::scoped_lock lock(mutex_);
  const std::string verb = command.first_key();
  if (verb == "hello" || verb == "isMaster" || verb == "ismaster") {
    return Bson::FromJson(Greeting()).bytes();
  }
  if (verb != "ping") commands_.push_back(command.json());
  Reply scripted;
  if (const auto found = script_.lower_bound(verb);
      found != script_.end() && found->first == verb) {
    scripted = found->second;
    script_.erase(found);
  }
  std::string json = "{\"ok\": 1}";
  if (verb == "find") {
    const std::string tag = command.Text("filter._id");
    const auto counter = counters_.find(tag);
    json = "{\"ok\": 1, \"cursor\": {\"id\": 0, \"ns\": \"ids.firn_tag\", \"firstBatch\": [" +
           (counter == counters_.end() ? "" : CounterJson(counter->second, clusters_[tag])) + "]}}";
  } else if (verb == "insert" && scripted.execute) {
    counters_.emplace(command.Text("documents.0._id"),
                      command.Number("documents.0.max").value_or(0));
    json = "{\"ok\": 1, \"n\": 1}";
  } else if (verb == "findAndModify" && scripted.execute) {
    const std::string tag = command.Text("query._id");
    int64_t& max = counters_[tag];
    if (const auto least = command.Number("update.$max.max")) max = std::max(max, *least);
    const std::string cluster = command.Text("update.$set.cluster");
    std::string& owner = clusters_[tag];
    const auto more = command.Number("update.$inc.max");
    if (more && !owner.empty() && owner != cluster) {
      json = "{\"ok\": 1, \"value\": null}";
    } else {
      max += more.value_or(0);
      if (more) owner = cluster;
      json = "{\"ok\": 1, \"value\": " + CounterJson(max, owner) + "}";
    }
  }
  if (scripted.close) return std::nullopt;
  if (!scripted.json.empty()) json = scripted.json;
  if (!scripted.and_json.empty())
    json = json.substr(0, json.size() - 1) + ", " + scripted.and_json + "}";
  return Bson::FromJson(json).bytes();
}

}  // namespace firn
