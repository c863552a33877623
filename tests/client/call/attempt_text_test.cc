// Tests the error text of failed calls, for every cause and every form of a call.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/call/black_hole.h"
#include "tests/client/client_rig.h"
#include "tests/support/process.h"

namespace firn {
namespace {

using Kind = Behaviour::Kind;
using testing::ContainsRegex;

// The server's behaviour before the call that fails.
enum class Before { kAnswers, kAnswersThenCloses, kNothing };

struct Cause {
  const char* name;
  Behaviour behaviour;
  const char* said;  // a regular expression that follows the server's address
  Code code = Code::kUnavailable;
  Before before = Before::kAnswers;
};

Cause Refused(const char* name, Reason reason, const char* said, Code code = Code::kUnavailable) {
  return {name, {.kind = Kind::kRefuse, .reason = reason}, said, code};
}

// Returns causes in the answer to a request for ids.
std::vector<Cause> InAnswers() {
  return {
      {"Silent", {.kind = Kind::kSilent}, " did not answer after [0-9]+"},
      {"Drip", {.kind = Kind::kDrip, .delay = Milliseconds(100)}, " did not answer after [0-9]+"},
      {"Closed", {.kind = Kind::kClose}, " closed after [0-9.]+ ms$"},
      {"Reset", {.kind = Kind::kReset}, " closed after .*: .*Connection reset by peer$"},
      {"HalfAnAnswer",
       {.kind = Kind::kHalf},
       " closed after .* ms: after [1-9][0-9]* bytes of an answer$"},
      {"Garbage", {.kind = Kind::kGarbage}, " broke the protocol after .* ms: [A-Z]"},
      {"ZeroId", {.kind = Kind::kZeroIds}, " broke the protocol after .* ms: .*0"},
      {"FarTime", {.kind = Kind::kFarTime}, " broke the protocol after .* ms: .*"},
      {"OtherSequence",
       {.kind = Kind::kOtherSequence},
       " broke the protocol after .* ms: its answer belongs to another call$"},
      {"Empty", {.kind = Kind::kEmpty}, " broke the protocol after .* ms: the answer is empty$"},
      {"NoSuchMethod",
       {.kind = Kind::kNoMethod},
       " wrong service after .* ms: it says: Invalid method name: '[?]etId'$"},
  };
}

// Returns causes on the first connection, before a request for ids.
std::vector<Cause> InIntroductions() {
  return {
      {"Foreign",
       {.kind = Kind::kForeign},
       " wrong service after .* ms: it belongs to cluster .another cluster., not to .1111",
       Code::kUnavailable,
       Before::kAnswersThenCloses},
      {"OtherLayout",
       {.kind = Kind::kOtherLayout},
       " wrong service after .* ms: its layout is .twitter., but the cluster's is .firn.",
       Code::kUnavailable,
       Before::kAnswersThenCloses},
      {"Http",
       {.kind = Kind::kHttp},
       " wrong service after .* ms: its answer exceeds the maximum length$",
       Code::kUnavailable,
       Before::kNothing},
      {"StatusNoSuchMethod",
       {.kind = Kind::kNoMethod, .in_status = true},
       " wrong service after .* ms: it says: Invalid method name: '[?]tatus'$",
       Code::kUnavailable,
       Before::kNothing},
      {"StatusSilent",
       {.kind = Kind::kSilent, .in_status = true},
       " did not answer after [0-9]+",
       Code::kUnavailable,
       Before::kNothing},
      {"StatusClosed",
       {.kind = Kind::kClose, .in_status = true},
       " closed after [0-9.]+ ms: before it answered anything: it may require TLS$",
       Code::kUnavailable,
       Before::kNothing},
      {"StatusClosedAfterAnswersWithoutTls",
       {.kind = Kind::kClose, .in_status = true},
       " closed after [0-9.]+ ms$",
       Code::kUnavailable,
       Before::kAnswersThenCloses},
      {"StatusHalf",
       {.kind = Kind::kHalf, .in_status = true},
       " closed after .* ms: after [1-9][0-9]* bytes of an answer$",
       Code::kUnavailable,
       Before::kNothing},
      {"StatusGarbage",
       {.kind = Kind::kGarbage, .in_status = true},
       " wrong service after .* ms: [A-Z]",
       Code::kUnavailable,
       Before::kNothing},
      {"StatusRefused",
       {.kind = Kind::kRefuse, .reason = Reason::kRejected, .in_status = true},
       " wrong service after [0-9.]+ ms: as the test says$",
       Code::kUnavailable,
       Before::kNothing},
  };
}

std::vector<Cause> InRefusals() {
  return {
      {"Overloaded",  // for longer than the call's deadline
       {.kind = Kind::kRefuse, .reason = Reason::kOverloaded, .retry_after = Milliseconds(60'000)},
       " refused \\(OVERLOADED\\) after .* ms: as the test says$"},
      Refused("NotReady", Reason::kNotReady,
              " refused \\(NOT_READY\\) after .* ms: as the test says$"),
      Refused("Clock", Reason::kClock, " refused \\(CLOCK\\) after .* ms: as the test says$"),
      Refused("StoreDown", Reason::kStoreDown,
              " refused \\(STORE_DOWN\\) after .* ms: as the test says$"),
      Refused("Draining", Reason::kDraining,
              " refused \\(DRAINING\\) after .* ms: as the test says$"),
      {"InternalElsewhereWell",
       {.kind = Kind::kRefuse, .reason = Reason::kInternal, .another_may_help = true},
       " refused \\(INTERNAL\\) after .* ms: as the test says$",
       Code::kInternal},
  };
}

const std::vector<Cause>& Causes() {
  static const std::vector<Cause> causes = [] {
    std::vector<Cause> all = InAnswers();
    for (const Cause& cause : InIntroductions()) all.push_back(cause);
    for (const Cause& cause : InRefusals()) all.push_back(cause);
    return all;
  }();
  return causes;
}

class AttemptTextTest : public testing::TestWithParam<std::tuple<CallForm, size_t>> {
 protected:
  AttemptTextTest() { rig_.options.attempt_limit = kShortAttempt; }

  const Cause& cause() const { return Causes()[std::get<1>(GetParam())]; }

  void PlayWhatIsBefore() {
    if (cause().before == Before::kNothing) return;
    ASSERT_TRUE(Eventually(kPatience, [this] { return rig_.GetId().ok(); }));
    if (cause().before == Before::kAnswersThenCloses) rig_.server(0).CloseConnections();
  }

  ClientRig rig_{1, std::get<0>(GetParam())};
};

TEST_P(AttemptTextTest, ErrorNamesTheServerAndTheCause) {
  ASSERT_NO_FATAL_FAILURE(PlayWhatIsBefore());
  rig_.server(0).Behave(cause().behaviour);
  const Result<int64_t> id = rig_.GetId();
  EXPECT_EQ(id.code(), cause().code);
  EXPECT_THAT(id.status().message(), ContainsRegex(rig_.server(0).address() + cause().said));
  ASSERT_FALSE(rig_.report.attempts.empty());
  const std::string last = rig_.report.attempts.back().ToString();
  EXPECT_NE(id.status().message().find(last), std::string::npos) << "report and sentence differ";
}

std::vector<size_t> Indexes() {
  std::vector<size_t> indexes;
  for (size_t i = 0; i < Causes().size(); ++i) indexes.push_back(i);
  return indexes;
}

INSTANTIATE_TEST_SUITE_P(AllForms, AttemptTextTest,
                         testing::Combine(testing::Values(CallForm::kBlocking, CallForm::kAsync),
                                          testing::ValuesIn(Indexes())),
                         [](const auto& of) {
                           return NameOf(std::get<0>(of.param)) +
                                  Causes()[std::get<1>(of.param)].name;
                         });

// --- servers that are not fakes, and refusals without further attempts ---------------------------

class OneServerTest : public testing::TestWithParam<CallForm> {};

TEST_P(OneServerTest, ReportsThatTheServerIsUnreachable) {
  ClientRig rig(1, GetParam());
  rig.server(0).Down();
  EXPECT_THAT(rig.GetId().status().message(),
              ContainsRegex(rig.server(0).address() +
                            " unreachable after .* ms: connect: Connection refused$"));
}

TEST_P(OneServerTest, ReportsThatTheConnectionTimedOut) {
  BlackHole hole;
  ClientRig rig(1, GetParam());
  rig.options.attempt_limit = kShortAttempt;
  rig.options.servers = "list://" + hole.address();
  const Result<int64_t> id = rig.GetId();
  EXPECT_EQ(id.code(), Code::kUnavailable);
  EXPECT_THAT(id.status().message(),
              ContainsRegex(hole.address() + " connection timed out after [0-9.]+ ms$"));
}

TEST_P(OneServerTest, ReturnsTheServersMessageOfAFinalRefusal) {
  ClientRig rig(2, GetParam());
  for (FakeServer* server : rig.servers()) {
    server->Behave({.kind = Kind::kRefuse, .reason = Reason::kInternal});
  }
  EXPECT_EQ(rig.GetId().status(), Status(Code::kInternal, "as the test says"));
  EXPECT_EQ(rig.report.attempts.size(), 1u);
}

TEST_P(OneServerTest, FailsOverWhenOneServerReportsExhausted) {
  const auto ended =
      Behaviour{.kind = Kind::kRefuse, .reason = Reason::kExhausted, .another_may_help = true};
  ClientRig rig(2, GetParam());
  ASSERT_TRUE(rig.GetId().ok());
  rig.favourite().Behave(ended);
  EXPECT_TRUE(rig.GetId().ok());
  for (FakeServer* server : rig.servers()) server->Behave(ended);
  EXPECT_EQ(rig.GetId().code(), Code::kExhausted) << "when all say so";
}

INSTANTIATE_TEST_SUITE_P(AllForms, OneServerTest,
                         testing::Values(CallForm::kBlocking, CallForm::kAsync), FormName);

}  // namespace
}  // namespace firn
