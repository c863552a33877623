#pragma once

#include <cstdint>
#include <memory>

#include "client/client_options.h"
#include "client/lease/lease_transport.h"
#include "common/base/status.h"

namespace firn::client {

// Sends a lessee's requests over connections of its own to the servers of a client.
//
//  1. A grant is asked of any server, but of `avoid` last. A server that refuses it is followed by
//     others, also one that grants no leases.
//  2. If the answer to a grant is lost, its repetition goes to the same server once, which then
//     grants the same lease. After that other servers are asked first: the lease that the first one
//     may have granted expires unused.
//     A server that answers that it is claiming a machine id gets the repetitions, too.
//  3. Renewals and releases go to the server that the terms name, if it is in the list, and
//     otherwise to the one that sent them. If a server answers that another one has the lease,
//     they go there, at most kHopsMax times. Servers outside the list get none: a lease's id is a
//     secret.
//  4. Each request has an outcome within kCallMax. A repetition before that changes nothing.
class LeaseSender final : public LeaseTransport {
 public:
  static constexpr Milliseconds kAttemptMax{2'000}, kCallMax{5'000};
  static constexpr int kHopsMax = 2;

  // With the servers and TLS of these options.
  explicit LeaseSender(ClientOptions options);

  // Ends the requests in progress; their outcome is kNoAnswer. Not in an outcome's Post.
  ~LeaseSender() override;
  LeaseSender(const LeaseSender&) = delete;
  LeaseSender& operator=(const LeaseSender&) = delete;

  // Returns what is wrong with the options.
  const Status& status() const;

  void Send(uint64_t number, const LeaseRequest& request,
            std::shared_ptr<LeaseOutcomes> outcomes) override;

 private:
  class Core;
  const std::shared_ptr<Core> core_;  // each request in progress owns it, too
};

}  // namespace firn::client
