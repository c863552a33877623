#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "tests/server/front/leases/thrift_leases_rig.h"
#include "tests/support/temp_dir.h"

namespace firn::front {
namespace {

using Client = wire::IdServiceClient;

INSTANTIATE_TEST_SUITE_P(Codings, ThriftLeasesTest,
                         testing::Values(ThriftCoding::kBinary, ThriftCoding::kCompact),
                         [](const auto& coding) {
                           return coding.param == ThriftCoding::kBinary ? "Binary" : "Compact";
                         });

TEST_P(ThriftLeasesTest, ParksALeaseUntilItsAnswerComes) {
  const std::string frame = Lease();
  for (int i = 0; i < 3; ++i) {
    const ServeStep step = Serve(frame);
    EXPECT_EQ(step.kind, Kind::kPark);
    EXPECT_EQ(step.again_us, 5'000);
    EXPECT_EQ(step.patience_ms, 5'000);
    EXPECT_TRUE(out_.empty());
  }
  EXPECT_EQ(leases_.calls.size(), 1u) << "a retry must not be another request";
  leases_.Give(kGrantedLease);
  EXPECT_EQ(Serve(frame).kind, Kind::kServed);
  EXPECT_EQ(Terms(out_.view()).machine, 564);
}

TEST_P(ThriftLeasesTest, RefusesAParkedLeaseAtItsLastAttempt) {
  const std::string frame = Lease();
  EXPECT_EQ(Serve(frame).kind, Kind::kPark);
  EXPECT_EQ(Serve(frame, true).kind, Kind::kServed);
  try {
    Terms(out_.view());
    FAIL() << "no refusal";
  } catch (const wire::Refusal& refusal) {
    EXPECT_EQ(refusal.reason, wire::Reason::NOT_READY);
    EXPECT_EQ(refusal.message, "no answer yet; repeat the request");
    EXPECT_EQ(refusal.retry_after_ms, 200);
    EXPECT_TRUE(refusal.another_server_may_help);
  }
  leases_.Give(kGrantedLease);  // late
  EXPECT_GT(Call(calls_.GetId("order")).recv_getId(), 0);
  EXPECT_EQ(Serve(frame).kind, Kind::kPark) << "the next call is another one";
}

TEST_P(ThriftLeasesTest, ALateAnswerOutlivesTheConnection) {
  EXPECT_EQ(Serve(Lease()).kind, Kind::kPark);
  waiting_ = {};
  leases_.Give(kGrantedLease);
  leases_.reply = kGrantedLease;
  EXPECT_EQ(Serve(Lease()).kind, Kind::kServed);
  EXPECT_EQ(leases_.calls.size(), 2u);
}

TEST_P(ThriftLeasesTest, ThrowsTheExceptionOfEachVerdict) {
  leases_.reply = {.verdict = LeaseVerdict::kBadRequest, .message = "wrong"};
  EXPECT_EQ(RefusalOf(Lease()).reason, wire::Reason::BAD_REQUEST);
  leases_.reply = {
      .verdict = LeaseVerdict::kLater, .message = "later", .retry_after = Milliseconds(750)};
  const wire::Refusal later = RefusalOf(Lease());
  EXPECT_EQ(later.reason, wire::Reason::NOT_READY);
  EXPECT_EQ(later.retry_after_ms, 750);
  const std::map<LeaseVerdict, wire::LeaseFault::type> faults{
      {LeaseVerdict::kUnknown, wire::LeaseFault::UNKNOWN_LEASE},
      {LeaseVerdict::kOutdated, wire::LeaseFault::OUTDATED},
      {LeaseVerdict::kRevoked, wire::LeaseFault::REVOKED},
      {LeaseVerdict::kElsewhere, wire::LeaseFault::ANOTHER_SERVERS},
      {LeaseVerdict::kRefused, wire::LeaseFault::NO_LEASES}};
  for (const auto& [verdict, fault] : faults) {
    leases_.reply = {.verdict = verdict, .message = "why"};
    if (verdict == LeaseVerdict::kElsewhere) leases_.reply->terms.server = "10.0.0.8:7609";
    const wire::LeaseRefusal refusal = LeaseRefusalOf(Lease());
    EXPECT_EQ(refusal.fault, fault);
    EXPECT_EQ(refusal.message, "why");
    EXPECT_EQ(refusal.server, leases_.reply->terms.server);
    EXPECT_EQ(refusal.__isset.server, verdict == LeaseVerdict::kElsewhere);
  }
}

TEST_P(ThriftLeasesTest, RefusesInvalidRequestsBeforeTheDesk) {
  const auto expect_bad = [&](const std::string& frame, const std::string& words) {
    const wire::Refusal refusal = RefusalOf(frame);
    EXPECT_EQ(refusal.reason, wire::Reason::BAD_REQUEST);
    EXPECT_EQ(refusal.message, words);
  };
  const auto with = [&](auto change) {
    wire::LeaseAsk ask = Valid();
    change(ask);
    return Lease(ask);
  };
  expect_bad(with([](auto& ask) { ask.token.clear(); }), "token is missing");
  expect_bad(with([](auto& ask) { ask.name.clear(); }), "name is missing");
  expect_bad(with([](auto& ask) { ask.token.assign(33, 'a'); }), "token is longer than 32 bytes");
  expect_bad(with([](auto& ask) { ask.name.assign(65, 'a'); }), "name is longer than 64 bytes");
  expect_bad(with([](auto& ask) { ask.__set_rack(-1); }),
             "there is no such rack; omit it for the server's own");
  expect_bad(with([](auto& ask) { ask.__set_ahead_ms(-1); }), "ahead_ms is negative");
  expect_bad(with([](auto& ask) { ask.__set_ahead_ms(INT32_MAX); }), "ahead_ms is more than a day");
  for (const int64_t clock : {INT64_MIN, INT64_MAX}) {
    expect_bad(with([clock](auto& ask) { ask.__set_clock_ms(clock); }),
               "clock_ms is not a time of this calendar");
  }
  EXPECT_TRUE(leases_.calls.empty());
}

TEST_P(ThriftLeasesTest, RefusesInvalidRenewalsAndReleasesBeforeTheDesk) {
  const auto expect_bad = [&](const std::string& frame, auto receive, const std::string& words) {
    try {
      receive(Call(frame));
      FAIL() << "no refusal";
    } catch (const wire::Refusal& refusal) {
      EXPECT_EQ(refusal.reason, wire::Reason::BAD_REQUEST);
      EXPECT_EQ(refusal.message, words);
    }
  };
  const auto renewed = [](Client& client) {
    wire::LeaseTerms terms;
    client.recv_renewLease(terms);
  };
  const auto released = [](Client& client) { client.recv_releaseLease(); };
  wire::LeaseRenewal renewal;
  expect_bad(Renew(renewal), renewed, "lease is missing");
  renewal.__set_lease("secret");
  expect_bad(Renew(renewal), renewed, "turn is missing");
  renewal.__set_turn(std::string(33, 'a'));
  expect_bad(Renew(renewal), renewed, "turn is longer than 32 bytes");
  renewal.__set_turn("turn");
  renewal.__set_acknowledged(std::string(33, 'a'));
  expect_bad(Renew(renewal), renewed, "acknowledged is longer than 32 bytes");
  wire::LeaseEnd end;
  expect_bad(Release(end), released, "lease is missing");
  end.__set_lease(std::string(641, 'a'));
  expect_bad(Release(end), released, "lease is longer than 640 bytes");
  end.__set_lease("secret");
  for (const int64_t used : {INT64_MIN, int64_t{-2}, INT64_MAX}) {
    end.__set_used_tick(used);
    expect_bad(Release(end), released, "used_tick is not a tick");
  }
  EXPECT_TRUE(leases_.calls.empty());
  end.__set_used_tick(-1);
  leases_.reply = {.verdict = LeaseVerdict::kEnded};
  Call(Release(end)).recv_releaseLease();
  EXPECT_EQ(std::get<LeaseEnd>(leases_.calls.at(0)).used, Tick(-1));
}

TEST_P(ThriftLeasesTest, RequiresTheRightToLease) {
  const TempDir dir;
  std::ofstream(dir / "rights") << "shop.example order\nlessee.example @lease:20\n";
  TagRights rights(dir / "rights");
  ASSERT_TRUE(rights.Load().ok());
  Backend backend = issuing_.backend;
  backend.rights = &rights;
  protocol_ = MakeThriftProtocol(GetParam(), backend, issuing_.counters, &leases_);
  leases_.reply = kGrantedLease;
  for (const TagRights::Names& names : {TagRights::Names{}, TagRights::Names{"shop.example"}}) {
    door_.names = names;
    const wire::Refusal refusal = RefusalOf(Lease());
    EXPECT_EQ(refusal.reason, wire::Reason::REJECTED);
    EXPECT_NE(refusal.message.find("@lease"), std::string::npos);
    EXPECT_FALSE(refusal.another_server_may_help);
  }
  EXPECT_TRUE(leases_.calls.empty());
  door_.names = {"lessee.example"};
  EXPECT_EQ(Serve(Lease()).kind, Kind::kServed);
  ASSERT_EQ(leases_.calls.size(), 1u);
  const LeaseClient client = std::get<LeaseAsk>(leases_.calls.at(0)).client;
  EXPECT_EQ(client.name, "lessee.example");
  EXPECT_EQ(client.leases_max, 20u);
}

TEST_P(ThriftLeasesTest, AServerWithoutLeasesReportsThat) {
  protocol_ = MakeThriftProtocol(GetParam(), issuing_.backend, issuing_.counters);
  EXPECT_EQ(LeaseRefusalOf(Lease()).fault, wire::LeaseFault::NO_LEASES);
}

TEST_P(ThriftLeasesTest, ClosesOnATextBeyondTheLimitBeforeTheDesk) {
  wire::LeaseAsk ask = Valid();
  ask.name = std::string(1025, 'n');
  ExpectClosed(Lease(ask), CloseCause::kBadFrame);
  wire::LeaseRenewal renewal;
  renewal.__set_acknowledged(std::string(1025, 'a'));
  ExpectClosed(Renew(renewal), CloseCause::kBadFrame);
  EXPECT_TRUE(leases_.calls.empty());
}

TEST_P(ThriftLeasesTest, ClosesOnEveryLeaseThatEndsTooEarly) {
  const std::string frame = Lease();
  for (size_t n = 1; n + 4 < frame.size(); ++n) {
    EXPECT_EQ(Serve(ThriftCalls::WithLength(frame.substr(4, n))).kind, Kind::kClose) << n;
  }
  EXPECT_TRUE(leases_.calls.empty());
}

}  // namespace
}  // namespace firn::front
