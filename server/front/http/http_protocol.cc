#include "server/front/http/http_protocol.h"

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "common/base/cat.h"
#include "server/front/desk/trace_id.h"
#include "server/front/http/http_parser.h"
#include "server/front/http/http_progress.h"
#include "server/front/http/known_requests.h"

namespace firn::front {
namespace {

class HttpProtocol final : public Protocol {
 public:
  HttpProtocol(IdDesk* desk, std::vector<std::unique_ptr<HttpHandler>> handlers)
      : handlers_(std::move(handlers)) {
    if (desk != nullptr) known_.emplace(*desk);
  }

  ServeStep Serve(std::string_view in, DoorCall& door, OutBuffer& out) override {
    if (known_) {
      if (auto served = known_->Serve(in, out)) return *std::move(served);
    }
    const HttpParsed parsed = ParseHttp(in, chunks_, request_);
    switch (parsed.kind) {
      case HttpParsed::Kind::kNeedMore:
        if (request_.expects_continue) return ServeStep::NeedMoreAfterContinue(parsed.bytes);
        return ServeStep::NeedMore(parsed.bytes);
      case HttpParsed::Kind::kWhole:
        return ServeWhole(in.substr(0, parsed.bytes), door, out);
      case HttpParsed::Kind::kBad:
        return Refuse(400, CloseCause::kBadHttp, out, parsed.fault);
      case HttpParsed::Kind::kHeaderTooLarge:
        return Refuse(431, CloseCause::kHttpTooLarge, out);
      case HttpParsed::Kind::kBodyTooLarge:
        return Refuse(413, CloseCause::kHttpTooLarge, out);
    }
    return ServeStep::Close(CloseCause::kBadHttp);
  }

  bool MayBeWhole(std::string_view in, PartialRead& read) const override {
    return HttpMayBeWhole(in, read);
  }

  CloseCause TooLong(OutBuffer& out) override {
    request_ = {};  // it is of an earlier request, perhaps of another connection
    return Refuse(413, CloseCause::kHttpTooLarge, out).cause;
  }

  std::string_view go_on() const override { return "HTTP/1.1 100 Continue\r\n\r\n"; }

 private:
  ServeStep ServeWhole(std::string_view request, DoorCall& door, OutBuffer& out) {
    answer_.Clear();
    door.trace_id = TraceIdOf(request_.traceparent);
    const size_t before = out.size();
    if (const auto [handler, outcome] = Find(door); handler != nullptr) {
      ServeStep step = Park(*handler, outcome, {std::exchange(answer_, {}), ShapeOf(request_)});
      step.bytes = request.size();
      return step;
    }
    if (request_.options) AnswerOptions();
    ServeStep step = Answer(answer_, request_, door, out);
    step.bytes = request.size();
    if (answer_.id_of != nullptr && known_ && !request_.head && request_.keep_alive) {
      known_->Remember(request, out.view().substr(before), *answer_.id_of);
    }
    return step;
  }

  static ServeStep Answer(const HttpAnswer& answer, const HttpRequest& request, DoorCall& door,
                          OutBuffer& out) {
    door.trace_id.clear();
    AppendHttp(answer, request, out);
    return request.keep_alive ? ServeStep::Served(0) : ServeStep::Close(CloseCause::kPeer);
  }

  // The state from which a parked request is answered. The request's bytes no longer exist then.
  struct Pending {
    HttpAnswer answer;
    HttpRequest request;
  };
  static HttpRequest ShapeOf(const HttpRequest& request) {
    HttpRequest shape;
    shape.head = request.head;
    shape.keep_alive = request.keep_alive;
    shape.http_1_0 = request.http_1_0;
    return shape;
  }

  static bool IsPending(HttpHandler::Outcome outcome) {
    return outcome == HttpHandler::Outcome::kPark || outcome == HttpHandler::Outcome::kMore;
  }

  static ServeStep Park(HttpHandler& handler, HttpHandler::Outcome outcome, Pending pending) {
    HttpHandler::Parked parked = handler.TakeParked();
    const size_t memory = parked.memory + pending.answer.body.capacity();
    auto request = ParkedAs(
        [&handler, retry = std::move(parked.retry), pending = std::move(pending)](
            DoorCall& door, OutBuffer& out) mutable {
          auto next = HttpHandler::Outcome::kAnswered;
          Safely(pending.answer, [&] { next = retry(door, pending.answer); });
          if (IsPending(next)) return Park(handler, next, std::move(pending));
          return Answer(pending.answer, pending.request, door, out);
        },
        memory);
    if (outcome == HttpHandler::Outcome::kMore) return ServeStep::More(std::move(request));
    return ServeStep::Park(parked.again, std::move(request), parked.patience_ms, parked.waits_for);
  }

  // Runs `serve()`. If it throws, the answer is an error.
  template <typename Serve>
  static void Safely(HttpAnswer& answer, Serve serve) {
    try {
      serve();
    } catch (const std::exception& e) {
      answer.Clear();
      answer.SetText(500, Cat("a defect: ", e.what(), "\n"));
    }
  }

  // Finds the answer. If a handler parks the request, returns the handler and its outcome.
  std::pair<HttpHandler*, HttpHandler::Outcome> Find(DoorCall& door) {
    HttpHandler* found = nullptr;
    auto outcome = HttpHandler::Outcome::kNotMine;
    Safely(answer_, [&] {
      for (const auto& handler : handlers_) {
        outcome = handler->Handle(request_, door, answer_);
        if (IsPending(outcome)) found = handler.get();
        if (outcome != HttpHandler::Outcome::kNotMine) return;
      }
      answer_.SetText(404, "no such path\n");
    });
    return {found, outcome};
  }

  // The handler that refused the verb has listed the permitted ones. "*" is the whole server.
  void AnswerOptions() {
    constexpr std::string_view kAll = "GET, POST";
    if (request_.path == "*") answer_.allow = kAll;
    if (answer_.allow.empty()) return;
    answer_.status = 204;
    answer_.body.clear();
  }

  ServeStep Refuse(int status, CloseCause cause, OutBuffer& out, std::string_view fault = {}) {
    if (fault.empty()) fault = status == 400 ? "not a request that can be read" : "too large";
    answer_.Clear();
    answer_.SetText(status, Cat(fault, "\n"));
    request_.keep_alive = false;
    AppendHttp(answer_, request_, out);
    return ServeStep::Close(cause);
  }

  const std::vector<std::unique_ptr<HttpHandler>> handlers_;
  std::string chunks_;
  HttpRequest request_;
  HttpAnswer answer_;
  std::optional<KnownRequests> known_;
};

}  // namespace

std::unique_ptr<Protocol> MakeHttpProtocol(IdDesk* desk,
                                           std::vector<std::unique_ptr<HttpHandler>> handlers) {
  return std::make_unique<HttpProtocol>(desk, std::move(handlers));
}

}  // namespace firn::front
