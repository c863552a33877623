// Checks the server's codec against the frames of the wire contract.

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "tests/server/front/leases/thrift_leases_rig.h"
#include "tests/support/frames_json.h"
#include "tests/support/json_of.h"

namespace firn::front {
namespace {

using std::string_literals::operator""s;

// A call that reached the desk, with the arguments in the form of frames.json.
Json Told(const LeaseCall& call) {
  if (const auto* ask = std::get_if<LeaseAsk>(&call)) {
    Json told{
        {"token", ask->token}, {"name", ask->name}, {"clock_ms", std::to_string(ask->clock.ms())}};
    if (ask->ahead) told["ahead_ms"] = ask->ahead->count();
    if (ask->rack) told["rack"] = *ask->rack;
    return told;
  }
  if (const auto* renewal = std::get_if<LeaseRenewal>(&call)) {
    Json told{{"lease", renewal->lease},
              {"turn", renewal->turn},
              {"acknowledged", renewal->acknowledged},
              {"clock_ms", std::to_string(renewal->clock.ms())}};
    if (renewal->ahead) told["ahead_ms"] = renewal->ahead->count();
    return told;
  }
  const auto& end = std::get<LeaseEnd>(call);
  Json told{{"lease", end.lease}, {"turn", end.turn}};
  if (end.used) told["used_tick"] = std::to_string(end.used->count());
  return told;
}

LeaseGrant TermsOf(const Json& answer) {
  return {.lease = answer.at("lease").text(),
          .number = static_cast<uint64_t>(Long(answer, "number")),
          .server = answer.at("server").text(),
          .machine = MachineId(NumberOf<uint32_t>(answer.at("machine"))),
          .worker = NumberOf<uint32_t>(answer.at("worker")),
          .rack = NumberOf<uint32_t>(answer.at("rack")),
          .base_bits = static_cast<uint64_t>(Long(answer, "base_bits")),
          .sequence_from = static_cast<uint64_t>(Long(answer, "sequence_from")),
          .sequence_count = static_cast<uint64_t>(Long(answer, "sequence_count")),
          .from = Tick(Long(answer, "from_tick")),
          .until = Tick(Long(answer, "until_tick")),
          .renew_in = Milliseconds(NumberOf(answer.at("renew_in_ms"))),
          .ending = answer.at("ending").boolean()};
}

// The desk's reply that causes this answer.
LeaseReply ReplyOf(const Json& one) {
  if (one.contains("refusal")) {
    const Json& refusal = one.at("refusal");
    const bool later = refusal.at("reason") == static_cast<int>(wire::Reason::NOT_READY);
    return {.verdict = later ? LeaseVerdict::kLater : LeaseVerdict::kBadRequest,
            .message = refusal.at("message").text(),
            .retry_after = Milliseconds(NumberOf(refusal.at("retry_after_ms")))};
  }
  if (one.contains("lease_refusal")) {
    static const LeaseVerdict verdicts[] = {LeaseVerdict::kUnknown, LeaseVerdict::kOutdated,
                                            LeaseVerdict::kRevoked, LeaseVerdict::kElsewhere,
                                            LeaseVerdict::kRefused};
    const Json& refusal = one.at("lease_refusal");
    return {.verdict = verdicts[NumberOf<size_t>(refusal.at("fault")) - 1],
            .message = refusal.at("message").text(),
            .terms = {.server = refusal.at("server").text()}};
  }
  const Json& answer = one.at("answer");
  if (answer.empty()) return {.verdict = LeaseVerdict::kEnded};
  return {.verdict = LeaseVerdict::kGranted, .terms = TermsOf(answer)};
}

// Excludes frames of newer and older servers, and of a missing right.
bool IsOfThisServer(const Json& one) {
  const std::string& name = one.at("case").text();
  for (const char* word : {"absent", "newer", "older", "2^53", "nested", "skipped", "no right"}) {
    if (name.find(word) != std::string::npos) return false;
  }
  return one.contains("answer") || one.contains("refusal") || one.contains("lease_refusal");
}

class LeaseFramesTest : public ThriftLeasesTest {};
INSTANTIATE_TEST_SUITE_P(Binary, LeaseFramesTest, testing::Values(ThriftCoding::kBinary));

TEST_P(LeaseFramesTest, ReadsTheSharedRequests) {
  leases_.reply = kGrantedLease;
  ASSERT_GT(Frames().at("lease_requests").size(), 5u);
  for (const Json& one : Frames().at("lease_requests")) {
    SCOPED_TRACE(one.at("case"));
    leases_.calls.clear();
    out_.Clear();
    EXPECT_EQ(Serve(Bytes(one)).kind, Kind::kServed);
    ASSERT_EQ(leases_.calls.size(), 1u);
    EXPECT_EQ(Told(leases_.calls[0]), one.at("arguments"));
  }
}

TEST_P(LeaseFramesTest, RefusesARequestWithoutAClock) {
  // A struct without fields, which no generated code writes.
  const auto empty = [](const std::string& name) {
    const std::string head = "\x80\1\0\1\0\0\0"s + static_cast<char>(name.size()) + name;
    return ThriftCalls::WithLength(head + "\0\0\0\1\x0c\0\1\0\0"s);
  };
  EXPECT_EQ(RefusalOf(empty("lease")).message, "clock_ms is missing");
  out_.Clear();
  EXPECT_EQ(Serve(empty("renewLease")).kind, Kind::kServed);
  EXPECT_NE(out_.view().find("clock_ms is missing"), std::string_view::npos);
  EXPECT_TRUE(leases_.calls.empty());
}

TEST_P(LeaseFramesTest, WritesTheSharedAnswers) {
  std::map<std::string, std::string> requests;  // by method, with the sequence id 1
  for (const Json& one : Frames().at("lease_requests")) {
    std::string frame = Bytes(one);
    const std::string& method = one.at("method").text();
    frame.replace(12 + method.size(), 4, "\0\0\0\1"s);
    requests[method] = frame;
  }
  size_t checked = 0;
  for (const Json& one : Frames().at("lease_answers")) {
    if (!IsOfThisServer(one)) continue;
    SCOPED_TRACE(one.at("case"));
    leases_.reply = ReplyOf(one);
    out_.Clear();
    EXPECT_EQ(Serve(requests.at(one.at("method").text())).kind, Kind::kServed);
    EXPECT_EQ(out_.view(), Bytes(one));
    ++checked;
  }
  EXPECT_EQ(checked, 15u);
}

}  // namespace
}  // namespace firn::front
