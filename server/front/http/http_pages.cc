#include <algorithm>
#include <utility>

#include "server/front/http/admin_guard.h"
#include "server/front/http/embedded_pages.h"
#include "server/front/http/http_asker.h"
#include "server/front/http/http_handlers.h"
#include "server/front/http/http_refusal.h"

namespace firn::front {
namespace {

const EmbeddedFile* FileAt(std::string_view path) {
  const auto files = ConsoleFiles();
  const auto name = path == "/" ? "index.html" : Behind("/console/", path);
  const auto found = std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& file) {
    return name && file.name == *name;
  });
  return found == files.end() ? nullptr : &*found;
}

class ConsoleHandler final : public HttpHandler {
 public:
  ConsoleHandler(std::function<std::string()> history, std::vector<std::string> hosts)
      : history_(std::move(history)), guard_(std::move(hosts)) {}

  Outcome Handle(const HttpRequest& request, DoorCall&, HttpAnswer& answer) override {
    const EmbeddedFile* const file = FileAt(request.path);
    const bool history = history_ && request.path == "/v1/history";
    if (file == nullptr && !history) return Outcome::kNotMine;
    answer.for_admins = true;
    answer.no_store = true;
    if (guard_.Refuses(request, answer)) return Outcome::kAnswered;
    if (request.verb != HttpVerb::kGet) {
      answer.SetNotAllowed("GET");
    } else if (file != nullptr) {
      answer.content_type = file->content_type;
      answer.body = file->content;
    } else if (const Status known = request.TakesOnly({}); !known.ok()) {
      AnswerBad(known, answer);
    } else {
      answer.content_type = HttpAnswer::kJson;
      answer.body = history_() + "\n";
    }
    return Outcome::kAnswered;
  }

 private:
  const std::function<std::string()> history_;
  const AdminGuard guard_;
};

class OpenApiHandler final : public HttpHandler {
 public:
  Outcome Handle(const HttpRequest& request, DoorCall&, HttpAnswer& answer) override {
    if (request.path != "/v1/openapi.json") return Outcome::kNotMine;
    if (request.verb != HttpVerb::kGet) {
      answer.SetNotAllowed("GET");
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

std::unique_ptr<HttpHandler> MakeConsoleHandler(std::function<std::string()> history,
                                                std::vector<std::string> hosts) {
  return std::make_unique<ConsoleHandler>(std::move(history), std::move(hosts));
}

std::unique_ptr<HttpHandler> MakeOpenApiHandler() { return std::make_unique<OpenApiHandler>(); }

}  // namespace firn::front
