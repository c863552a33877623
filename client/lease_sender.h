#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "client/call_report.h"
#include "client/engine.h"
#include "client/lease/lease_transport.h"
#include "common/base/status.h"

namespace firn::client {

// Sends a lessee's requests to the servers of a client, over its own connections and thread. Slow
// or refused requests change neither the client's view of the servers nor its counters.
//
//  1. A grant request goes to any server, and to `avoid` last. If a server refuses it, also because
//     it grants no leases, the request fails over to another server.
//  2. If the answer to a grant request is lost, the first retry goes to the same server only, which
//     then grants the same lease. Later retries try other servers first. The lease that the first
//     server may have granted then expires unused. If a server answers that it is claiming a
//     machine id, the next retry goes to that server, too.
//  3. Renewals and releases go to the server named in the terms, or, if that server is not in the
//     list, to the server that sent the terms. If a server answers that another one holds the
//     lease, the request is redirected there, at most kHopsMax times. Servers outside the list
//     receive no requests, because a lease's id is a secret.
//  4. Each request has an outcome within kCallMax. Sending it again before that has no effect.
class LeaseSender final : public LeaseTransport {
 public:
  static constexpr Milliseconds kAttemptMax{2'000}, kCallMax{5'000};
  static constexpr int kHopsMax = 2;
  static constexpr int kRefusingMax = 8;  // maximum servers that may refuse one grant request

  explicit LeaseSender(std::shared_ptr<Engine> engine);

  // Ends the requests in progress with kNoAnswer. Must not be called from Post of an outcome.
  ~LeaseSender() override;
  LeaseSender(const LeaseSender&) = delete;
  LeaseSender& operator=(const LeaseSender&) = delete;

  // Returns the engine's status, or why the thread could not start.
  const Status& status() const { return status_; }

  void Send(uint64_t number, const LeaseRequest& request,
            std::shared_ptr<LeaseOutcomes> outcomes) override;

 private:
  struct Exchange;
  using ExchangePtr = std::shared_ptr<Exchange>;

  void Start(const ExchangePtr& exchange);
  void OnEnd(const ExchangePtr& exchange, const Status& status, const Reply& reply);
  void Follow(const ExchangePtr& exchange, const std::string& server);
  LeaseOutcome FailureOf(const Exchange& exchange, const Status& status);
  void RememberLost(const std::string& token, const CallReport& report);
  void End(const Exchange& exchange, LeaseOutcome outcome);

  // Rule 2: a grant request without an answer, and the server that may have granted it.
  struct Lost {
    std::string token{};
    std::string server{};
    int times = 0;  // number of failed attempts
  };

  const std::shared_ptr<Engine> engine_;
  std::mutex mutex_;
  std::set<uint64_t> under_way_;  // this and the next member under mutex_
  Lost lost_;
  std::optional<Caller> caller_;  // its thread uses the members above
  Status status_;
};

}  // namespace firn::client
