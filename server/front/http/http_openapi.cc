#include "server/front/http/embedded_pages.h"
#include "server/front/http/http_asker.h"
#include "server/front/http/http_handlers.h"
#include "server/front/http/http_refusal.h"

namespace firn::front {
namespace {

class OpenApiHandler final : public HttpHandler {
 public:
  Outcome Handle(const HttpRequest& request, DoorCall&, HttpAnswer& answer) override {
    if (request.path != "/v1/openapi.json") return Outcome::kNotMine;
    if (request.verb != HttpVerb::kGet) {
      answer.SetText(405, "GET\n");
      answer.allow = "GET";
    } else if (const Status known = request.TakesOnly({}); !known.ok()) {
      AnswerBad(known, answer);
    } else {
      answer.content_type = HttpAnswer::kJson;
      answer.body = OpenApiDocument();
    }
    return Outcome::kAnswered;
  }
};

}  // namespace

std::unique_ptr<HttpHandler> MakeOpenApiHandler() { return std::make_unique<OpenApiHandler>(); }

}  // namespace firn::front
