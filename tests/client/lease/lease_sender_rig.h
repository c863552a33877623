#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "client/lease_sender.h"
#include "common/time/clock.h"
#include "tests/client/fake_server.h"
#include "tests/client/lease/awaited_outcomes.h"

namespace firn {

inline const std::string kLeaseToken = "0123456789abcdef0123456789abcdef", kThisTurn(32, 'a'),
                         kLastTurn(32, 'b');

// Fake servers, and the requests of one lessee to them.
class LeaseSenderTest : public testing::Test {
 protected:
  using LeaseAnswer = FakeLeases::Answer;
  using Got = LeaseOutcome::Kind;

  LeaseSenderTest() : LeaseSenderTest(3) {}
  explicit LeaseSenderTest(size_t servers) {
    for (size_t i = 0; i < servers; ++i) {
      servers_.push_back(std::make_unique<FakeServer>());
      servers_[i]->BehaveAboutLeases({.machine = static_cast<int>(i) + 1});
    }
  }

  ClientOptions options() const {
    std::vector<FakeServer*> all;
    for (const auto& server : servers_) all.push_back(server.get());
    return {.servers = ListOf(all), .tls = FakeServer::Tls()};
  }
  // The sender of a client that is destroyed already.
  client::LeaseSender& sender() {
    if (sender_ == nullptr) {
      Share(options());
      engine_->Close();
    }
    return *sender_;
  }
  void Share(const ClientOptions& options) {
    engine_ = client::Engine::Open(options)->shared_from_this();
    sender_ = std::make_unique<client::LeaseSender>(engine_);
  }

  LeaseOutcome Ask(const LeaseRequest& request) {
    sender().Send(++number_, request, outcomes_);
    return outcomes_->Await(number_);
  }
  static LeaseRequest Grant() {
    return {.kind = LeaseRequest::Kind::kGrant,
            .clock = SystemClock().Wall(),
            .token = kLeaseToken,
            .name = "shop",
            .ahead = Milliseconds(60'000)};
  }
  static LeaseRequest Renewal(const std::string& server) {
    return {.kind = LeaseRequest::Kind::kRenew,
            .clock = SystemClock().Wall(),
            .ahead = Milliseconds(60'000),
            .lease = "L",
            .server = server,
            .turn = kThisTurn,
            .acknowledged = kLastTurn};
  }
  // Sets the answer of all servers but one.
  void AllBut(size_t one, LeaseAnswer answer) {
    for (size_t i = 0; i < servers_.size(); ++i) {
      if (i != one) servers_[i]->BehaveAboutLeases({.answer = answer});
    }
  }
  std::vector<std::string> AllRequests() const {
    std::vector<std::string> all;
    for (const auto& server : servers_) {
      for (const std::string& request : server->LeaseRequests()) all.push_back(request);
    }
    return all;
  }
  // Returns the index of the only server that has received a request.
  size_t Asked() const {
    size_t asked = servers_.size();
    for (size_t i = 0; i < servers_.size(); ++i) {
      if (servers_[i]->LeaseRequests().empty()) continue;
      EXPECT_EQ(asked, servers_.size()) << "more than one server was asked";
      asked = i;
    }
    EXPECT_LT(asked, servers_.size()) << "no server was asked";
    return asked;
  }

  std::vector<std::unique_ptr<FakeServer>> servers_;
  std::shared_ptr<client::Engine> engine_;
  std::unique_ptr<client::LeaseSender> sender_;
  const std::shared_ptr<AwaitedOutcomes> outcomes_ = std::make_shared<AwaitedOutcomes>();
  uint64_t number_ = 0;
};

}  // namespace firn
