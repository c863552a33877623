#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "server/front/http/http_handlers.h"
#include "tests/server/front/issuing_fixture.h"

namespace firn::front {

// HTTP as on the public port.
inline std::unique_ptr<Protocol> MakeHttp(Issuing& issuing, IdDesk& desk, TokenCheck tokens = {}) {
  std::vector<std::unique_ptr<HttpHandler>> handlers;
  handlers.push_back(MakeNativeHandler(issuing.backend, desk));
  handlers.push_back(MakeLeafHandler(issuing.backend, desk));
  handlers.push_back(MakeVestaHandler(issuing.backend, desk));
  handlers.push_back(MakeTinyidHandler(issuing.backend, desk, std::move(tokens)));
  handlers.push_back(MakeServersHandler(issuing.backend));
  return MakeHttpProtocol(issuing.limits, &desk, std::move(handlers));
}

// The HTTP side on one IO thread, called without sockets.
class HttpSide {
 public:
  explicit HttpSide(Issuing& issuing, TokenCheck tokens = {})
      : desk_(issuing.issuer, issuing.counters, Method::kHttp, "order"),
        protocol_(MakeHttp(issuing, desk_, std::move(tokens))) {}

  struct Answer {
    ServeStep step{};
    std::string head, body;

    int status() const { return head.size() < 12 ? 0 : std::stoi(head.substr(9, 3)); }
    bool HasField(std::string_view line) const {
      return head.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
    }
    nlohmann::json json() const { return nlohmann::json::parse(body); }
  };

  const Protocol& protocol() const { return *protocol_; }

  Answer Raw(std::string_view request, bool last = false) {
    OutBuffer out;
    Answer answer;
    door_.last = last;
    answer.step = protocol_->Serve(request, door_, out);
    const std::string_view all = out.view();
    const size_t end = all.find("\r\n\r\n");
    if (end == std::string_view::npos) return answer;
    answer.head = all.substr(0, end + 2);
    answer.body = all.substr(end + 4);
    return answer;
  }
  Answer Get(std::string_view target) {
    return Raw("GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  Answer Post(std::string_view target, std::string_view form) {
    return Raw("POST " + std::string(target) +
               " HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
               "Content-Length: " +
               std::to_string(form.size()) + "\r\n\r\n" + std::string(form));
  }

 private:
  IdDesk desk_;
  std::unique_ptr<Protocol> protocol_;
  DoorCall door_;
};

}  // namespace firn::front
