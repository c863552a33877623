#include <cstdio>

#include "common/base/cat.h"
#include "common/id/explain.h"
#include "common/json/json_object.h"
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
    for (const char* const prefix : {kSegmentPath, kSnowflakePath}) {
      if (const auto key = Behind(prefix, request.path)) {
        return Get(request, *key, prefix == kSegmentPath, door, answer);
      }
    }
    if (request.path != "/decodeSnowflakeId") return Outcome::kNotMine;
    if (!WrongVerb(request, answer)) Decode(request, answer);
    return Outcome::kAnswered;
  }

 private:
  static constexpr const char* kSegmentPath = "/api/segment/get/";
  static constexpr const char* kSnowflakePath = "/api/snowflake/get/";

  // Leaf answers every error with 500.
  void No(const Refusal& refusal, HttpAnswer& answer) override {
    answer.SetText(500, refusal.message);
    answer.retry_after_ms = refusal.retry_after_ms;
  }

  Outcome Get(const HttpRequest& request, std::string_view key, bool segment, DoorCall& door,
              HttpAnswer& answer) {
    if (WrongVerb(request, answer)) return Outcome::kAnswered;
    const auto tag = DecodePathPart(key);
    if (!tag.ok()) return Bad(tag.status(), answer);
    // An empty key is an error, as in Leaf; it does not mean the default tag.
    if (key.empty()) return Bad(Invalid("the key is missing"), answer);
    return segment ? GetSegment(request, *tag, door, answer)
                   : AskPlain(request, *tag, door, answer);
  }

  // Refuses snowflake tags. In a cluster that serves undefined tags, a misspelt key would otherwise
  // get an 18-digit id, which overflows the columns for segment numbers.
  Outcome GetSegment(const HttpRequest& request, const std::string& tag, DoorCall& door,
                     HttpAnswer& answer) {
    if (IsSnowflake(tag)) return NoSegment(tag, answer);
    if (desk_.Resolve(tag) == nullptr) return AskSegment(request, tag, door, answer);
    return AskPlain(request, tag, door, answer);
  }

  // An unknown tag may prove to be a snowflake tag; its id is then dropped.
  Outcome AskSegment(const HttpRequest& request, const std::string& tag, DoorCall& door,
                     HttpAnswer& answer) {
    return Ask(request, tag, 1, Form::kNumbers, door, answer,
               [this, tag](const Runs& runs, HttpAnswer& to) {
                 if (IsSnowflake(tag)) {
                   NoSegment(tag, to);
                 } else {
                   AppendNumber(to.body, runs[0].first);
                 }
                 return Outcome::kAnswered;
               });
  }

  bool IsSnowflake(std::string_view tag) const {
    const Tag* const known = desk_.Resolve(tag);
    const Binding* const binding = known == nullptr ? nullptr : known->binding();
    return binding != nullptr && binding->strategy->name() == "snowflake";
  }

  Outcome NoSegment(std::string_view tag, HttpAnswer& answer) {
    desk_.Refuse({Reason::kUnknownTag, Cat("'", tag, "' is not a segment tag"), 0, false});
    No(desk_.call().refusal(), answer);
    return Outcome::kAnswered;
  }

  Result<Explanation> Read(const HttpRequest& request) const {
    FIRN_ASSIGN(const auto id, request.Number("snowflakeId"));
    if (!id) return Invalid("snowflakeId is missing");
    return Explain(*id, backend_.view.layout(), backend_.view.rack_split());
  }

  void Decode(const HttpRequest& request, HttpAnswer& answer) const {
    const auto read = Read(request);
    answer.content_type = HttpAnswer::kJson;
    JsonWriter json;
    if (read.ok()) {
      json.Text("timestamp", Cat(read->time.ms(), "(", DateText(read->time), ")"))
          .Text("workerId", Cat(read->fields.machine.value()))
          .Text("sequenceId", Cat(read->fields.sequence));
    } else {  // like Leaf: status 200, and the error in the body
      json.Text("errorMsg", read.status().message());
    }
    answer.body = json.Done();
  }
};

}  // namespace

std::unique_ptr<HttpHandler> MakeLeafHandler(const Backend& backend, IdDesk& desk) {
  return std::make_unique<LeafHandler>(backend, desk);
}

}  // namespace firn::front
