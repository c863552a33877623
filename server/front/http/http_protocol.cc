#include "server/front/http/http_protocol.h"

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "common/base/cat.h"
#include "server/front/desk/status_cache.h"
#include "server/front/desk/trace_id.h"
#include "server/front/http/http_parser.h"
#include "server/front/http/http_progress.h"
#include "server/front/http/known_requests.h"
#include "server/issue/issue_call.h"

namespace firn::front {
namespace {

class HttpProtocol final : public Protocol {
 public:
  HttpProtocol(const Limits& limits, IdDesk* desk,
               std::vector<std::unique_ptr<HttpHandler>> handlers)
      : limits_(limits), handlers_(std::move(handlers)) {
    if (desk != nullptr) known_.emplace(*desk);
  }

  ServeStep Serve(std::string_view in, DoorCall& door, OutBuffer& out) override {
    if (known_) {
      if (const auto served = known_->Serve(in, door, out)) return *served;
    }
    const HttpParsed parsed = ParseHttp(in, limits_, chunks_, request_);
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
    request_ = {};  // the last one that was read is another's
    return Refuse(413, CloseCause::kHttpTooLarge, out).cause;
  }

  std::string_view go_on() const override { return "HTTP/1.1 100 Continue\r\n\r\n"; }

 private:
  ServeStep ServeWhole(std::string_view request, DoorCall& door, OutBuffer& out) {
    answer_.Clear();
    // A retry of a parked call stores the same bytes in the same place.
    door.trace_id = TraceIdOf(request_.traceparent);
    if (!Find(door)) return ServeStep::Park(AskAgainIn(door), answer_.patience_ms);
    door.trace_id.clear();
    const size_t before = out.size();
    if (request_.options) AnswerOptions();
    AppendHttp(answer_, request_, out);
    if (!request_.keep_alive) return ServeStep::Close(CloseCause::kPeer);
    if (answer_.id_of != nullptr && known_ && !request_.head) {
      known_->Remember(request, out.view().substr(before), *answer_.id_of);
    }
    return ServeStep::Served(request.size());
  }

  // A call without ids waits for the next status report.
  static std::chrono::microseconds AskAgainIn(const DoorCall& door) {
    return door.parked != nullptr ? door.parked->ask_again_in() : StatusCache::kAskAgain;
  }

  // False: the call is parked.
  bool Find(DoorCall& door) {
    try {
      for (const auto& handler : handlers_) {
        const auto outcome = handler->Handle(request_, door, answer_);
        if (outcome == HttpHandler::Outcome::kAnswered) return true;
        if (outcome == HttpHandler::Outcome::kPark) return false;
      }
      answer_.SetText(404, "no such path\n");
    } catch (const std::exception& e) {
      answer_.Clear();
      answer_.SetText(500, Cat("a defect: ", e.what(), "\n"));
    }
    return true;
  }

  // The handler that refused the verb has set the permitted ones. "*" is the server itself.
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

  const Limits& limits_;
  const std::vector<std::unique_ptr<HttpHandler>> handlers_;
  std::string chunks_;
  HttpRequest request_;
  HttpAnswer answer_;
  std::optional<KnownRequests> known_;
};

}  // namespace

std::unique_ptr<Protocol> MakeHttpProtocol(const Limits& limits, IdDesk* desk,
                                           std::vector<std::unique_ptr<HttpHandler>> handlers) {
  return std::make_unique<HttpProtocol>(limits, desk, std::move(handlers));
}

}  // namespace firn::front
