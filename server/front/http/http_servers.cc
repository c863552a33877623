#include <algorithm>

#include "common/base/cat.h"
#include "common/json/json.h"
#include "server/front/http/http_handlers.h"
#include "server/front/http/http_refusal.h"

namespace firn::front {
namespace {

// The list as JSON, without the fields that change with each answer and the closing brace.
std::string TextOf(const ListedServers& list) {
  Json entries = Json::array();
  for (const ListedServer& server : list.servers) {
    entries.push_back({{"address", server.address},
                       {"rack", server.rack},
                       {"weight", server.weight},
                       {"online", server.online},
                       {"state", PhaseName(server.phase)},
                       {"tls", server.tls}});
  }
  std::string text = JsonText(Json{{"cluster_uuid", list.cluster_uuid},
                                   {"application", list.application},
                                   {"version", list.version},
                                   {"servers", std::move(entries)}});
  text.pop_back();
  return text;
}

class ServersHandler final : public HttpHandler {
 public:
  explicit ServersHandler(const Backend& backend) : backend_(backend) {}

  Outcome Handle(const HttpRequest& request, DoorCall&, HttpAnswer& answer) override {
    if (request.path != "/v1/servers") return Outcome::kNotMine;
    if (request.verb == HttpVerb::kGet) {
      Tell(request, answer);
    } else {
      answer.SetNotAllowed("GET");
    }
    return Outcome::kAnswered;
  }

 private:
  void Tell(const HttpRequest& request, HttpAnswer& answer) {
    if (const Status known = request.TakesOnly({}); !known.ok()) return AnswerBad(known, answer);
    const ShownServers shown = backend_.view.servers();
    if (shown.list == nullptr) return AnswerRefusal(Backend::NoServersYet(), answer);
    answer.etag = Cat('"', shown.list->version, '"');
    if (MatchesEtag(request.if_none_match, answer.etag)) {
      answer.status = 304;
      return;
    }
    if (shown.list != text_of_) {
      text_ = TextOf(*shown.list);
      text_of_ = shown.list;
    }
    answer.content_type = HttpAnswer::kJson;
    answer.body = Cat(text_, ",\"age_ms\":", shown.age.count(),
                      ",\"ask_again_ms\":", backend_.ask_again().count(), "}");
  }

  const Backend& backend_;
  std::shared_ptr<const ListedServers> text_of_;
  std::string text_;
};

}  // namespace

std::unique_ptr<HttpHandler> MakeServersHandler(const Backend& backend) {
  return std::make_unique<ServersHandler>(backend);
}

}  // namespace firn::front
