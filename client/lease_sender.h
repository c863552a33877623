#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "client/client_options.h"
#include "client/engine.h"
#include "client/lease/lease_transport.h"
#include "client/wire/ask.h"
#include "common/base/status.h"

namespace firn::client {

// Sends a lessee's requests over connections of its own to the servers of a client.
//
//  1. A grant is asked of any server, but of `avoid` last. A server that refuses it is followed by
//     others, also one that grants no leases.
//  2. If the answer to a grant is lost, its repetition goes to the same server once, which then
//     grants the same lease. After that other servers are asked first: the lease that the first one
//     may have granted expires unused.
//  3. Renewals and releases go to the server that granted the lease. If it answers that another
//     server has it, they go there, provided that this server is in the list.
//  4. Each request has an outcome within kCallMax. A repetition before that changes nothing.
class LeaseSender final : public LeaseTransport {
 public:
  static constexpr Milliseconds kAttemptMax{2'000}, kCallMax{5'000};

  // With the servers and TLS of these options.
  explicit LeaseSender(ClientOptions options);

  // Returns what is wrong with the options.
  const Status& status() const { return engine_.status(); }

  void Send(uint64_t number, const LeaseRequest& request,
            std::shared_ptr<LeaseOutcomes> outcomes) override;

 private:
  struct Exchange;
  using ExchangePtr = std::shared_ptr<Exchange>;

  void Start(const ExchangePtr& exchange);
  void OnEnd(const ExchangePtr& exchange, const Status& status, const Reply& reply);
  void OnRefusal(const ExchangePtr& exchange, const LeaseRefusal& refusal);
  bool HasAnotherServer(Exchange& exchange) const;
  LeaseOutcome FailureOf(const Exchange& exchange, const Status& status);
  void RememberLost(const std::string& token, const CallReport& report);
  LeaseOutcome TermsOf(const Exchange& exchange, const LeaseTerms& terms) const;
  void End(const Exchange& exchange, LeaseOutcome outcome);
  bool Lists(const std::string& address) const;
  std::string LayoutText() const;

  // Rule 2: a grant without an answer, and the server that may have granted it.
  struct Lost {
    std::string token{};
    std::string server{};
    int times = 0;  // that it failed
  };

  std::mutex mutex_;
  std::set<uint64_t> under_way_;  // under mutex_, as the next
  Lost lost_;

  Engine engine_;  // last: its end ends the callbacks, which use the rest
};

}  // namespace firn::client
