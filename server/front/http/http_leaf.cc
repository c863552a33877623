#include <cstdio>

#include "common/base/cat.h"
#include "common/id/explain.h"
#include "common/json/json.h"
#include "common/time/civil_time.h"
#include "server/front/http/http_asker.h"
#include "server/front/http/http_handlers.h"

namespace firn::front {
namespace {

// "2019-09-06 09:35:00.834", in UTC.
std::string DateText(WallMs time) {
  const CivilTime at = CivilAt(time);
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d.%03d",
                static_cast<int>(at.date.year()), static_cast<unsigned>(at.date.month()),
                static_cast<unsigned>(at.date.day()), at.hour, at.minute, at.second,
                at.millisecond);
  return text;
}

class LeafHandler final : public HttpAsker {
 public:
  using HttpAsker::HttpAsker;

  Outcome Handle(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) override {
    for (const char* const prefix : {"/api/segment/get/", "/api/snowflake/get/"}) {
      if (const auto key = Behind(prefix, request.path)) return Get(request, *key, door, answer);
    }
    if (request.path != "/decodeSnowflakeId") return Outcome::kNotMine;
    if (!WrongVerb(request, answer)) Decode(request, answer);
    return Outcome::kAnswered;
  }

 private:
  // Leaf answers every trouble with 500.
  void No(const Refusal& refusal, HttpAnswer& answer) override {
    answer.SetText(500, refusal.message);
    answer.retry_after_ms = refusal.retry_after_ms;
  }

  Outcome Get(const HttpRequest& request, std::string_view key, DoorCall& door,
              HttpAnswer& answer) {
    if (WrongVerb(request, answer)) return Outcome::kAnswered;
    const auto tag = DecodePathPart(key);
    if (!tag.ok()) return Bad(tag.status(), answer);
    // An absent key is not the default tag: whoever writes none has made a mistake.
    if (key.empty()) return Bad(Invalid("the key is missing"), answer);
    return AskPlain(request, *tag, door, answer);
  }

  Result<Explanation> Read(const HttpRequest& request) const {
    FIRN_ASSIGN(const auto id, request.Number("snowflakeId"));
    if (!id) return Invalid("snowflakeId is missing");
    return Explain(*id, backend_.view.layout(), backend_.view.rack_split());
  }

  void Decode(const HttpRequest& request, HttpAnswer& answer) const {
    const auto read = Read(request);
    answer.content_type = HttpAnswer::kJson;
    std::string& out = answer.body;
    if (!read.ok()) {
      // As Leaf does: status 200, and the trouble in the body.
      out = "{\"errorMsg\":";
      AppendJsonText(out, read.status().message());
      out += '}';
      return;
    }
    const Explanation& explained = *read;
    out = Cat("{\"timestamp\":\"", explained.time.ms(), "(", DateText(explained.time),
              ")\",\"workerId\":\"", explained.fields.machine.value(), "\",\"sequenceId\":\"",
              explained.fields.sequence, "\"}");
  }
};

}  // namespace

std::unique_ptr<HttpHandler> MakeLeafHandler(const Backend& backend, IdDesk& desk) {
  return std::make_unique<LeafHandler>(backend, desk);
}

}  // namespace firn::front
