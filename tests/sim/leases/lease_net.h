#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/lease/lease_transport.h"
#include "tests/sim/leases/lease_host.h"
#include "tests/sim/leases/lease_shared.h"

namespace firn {

// The outcomes that have arrived at a program's machine.
class LeaseMailbox final : public LeaseOutcomes {
 public:
  void Post(uint64_t number, LeaseOutcome outcome) override {
    arrived_.emplace_back(number, std::move(outcome));
  }
  std::vector<std::pair<uint64_t, LeaseOutcome>> Take() { return std::exchange(arrived_, {}); }

 private:
  std::vector<std::pair<uint64_t, LeaseOutcome>> arrived_;
};

// The network between programs and servers, and the front of each server. It loses, delays and
// repeats requests and answers; some requests reach another server first. Injects the errors of
// mutants that concern answers.
class LeaseNet {
 public:
  using Hosts = std::vector<std::unique_ptr<LeaseHost>>;

  // Both must outlive it.
  LeaseNet(LeaseShared& shared, const Hosts& hosts) : shared_(shared), hosts_(hosts) {}

  void Send(const std::shared_ptr<LeaseMailbox>& from, uint64_t number, LeaseRequest ask);
  // Delivers all requests and answers that are due.
  void Round();
  // From now on, nothing is lost, repeated or delayed.
  void EndFaults() { has_faults_ = false; }

 private:
  struct Request {
    std::weak_ptr<LeaseMailbox> from;
    uint64_t number;
    LeaseRequest ask;
    std::string server;  // address; empty: any
    BootMs due;
  };
  struct Answer {
    std::weak_ptr<LeaseMailbox> to;
    uint64_t number;
    LeaseOutcome outcome;
    BootMs due;
  };

  Milliseconds Delay();
  std::string Destination(const LeaseRequest& ask);
  LeaseHost* HostAt(const std::string& address);
  void Deliver(const Request& request, LeaseHost& host);
  void Reply(const Request& request, const LeaseReply& reply);
  LeaseOutcome OutcomeOf(const Request& request, const LeaseReply& reply);
  void Damage(const Request& request, LeaseOutcome& outcome);

  LeaseShared& shared_;
  const Hosts& hosts_;
  bool has_faults_ = true;
  std::vector<Request> requests_;
  std::vector<Answer> answers_;
  std::map<std::string, LeaseGrant> promised_;   // by lease, from the last answer
  std::map<std::string, std::string> accepted_;  // turns by lease
};

}  // namespace firn
