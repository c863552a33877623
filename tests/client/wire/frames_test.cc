// Checks the client's codec against the frames of the wire contract.

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "client/wire/wire_codec.h"
#include "common/json/json.h"
#include "tests/support/frames_json.h"
#include "tests/support/json_of.h"

namespace firn::client {
namespace {

using Method = Ask::Method;

constexpr const Layout& kLayout = Layout::Firn();  // of the terms in frames.json

LeaseRequest LeaseRequestOf(const Json& arguments) {
  LeaseRequest ask{.clock = WallMs(Long(arguments, "clock_ms")),
                   .token = arguments.at("token").text(),
                   .name = arguments.at("name").text(),
                   .lease = arguments.at("lease").text(),
                   .turn = arguments.at("turn").text(),
                   .acknowledged = arguments.at("acknowledged").text()};
  if (arguments.contains("rack")) ask.rack = NumberOf<uint32_t>(arguments.at("rack"));
  if (arguments.contains("ahead_ms")) ask.ahead = Milliseconds(NumberOf(arguments.at("ahead_ms")));
  if (arguments.contains("used_tick")) ask.used = Tick(Long(arguments, "used_tick"));
  return ask;
}

Ask AskOf(const Json& of) {
  static const std::map<std::string, Method> methods{{"getId", Method::kGetId},
                                                     {"getIds", Method::kGetIds},
                                                     {"getRuns", Method::kGetRuns},
                                                     {"getText", Method::kGetText},
                                                     {"status", Method::kStatus},
                                                     {"servers", Method::kServers},
                                                     {"lease", Method::kLease},
                                                     {"renewLease", Method::kRenewLease},
                                                     {"releaseLease", Method::kReleaseLease}};
  const Json& arguments = of.at("arguments");
  Ask ask{.method = methods.at(of.at("method").text()), .tag = arguments.at("tag").text()};
  if (ask.method >= Method::kLease) {
    ask.lease = std::make_shared<const LeaseRequest>(LeaseRequestOf(arguments));
    return ask;
  }
  ask.number = arguments.at("count").whole().value_or(0);
  if (ask.method == Method::kServers) ask.number = Long(arguments, "known_version");
  return ask;
}

Json Told(const ServerFacts& facts) {
  Json own = Json::array(), timed = Json::array();
  for (const std::string& tag : facts.own_numbers) own.push_back(tag);
  for (const std::string& tag : facts.timed) timed.push_back(tag);
  return {{"cluster_uuid", facts.cluster_uuid},
          {"layout", facts.layout},
          {"wall_ms", std::to_string(facts.wall.ms())},
          {"draining", facts.draining},
          {"own_numbers", own},
          {"timed", timed}};
}

// Returns the facts that a client keeps of a status in frames.json.
Json FactsOf(const Json& status) {
  constexpr int kDraining = 4;
  Json own = Json::array(), timed = Json::array();
  for (const Json& tag : status.at("tags")) {
    if (tag.at("strategy") != "snowflake") {
      own.push_back(tag.at("tag"));
    } else if (tag.at("as_issued").boolean()) {
      timed.push_back(tag.at("tag"));
    }
  }
  return {{"cluster_uuid", status.at("cluster_uuid")},
          {"layout", status.at("layout")},
          {"wall_ms", status.at("wall_ms")},
          {"draining", status.at("state") == kDraining},
          {"own_numbers", own},
          {"timed", timed}};
}

Json Told(const ToldServers& told) {
  Json servers = Json::array();
  for (const KnownServer& one : told.list ? told.list->servers : std::vector<KnownServer>()) {
    servers.push_back({{"address", one.address},
                       {"rack", one.rack},
                       {"weight", one.weight},
                       {"online", !one.disabled},
                       {"state", static_cast<int>(one.phase) + 1},
                       {"tls", one.tls}});
  }
  return {{"version", std::to_string(told.version)},
          {"ask_again_ms", told.ask_again.count()},
          {"servers", servers}};
}

// Checks the fields of an answer that the client keeps.
void CheckLease(const LeaseOutcome& outcome, const Json& answer) {
  const LeaseGrant& terms = outcome.terms;
  if (!answer.contains("lease")) {
    EXPECT_EQ(outcome.kind, LeaseOutcome::Kind::kReleased);
    return;
  }
  const bool usable = NumberOf(answer.at("tick_shift")) == kLayout.time().shift;
  EXPECT_EQ(outcome.kind, usable ? LeaseOutcome::Kind::kTerms : LeaseOutcome::Kind::kUnusable);
  EXPECT_EQ(terms.lease, answer.at("lease"));
  EXPECT_EQ(terms.server, answer.at("server"));
  EXPECT_EQ(terms.from, Tick(Long(answer, "from_tick")));
  if (!usable) return;
  EXPECT_EQ(terms.layout, kLayout);
  EXPECT_EQ(terms.machine.value(), answer.at("machine"));
  EXPECT_EQ(static_cast<int64_t>(terms.base_bits), Long(answer, "base_bits"));
  EXPECT_EQ(static_cast<int64_t>(terms.sequence_from), Long(answer, "sequence_from"));
  EXPECT_EQ(static_cast<int64_t>(terms.sequence_count), Long(answer, "sequence_count"));
  EXPECT_EQ(terms.until, Tick(Long(answer, "until_tick")));
  EXPECT_EQ(terms.renew_in.count(), answer.at("renew_in_ms"));
  EXPECT_EQ(terms.ending, answer.at("ending"));
}

// Returns the answer in the form of frames.json.
Json Told(const Reply& reply, Method method) {
  Json list = Json::array();
  switch (method) {
    case Method::kGetId:
      return std::to_string(reply.id);
    case Method::kGetIds:
      for (const int64_t id : reply.ids) list.push_back(std::to_string(id));
      return list;
    case Method::kGetRuns:
      for (const IdRun& run : reply.runs) {
        list.push_back(
            Json::array({std::to_string(run.first), run.count, std::to_string(run.stride)}));
      }
      return list;
    case Method::kGetText:
      return reply.text;
    case Method::kServers:
      return Told(*reply.told);
    default:
      return Told(*reply.facts);
  }
}

void CheckRefusal(const Outcome& outcome, const Json& refusal) {
  ASSERT_EQ(outcome.end, AttemptEnd::kRefused) << outcome.detail;
  EXPECT_EQ(static_cast<int>(*outcome.refusal) + 1, refusal.at("reason"));
  EXPECT_EQ(outcome.detail, refusal.at("message"));
  EXPECT_EQ(outcome.retry_after.count(), refusal.at("retry_after_ms"));
  EXPECT_EQ(outcome.another_may_help, refusal.at("another_server_may_help"));
}

void CheckLeaseRefusal(const Outcome& outcome, const Reply& reply, const Json& refusal) {
  ASSERT_TRUE(outcome.answered()) << outcome.detail;
  using Kind = LeaseOutcome::Kind;
  static constexpr std::array kKinds{Kind::kNotExtended, Kind::kUnknown,   Kind::kOutdated,
                                     Kind::kGone,        Kind::kElsewhere, Kind::kNotExtended};
  EXPECT_EQ(reply.lease->kind, kKinds.at(NumberOf<size_t>(refusal.at("fault"))));
  EXPECT_EQ(reply.lease->status.message(), refusal.at("message"));
  EXPECT_EQ(reply.lease->terms.server, refusal.at("server"));
}

void CheckAnswer(WireCodec& codec, const Json& one) {
  const std::string frame = Bytes(one);
  const std::optional<size_t> length = WireCodec::FrameLength(frame);
  const bool incomplete = length && (*length == 0 || *length > frame.size());
  ASSERT_EQ(incomplete, one.contains("incomplete"));
  if (incomplete) return;
  if (!length) {
    EXPECT_TRUE(one.contains("broken"));
    return;
  }
  ASSERT_EQ(*length, frame.size());
  const Ask ask = AskOf(one);
  Reply reply;
  const Outcome outcome =
      codec.ReadAnswer(frame, ask, NumberOf<int32_t>(one.at("sequence")), reply, &kLayout);
  EXPECT_EQ(outcome.lacks_method, one.contains("lacks_method"));
  if (one.contains("broken")) {
    EXPECT_EQ(outcome.end, AttemptEnd::kBroken) << outcome.detail;
  } else if (one.contains("refusal")) {
    CheckRefusal(outcome, one.at("refusal"));
  } else if (one.contains("lease_refusal")) {
    CheckLeaseRefusal(outcome, reply, one.at("lease_refusal"));
  } else if (one.contains("answer")) {
    const Json& answer = one.at("answer");
    ASSERT_TRUE(outcome.answered()) << outcome.detail;
    if (ask.lease != nullptr) return CheckLease(*reply.lease, answer);
    EXPECT_EQ(Told(reply, ask.method), ask.method == Method::kStatus ? FactsOf(answer) : answer);
  }
}

TEST(FramesTest, WritesTheSharedRequests) {
  WireCodec codec;
  for (const char* rows : {"requests", "lease_requests"}) {
    ASSERT_GT(Frames().at(rows).size(), 5u);
    for (const Json& one : Frames().at(rows)) {
      std::string frame;
      codec.AppendCall(AskOf(one), NumberOf<int32_t>(one.at("sequence")), frame);
      EXPECT_EQ(frame, Bytes(one)) << one.at("case");
    }
  }
}

// All frames use the same codec, because no frame may affect the next one.
TEST(FramesTest, ReadsTheSharedAnswers) {
  WireCodec codec;
  for (const char* rows : {"answers", "lease_answers"}) {
    ASSERT_GT(Frames().at(rows).size(), 40u);
    for (const Json& one : Frames().at(rows)) {
      SCOPED_TRACE(one.at("case"));
      CheckAnswer(codec, one);
    }
  }
}

TEST(FramesTest, NoCutOfAnAnswerAboutLeasesIsAnAnswer) {
  WireCodec codec;
  for (const Json& one : Frames().at("lease_answers")) {
    SCOPED_TRACE(one.at("case"));
    const std::string whole = Bytes(one);
    for (size_t size = WireCodec::kLengthBytes; size < whole.size(); ++size) {
      Reply reply;
      const Outcome outcome = codec.ReadAnswer(whole.substr(0, size), AskOf(one),
                                               NumberOf<int32_t>(one.at("sequence")), reply);
      EXPECT_FALSE(outcome.spoke()) << size;
      EXPECT_EQ(reply.lease, nullptr) << size;
    }
  }
}

}  // namespace
}  // namespace firn::client
