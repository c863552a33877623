#include <functional>
#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/id/text_form.h"
#include "common/json/json.h"
#include "server/front/desk/status_cache.h"
#include "server/front/http/admin_guard.h"
#include "server/front/http/http_asker.h"
#include "server/front/http/http_handlers.h"
#include "server/front/http/http_refusal.h"

namespace firn::front {
namespace {

// How long a request waits for the first reading, which usually takes milliseconds.
constexpr int64_t kPatienceMs = 2000;
constexpr int32_t kRetryAfterMs = 1000;

class ClusterHandler final : public HttpHandler {
 public:
  ClusterHandler(ClusterView& cluster, std::vector<std::string> hosts)
      : cluster_(cluster), guard_(std::move(hosts)) {}

  Outcome Handle(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) override {
    const auto id = Behind("/v1/who/", request.path);
    const Subject subject = SubjectOf(request.path);
    if (!id && subject == nullptr) return Outcome::kNotMine;
    answer.for_admins = true;
    if (guard_.Refuses(request, answer)) return Outcome::kAnswered;
    if (request.verb != HttpVerb::kGet) {
      answer.SetNotAllowed("GET");
      if (request.path == "/v1/tags") {
        answer.body = Cat("GET. Tags are created and changed in the registry, with `",
                          PrintCommand(PrintedCommand::kTags), "`; servers only read them\n");
      }
    } else if (const Status known = request.TakesOnly({}); !known.ok()) {
      AnswerBad(known, answer);
    } else if (id) {
      return TellWho(*id, door, answer);
    } else {
      return Tell([this, subject] { return (cluster_.*subject)(); }, door, answer);
    }
    return Outcome::kAnswered;
  }

 private:
  using Subject = ClusterReading (ClusterView::*)();

  static Subject SubjectOf(std::string_view path) {
    if (path == "/v1/audit") return &ClusterView::Audit;
    if (path == "/v1/tags") return &ClusterView::Tags;
    if (path == "/v1/consumers") return &ClusterView::Consumers;
    return nullptr;
  }

  Outcome TellWho(std::string_view text, DoorCall& door, HttpAnswer& answer) {
    const Result<int64_t> id = ParseId(Base::kDecimal, text);
    if (id.ok()) return Tell([this, number = *id] { return cluster_.Who(number); }, door, answer);
    AnswerBad(id.status(), answer);
    return Outcome::kAnswered;
  }

  Outcome Tell(std::function<ClusterReading()> read, DoorCall& door, HttpAnswer& answer) {
    const ClusterReading word = read();
    if (word.json == nullptr && word.trouble.ok() && !door.last) {
      return Park({.retry = [this, read = std::move(read)](
                                DoorCall& same, HttpAnswer& to) { return Tell(read, same, to); },
                   .again = StatusCache::kAskAgain,
                   .patience_ms = kPatienceMs});
    }
    Write(word, answer);
    return Outcome::kAnswered;
  }

  static void Write(const ClusterReading& word, HttpAnswer& answer) {
    answer.no_store = true;
    if (word.trouble.code() == Code::kInvalid) return AnswerBad(word.trouble, answer);
    if (word.json == nullptr) return TellNothing(word.trouble, answer);
    answer.content_type = HttpAnswer::kJson;
    answer.body.assign(*word.json, 0, word.json->size() - 1);  // without the closing brace
    answer.body += Cat(",\"age_ms\":", word.age.count());
    if (!word.trouble.ok()) {
      answer.body += ",\"trouble\":";
      AppendJsonText(answer.body, word.trouble.message());
    }
    answer.body += "}\n";
  }

  static void TellNothing(const Status& trouble, HttpAnswer& answer) {
    const std::string why =
        trouble.ok() ? "the cluster is being read; try again" : std::string(trouble.message());
    AnswerRefusal({Reason::kNotReady, why, kRetryAfterMs, false}, answer);
  }

  ClusterView& cluster_;
  const AdminGuard guard_;
};

}  // namespace

std::unique_ptr<HttpHandler> MakeClusterHandler(ClusterView& cluster,
                                                std::vector<std::string> hosts) {
  return std::make_unique<ClusterHandler>(cluster, std::move(hosts));
}

}  // namespace firn::front
