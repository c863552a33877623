#pragma once

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/json/json.h"
#include "server/front/http/http_handlers.h"
#include "server/front/net/front_door.h"
#include "tests/server/front/form.h"
#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/raw_peer.h"
#include "tests/support/json_of.h"

namespace firn::front {

// The HTTP handlers of the public port.
inline std::unique_ptr<Protocol> MakeHttp(Issuing& issuing, IdDesk& desk, TokenCheck tokens = {},
                                          std::vector<std::string> hosts = {}) {
  std::vector<std::unique_ptr<HttpHandler>> handlers;
  handlers.push_back(MakePageGuardHandler(std::move(hosts)));
  handlers.push_back(MakeNativeHandler(issuing.backend, desk));
  handlers.push_back(MakeLeafHandler(issuing.backend, desk));
  handlers.push_back(MakeVestaHandler(issuing.backend, desk));
  handlers.push_back(MakeTinyidHandler(issuing.backend, desk, std::move(tokens)));
  handlers.push_back(MakeServersHandler(issuing.backend));
  return MakeHttpProtocol(&desk, std::move(handlers));
}

// HTTP over TLS, through a front door.
class HttpOverTls {
 public:
  HttpOverTls(std::unique_ptr<Protocol> http, const Limits& limits) {
    FrontDoorOptions options{.limits = limits};
    options.tls.emplace(TlsOfForm().cert, TlsOfForm().key);
    door_.emplace(options, SystemClock(), [&http] {
      ProtocolSet set;
      set.http = std::move(http);
      return set;
    });
    if (!door_->Start().ok()) Die("no door for HTTP over TLS");
  }

  // Returns the answer as received, and whether the connection stays open.
  std::string Ask(std::string_view request, bool& goes_on) {
    if (!peer_) peer_ = std::make_unique<RawPeer>(door_->port(), "127.0.0.1", TlsOfForm().client);
    peer_->Send(request);
    std::string answer;
    while (answer.find("\r\n\r\n") == std::string::npos) {
      const std::string more = peer_->Receive(1);
      if (more.empty()) break;
      answer += more;
    }
    const bool has_body = !request.starts_with("HEAD ");
    if (has_body) answer += peer_->Receive(BodySize(answer));
    goes_on = answer.find("\r\nConnection: close\r\n") == std::string::npos;
    if (!goes_on) peer_.reset();
    return answer;
  }

 private:
  static size_t BodySize(std::string_view head) {
    constexpr std::string_view kField = "\r\nContent-Length: ";
    const size_t at = head.find(kField);
    size_t size = 0;
    if (at == std::string_view::npos) return 0;
    std::from_chars(head.data() + at + kField.size(), head.data() + head.size(), size);
    return size;
  }

  std::optional<FrontDoor> door_;
  std::unique_ptr<RawPeer> peer_;
};

// The HTTP side of one IO thread. Uses sockets only in the form `tls`.
class HttpSide {
 public:
  explicit HttpSide(Issuing& issuing, TokenCheck tokens = {}, std::vector<std::string> hosts = {})
      : slow_(*issuing.slow),
        desk_(issuing.issuer, issuing.counters, Method::kHttp, "order"),
        protocol_(MakeHttp(issuing, desk_, std::move(tokens), std::move(hosts))) {
    if (ChosenForm() == Form::kTls) over_tls_.emplace(std::move(protocol_), issuing.limits);
  }

  struct Answer {
    ServeStep step{};
    std::string head, body;

    int status() const { return head.size() < 12 ? 0 : std::stoi(head.substr(9, 3)); }
    bool HasField(std::string_view line) const {
      return head.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
    }
    Json json() const { return JsonOf(body); }
  };

  Protocol& protocol() { return *protocol_; }

  Answer Raw(std::string_view request, bool last = false) {
    OutBuffer out;
    Answer answer;
    door_.last = last;
    if (over_tls_) {
      bool goes_on = true;
      out.Append(over_tls_->Ask(request, goes_on));
      answer.step =
          goes_on ? ServeStep::Served(request.size()) : ServeStep::Close(CloseCause::kPeer);
    } else {
      answer.step = ServeInForm(*protocol_, waiting_, request, door_, out, slow_.next);
    }
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
  ScriptedStrategy& slow_;
  IdDesk desk_;
  std::unique_ptr<Protocol> protocol_;  // null in the form `tls`, which uses a door
  std::optional<HttpOverTls> over_tls_;
  DoorCall door_;
  Waiting waiting_;
};

}  // namespace firn::front
