#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/front/desk/backend.h"
#include "server/front/desk/id_desk.h"
#include "server/front/http/http_protocol.h"

namespace firn::front {

// Common parts of the handlers that request ids: they differ in how they parse a request and in the
// form of their answers.
class HttpAsker : public HttpHandler {
 public:
  HttpAsker(const Backend& backend, IdDesk& desk) : backend_(backend), desk_(desk) {}

 protected:
  // Requests ids, and returns `yes(runs, answer)` or No(refusal), perhaps only after parking, when
  // the request's bytes are gone. A HEAD takes no ids, because its answer could not carry them.
  template <typename Yes>
  Outcome Ask(const HttpRequest& request, std::string_view tag, int64_t count, Form form,
              DoorCall& door, HttpAnswer& answer, Yes yes) {
    if (request.head) return OnlyHead(tag, door, answer);
    return Finish(desk_.Ask(tag, count, form, door), answer, std::move(yes));
  }

  template <typename Yes>
  Outcome Finish(Verdict verdict, HttpAnswer& answer, Yes yes) {
    switch (verdict) {
      case Verdict::kWait: {
        WaitingIds call = desk_.TakeWaiting();
        const bool has_all_ids = call->has_all_ids();
        Parked parked{.again = call->ask_again_in(),
                      .waits_for = call->tag(),
                      .patience_ms = call->waits_at_most().count(),
                      .memory = call->memory()};
        parked.retry = [this, yes = std::move(yes), waiting = std::move(call)](
                           DoorCall& door, HttpAnswer& to) mutable {
          return Finish(desk_.Continue(std::move(waiting), door), to, std::move(yes));
        };
        return has_all_ids ? More(std::move(parked)) : Park(std::move(parked));
      }
      case Verdict::kRefused:
        No(desk_.call().refusal(), answer);
        break;
      case Verdict::kIssued:
        answer.no_store = true;
        return yes(desk_.call().runs(), answer);
    }
    return Outcome::kAnswered;
  }

  // Appends each id of a call by `append(id, answer)`, then `end`; in several turns if there are
  // many ids.
  template <typename Append>
  Outcome Write(WaitingIds call, RunsCursor at, std::string_view end, HttpAnswer& answer,
                Append append) {
    const auto one = [&](int64_t id) { append(id, answer.body); };
    if (at.ForNext(call->runs(), IdDesk::kIdsPerTurn, one)) {
      answer.body += end;
      desk_.GiveBack(std::move(call));
      return Outcome::kAnswered;
    }
    const size_t memory = call->memory();
    return More(
        {.retry =
             [this, own = std::move(call), at, end, append](DoorCall&, HttpAnswer& to) mutable {
               return Write(std::move(own), at, end, to, append);
             },
         .memory = memory});
  }

  // Requests one id. The body of the answer is the id only.
  Outcome AskPlain(const HttpRequest& request, std::string_view tag, DoorCall& door,
                   HttpAnswer& answer) {
    if (request.head) return OnlyHead(tag, door, answer);
    const Tag* const known = desk_.Resolve(tag);
    if (const auto id = desk_.One(known)) {
      answer.no_store = true;
      // Only if the tag itself is defined: other names may become tags later.
      if (known->name() == desk_.NameOf(tag)) answer.id_of = known;
      AppendNumber(answer.body, *id);
      return Outcome::kAnswered;
    }
    return Ask(request, tag, 1, Form::kNumbers, door, answer, [](const Runs& runs, HttpAnswer& to) {
      AppendNumber(to.body, runs[0].first);
      return Outcome::kAnswered;
    });
  }

  virtual void No(const Refusal& refusal, HttpAnswer& answer) = 0;

  Outcome Bad(const Status& status, HttpAnswer& answer) {
    desk_.Refuse({Reason::kBadRequest, status.message(), 0, false});
    No(desk_.call().refusal(), answer);
    return Outcome::kAnswered;
  }

  // Requests for ids must be GET or POST. Returns true if it has refused another verb.
  static bool WrongVerb(const HttpRequest& request, HttpAnswer& answer) {
    if (request.verb == HttpVerb::kGet || request.verb == HttpVerb::kPost) return false;
    answer.SetText(405, "GET or POST\n");
    answer.allow = "GET, POST";
    return true;
  }

  // Answers a HEAD: whether a GET would succeed now.
  Outcome OnlyHead(std::string_view tag, const DoorCall& door, HttpAnswer& answer) {
    answer.no_store = true;
    answer.has_length = false;
    auto refusal = desk_.WhyNotPermitted(tag, door);
    if (!refusal) refusal = backend_.issuer.WhyNot(desk_.NameOf(tag));
    if (refusal) No(*refusal, answer);
    return Outcome::kAnswered;
  }

  const Backend& backend_;
  IdDesk& desk_;
};

// The rest of a path after `prefix`, one or more parts. Nullopt if the path does not begin with it.
inline std::optional<std::string_view> Behind(std::string_view prefix, std::string_view path) {
  if (!path.starts_with(prefix)) return std::nullopt;
  return path.substr(prefix.size());
}

}  // namespace firn::front
