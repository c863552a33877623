#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/front/dubbo/hessian_reader.h"
#include "tests/server/front/dubbo/dubbo_messages.h"
#include "tests/server/front/redis/redis_side.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/support/json_of.h"

namespace firn::front {

using Numbers = std::vector<int64_t>;

// How a test requests ids by one protocol. `read` returns none for a refusal.
struct Speech {
  const char* name;
  std::function<std::string(const std::string& tag, int count)> ask;
  std::function<Numbers(const std::string& answer)> read;
};

inline Speech ThriftSpeech(const char* name, ThriftCoding coding) {
  const auto calls = std::make_shared<ThriftCalls>(coding);
  return {
      name,
      [calls](const std::string& tag, int count) {
        return calls->Frame([&](wire::IdServiceClient& client) { client.send_getIds(tag, count); });
      },
      [calls](const std::string& answer) {
        Numbers numbers;
        try {
          calls->Answer(answer).recv_getIds(numbers);
        } catch (const wire::Refusal&) {
        }
        return numbers;
      }};
}

inline Speech HttpSpeech() {
  return {"Http",
          [](const std::string& tag, int count) {
            return "GET /v1/ids/" + tag + "?count=" + std::to_string(count) +
                   " HTTP/1.1\r\nHost: x\r\n\r\n";
          },
          [](const std::string& answer) {
            Numbers numbers;
            if (!answer.starts_with("HTTP/1.1 200")) return numbers;
            const Json json = JsonOf(answer.substr(answer.find("\r\n\r\n")));
            for (const Json& id : json.at("ids")) numbers.push_back(std::stoll(id.text()));
            return numbers;
          }};
}

// Tinyid, whose refusals have status 200, too. Leaf and Vesta give one number for each request, by
// the same code.
inline Speech TinyidSpeech() {
  return {"Tinyid",
          [](const std::string& tag, int count) {
            return "GET /id/nextId?bizType=" + tag + "&batchSize=" + std::to_string(count) +
                   " HTTP/1.1\r\nHost: x\r\n\r\n";
          },
          [](const std::string& answer) {
            Numbers numbers;
            const Json json = JsonOf(answer.substr(answer.find("\r\n\r\n")));
            if (!(json.at("code") == 200)) return numbers;
            for (const Json& id : json.at("data")) numbers.push_back(id.whole().value());
            return numbers;
          }};
}

inline Speech RedisSpeech() {
  return {"Redis",
          [](const std::string& tag, int count) {
            return Resp({"FIRN.IDS", tag, std::to_string(count)});
          },
          [](const std::string& answer) {
            Numbers numbers;
            if (!answer.starts_with("*")) return numbers;
            for (size_t at = answer.find('$'); at != std::string::npos;
                 at = answer.find('$', at + 1)) {
              numbers.push_back(std::stoll(answer.substr(answer.find('\n', at) + 1)));
            }
            return numbers;
          }};
}

inline Speech DubboSpeech() {
  return {"Dubbo",
          [](const std::string& tag, int count) {
            std::string arguments;
            HessianWriter out(arguments);
            out.Text(tag);
            out.Int(count);
            return DubboCall{
                .method = "nextIds", .types = "Ljava/lang/String;I", .arguments = arguments}
                .Bytes();
          },
          [](const std::string& answer) {
            Numbers numbers;
            if (DubboHeader::Read(answer).status != 20 || answer[DubboHeader::kBytes] != '\x94') {
              return numbers;
            }
            // The server's reader does not support long lists.
            EXPECT_EQ(answer[DubboHeader::kBytes + 1], '\x58') << "a list of eight or more";
            HessianReader reader(std::string_view(answer).substr(DubboHeader::kBytes + 2));
            int64_t items = 0;
            EXPECT_TRUE(reader.Whole(items));
            for (; items > 0; --items) EXPECT_TRUE(reader.Whole(numbers.emplace_back()));
            return numbers;
          }};
}

inline const Speech& SpeechOf(int index) {
  static const Speech kSpeeches[] = {ThriftSpeech("ThriftBinary", ThriftCoding::kBinary),
                                     ThriftSpeech("ThriftCompact", ThriftCoding::kCompact),
                                     HttpSpeech(),
                                     RedisSpeech(),
                                     DubboSpeech(),
                                     TinyidSpeech()};
  return kSpeeches[index];
}

}  // namespace firn::front
