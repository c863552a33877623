#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/lease/lessee.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// A lessee with virtual clocks, which plays the steps of tests/contract/lessees.json and
// jumps.json.
class LeasePlayer {
 public:
  LeasePlayer(size_t servers, Milliseconds ahead);

  void Play(const std::string& step);

  // Lets the lessee send due requests, and answers the requests with a preset reply.
  void Turn();
  void Pass(Milliseconds time);
  void Answer(const std::string& word);
  Result<int64_t> TryNext();
  // Returns the requests since the last call.
  std::vector<std::string> TakeSent();

  VirtualClock& clock() { return clock_; }
  Lessee& lessee() { return lessee_; }
  LeasedIds& ids() { return ids_; }
  const std::vector<std::string>& losses() const { return losses_; }
  const std::vector<Status>& failures() const { return failures_; }

 private:
  using Words = std::vector<std::string>;
  using Keys = std::map<std::string, std::string>;

  // Records the requests, and checks that they contain the wall clock. Like a real transport, drops
  // a repetition of a request in progress.
  class Transport final : public LeaseTransport {
   public:
    explicit Transport(const Clock& clock) : clock_(clock) {}
    void Send(uint64_t number, const LeaseRequest& ask, std::shared_ptr<LeaseOutcomes>) override;
    void Drop() { asks_.pop_front(); }
    bool empty() const { return asks_.empty(); }
    const std::pair<uint64_t, LeaseRequest>& first() const { return asks_.front(); }

   private:
    const Clock& clock_;
    std::deque<std::pair<uint64_t, LeaseRequest>> asks_;
  };

  struct Seen {
    std::string text;
    BootMs at;
  };

  LeaseOptions Options(Milliseconds ahead);
  void Next(const Words& words);
  void CheckId(int64_t id, const std::string& expected, const std::string& after_wall);
  void Work(Milliseconds time);
  void ExpectSent(const Words& expected, bool in_order);
  void ExpectWaits(const std::string& kind, int64_t least, int64_t most);
  void Reveal();
  void Reply(const std::string& word);
  std::string Describe(const LeaseRequest& ask);
  void CheckUsed(const LeaseRequest& ask) const;
  std::string ServerOf(const LeaseRequest& ask) const;
  LeaseOutcome Outcome(const std::string& word, const LeaseRequest& ask);
  LeaseGrant Granted(const Keys& keys, const LeaseRequest& ask);
  LeaseGrant Renewed(const Keys& keys);
  std::string NameOf(std::map<std::string, std::string>& names, char kind,
                     const std::string& drawn) const;

  const Layout layout_ = Layout::Firn();
  const size_t servers_;
  VirtualClock clock_{At("2026-11-26T12:00:00Z")};
  const WallMs begin_ = clock_.Wall();
  SeededEntropy entropy_{7};
  bool woken_ = false;
  LeasedIds ids_{clock_, entropy_, /*use_cycles=*/false, [this] { woken_ = true; }};
  std::vector<std::string> losses_;
  std::vector<Status> failures_;
  const std::shared_ptr<Transport> transport_ = std::make_shared<Transport>(clock_);
  const Milliseconds ahead_;
  Lessee lessee_;

  std::map<std::string, std::string> replies_;  // by kind
  bool revealed_ = false;                       // the test has seen the first request
  std::vector<Seen> seen_;                      // since the last check
  std::map<std::string, std::string> tokens_, turns_;
  uint32_t machine_ = 6;  // machine id of the last grant
  LeaseGrant held_;       // the last usable grant
  std::map<std::string, LeaseGrant> leases_;
  std::map<std::string, Tick> used_;  // last used tick, by lease
  int64_t last_id_ = -1;
};

}  // namespace firn
