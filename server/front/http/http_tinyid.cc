#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/json/json.h"
#include "server/front/http/http_asker.h"
#include "server/front/http/http_handlers.h"

namespace firn::front {
namespace {

constexpr int kTokenError = 5;
constexpr int kSystemError = 6;
constexpr std::string_view kTokenMessage = "token is error";

// Ids of a range, which a client keeps in memory: enough to save requests, few enough to lose.
constexpr int64_t kSegmentIds = 1000;
// A client fetches the next range when this part of one is used.
constexpr int64_t kLoadAtPercent = 20;

// A range in Tinyid's form. The client's ids are above `current`, at most `max`, and have the
// remainder `remainder` modulo `delta`.
struct Segment {
  int64_t current, loading, max, delta, remainder;
};

Segment ToSegment(const IdRun& run) {
  const int64_t before = run.first - run.stride;
  return {before, before + (run.last() - before) * kLoadAtPercent / 100, run.last(), run.stride,
          run.first % run.stride};
}

// The longest run. The ids of the others are lost: Tinyid cannot express gaps in a range.
const IdRun& Longest(const Runs& runs) {
  const auto all = runs.runs();
  return *std::max_element(all.begin(), all.end(),
                           [](const IdRun& a, const IdRun& b) { return a.count < b.count; });
}

void AppendFailure(int code, std::string_view message, std::string& out) {
  out = Cat("{\"data\":null,\"code\":", code, ",\"message\":");
  AppendJsonText(out, message);
  out += '}';
}

class TinyidHandler final : public HttpAsker {
 public:
  TinyidHandler(const Backend& backend, IdDesk& desk, TokenCheck tokens)
      : HttpAsker(backend, desk), tokens_(std::move(tokens)) {}

  Outcome Handle(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) override {
    std::string_view path = request.path;
    if (path.starts_with("/tinyid/")) path.remove_prefix(std::string_view("/tinyid").size());
    if (!path.starts_with("/id/")) return Outcome::kNotMine;
    std::string_view verb = path.substr(std::string_view("/id/").size());
    const bool simple = verb.ends_with("Simple");
    if (simple) verb.remove_suffix(std::string_view("Simple").size());
    const bool segment = verb == "nextSegmentId";
    if (!segment && verb != "nextId") return Outcome::kNotMine;
    if (WrongVerb(request, answer)) return Outcome::kAnswered;
    answer.content_type = simple ? HttpAnswer::kText : HttpAnswer::kJson;

    const auto parameters = ReadParameters(request, segment);
    if (!parameters.ok()) return Bad(parameters.status(), answer);
    if (!Allowed(*parameters)) return Fail(kTokenError, kTokenMessage, answer);
    return Ask(request, parameters.value_or({}).tag, parameters.value_or({}).count,
               segment ? Form::kRuns : Form::kNumbers, door, answer,
               [this, segment](const Runs& runs, HttpAnswer& to) {
                 return segment ? AnswerSegment(runs, to) : AnswerIds(to);
               });
  }

 private:
  struct Parameters {
    std::string tag, token;
    int64_t count = 1;
  };

  Result<Parameters> ReadParameters(const HttpRequest& request, bool segment) const {
    FIRN_ASSIGN(const auto tag, request.Parameter("bizType"));
    FIRN_ASSIGN(const auto token, request.Parameter("token"));
    FIRN_ASSIGN(const auto count, request.Number("batchSize"));
    if (!tag || tag->empty()) return Invalid("bizType is missing");
    const int64_t most = backend_.limits.list_ids_max;
    if (count.value_or(1) > most) {
      return Invalid(Cat("batchSize is ", count.value_or(1), "; the maximum is ", most));
    }
    return Parameters{*tag, token.value_or(""), segment ? kSegmentIds : count.value_or(1)};
  }

  bool Allowed(const Parameters& parameters) const {
    return !tokens_ || tokens_(parameters.token, parameters.tag);
  }

  // Tinyid answers errors with status 200: with a code in JSON, with an empty body in the simple
  // form.
  void No(const Refusal& refusal, HttpAnswer& answer) override {
    Fail(kSystemError, refusal.message, answer);
  }
  static Outcome Fail(int code, std::string_view message, HttpAnswer& answer) {
    answer.body.clear();
    if (!IsSimple(answer)) AppendFailure(code, message, answer.body);
    return Outcome::kAnswered;
  }

  static bool IsSimple(const HttpAnswer& answer) {
    return answer.content_type == HttpAnswer::kText;
  }

  static constexpr std::string_view kData = "{\"data\":";
  static constexpr std::string_view kEnd = ",\"code\":200,\"message\":\"\"}";
  static constexpr std::string_view kListEnd = "],\"code\":200,\"message\":\"\"}";

  static Outcome AnswerSegment(const Runs& runs, HttpAnswer& answer) {
    const bool simple = IsSimple(answer);
    if (!simple) answer.body += kData;
    WriteSegment(ToSegment(Longest(runs)), simple, answer.body);
    if (!simple) answer.body += kEnd;
    return Outcome::kAnswered;
  }

  Outcome AnswerIds(HttpAnswer& answer) {
    const bool simple = IsSimple(answer);
    if (!simple) answer.body += Cat(kData, '[');
    return Write(desk_.TakeWaiting(), {}, simple ? "" : kListEnd, answer,
                 [](int64_t id, std::string& out) {
                   if (!out.empty() && out.back() != '[') out += ',';
                   AppendNumber(out, id);
                 });
  }

  static void WriteSegment(const Segment& segment, bool simple, std::string& out) {
    const struct {
      const char* name;
      int64_t value;
    } kFields[] = {{"currentId", segment.current},
                   {"loadingId", segment.loading},
                   {"maxId", segment.max},
                   {"delta", segment.delta},
                   {"remainder", segment.remainder}};
    char before = '{';
    for (const auto& field : kFields) {
      if (simple) {
        if (before != '{') out += ',';
      } else {
        out += before;
        out += '"';
        out += field.name;
        out += "\":";
      }
      before = ',';
      AppendNumber(out, field.value);
    }
    if (!simple) out += '}';
  }

  const TokenCheck tokens_;
};

}  // namespace

std::unique_ptr<HttpHandler> MakeTinyidHandler(const Backend& backend, IdDesk& desk,
                                               TokenCheck tokens) {
  return std::make_unique<TinyidHandler>(backend, desk, std::move(tokens));
}

}  // namespace firn::front
