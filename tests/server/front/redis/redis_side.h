#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "server/front/redis/redis_protocol.h"
#include "tests/server/front/form.h"
#include "tests/server/front/issuing_fixture.h"

namespace firn::front {

inline std::string Resp(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return text;
}

inline std::string Bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

// The Redis protocol of one IO thread, with one connection, called without sockets.
class RedisSide {
 public:
  explicit RedisSide(Issuing& issuing, const RedisLogins* logins = nullptr,
                     TagRights* rights = nullptr, bool incr_64bit = true)
      : desk_(issuing.issuer, issuing.counters, Method::kRedis, "order", rights),
        protocol_(MakeRedisProtocol(issuing.backend, desk_, logins, incr_64bit)) {}

  // Returns the answer to these bytes, which contain one request or several.
  std::string Raw(std::string_view in) {
    OutBuffer out;
    while (!in.empty()) {
      step = ServeOrRetry(*protocol_, waiting, in, door, out);
      if (step.kind != ServeStep::Kind::kServed) break;
      in.remove_prefix(step.bytes);
    }
    return std::string(out.view());
  }
  std::string Ask(const std::vector<std::string>& words) { return Raw(Resp(words)); }

  // A new connection.
  void Reconnect() {
    waiting = {};
    door = {};
  }

  Protocol& protocol() { return *protocol_; }

  DoorCall door{};
  Waiting waiting{};
  ServeStep step{};  // the last one

 private:
  IdDesk desk_;
  std::unique_ptr<Protocol> protocol_;
};

class RedisTest : public testing::Test {
 protected:
  using Kind = ServeStep::Kind;

  Issuing issuing_;
  RedisSide redis_{issuing_};
};

}  // namespace firn::front
