#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/lease/lease_options.h"
#include "client/lease/lease_request.h"
#include "client/lease/lease_transport.h"
#include "client/lease/leased_ids.h"
#include "common/base/status.h"
#include "common/base/units.h"
#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"

namespace firn {

// Obtains a lease, extends it, and obtains the next one in time.
//
//  1. A grant is repeated with its token until a server answers, so a lost answer costs nothing.
//  2. A renewal has a fresh turn, which is repeated until it is answered. It names the turn that
//  was
//     answered last: a copy of this process cannot name it.
//  3. The lease is used until its end, whatever servers answer, with one exception: at kGone and
//     kOutdated the generator is closed at once.
//  4. A lease that is ending is renewed, too: its server extends it up to a final bound. When a
//     third of the interval is left, or at once after kUnknown and kNotExtended, another lease is
//     requested. It replaces the first, and continues in a later tick.
//  5. A lease that was replaced is released, unless its server does not know it: first its ids are
//     closed, then the last tick is read. A granted lease that cannot be used is released, too.
//  6. If several requests are due, the renewal is sent first, then the request for another lease,
//     then releases.
//  7. Waits between attempts are short against the interval, whatever time a server advises.
//  8. Terms confirm the wall clock that was sent. After it has jumped forward, no id is issued
//  until
//     then, and a renewal is due at once.
//
// Reads no clock, owns no thread and never waits: Tick and OnReply receive the time. One thread. In
// a child of fork() it does nothing.
class Lessee {
 public:
  // `ids` and `entropy` must outlive this. `entropy` must be unpredictable outside tests.
  Lessee(LeaseOptions options, LeasedIds& ids, Entropy& entropy,
         std::shared_ptr<LeaseTransport> transport, std::shared_ptr<LeaseOutcomes> replies);
  Lessee(const Lessee&) = delete;
  Lessee& operator=(const Lessee&) = delete;

  // Sends what is due.
  void Tick(Now now);
  // Returns when Tick must be called next, at the latest.
  BootMs next_tick() const { return next_tick_; }

  // The outcome of a request. Ignored if the request has been answered already.
  void OnReply(uint64_t number, const LeaseOutcome& reply, Now now);

  // Closes the generator for good, and asks for the end of its lease.
  void Stop(Now now);
  // Returns whether nothing is left to be sent after Stop.
  bool stopped() const { return stopping_ && releases_.empty(); }

 private:
  // A request that is repeated until it has an outcome.
  struct Request {
    uint64_t number;
    LeaseRequest ask;
    BootMs send_at;
    std::optional<WallMs> useless_at{};  // id clock: it is not sent any more
    // Of the sendings, the least distance of the wall clock from the boot clock: what an answer
    // confirms. It may answer any of them.
    std::optional<Milliseconds> wall_from_boot{};
    std::unique_ptr<Backoff> backoff;
    bool under_way = false;     // its outcome is awaited
    bool sent_in_jump = false;  // of the wall clock, the last time
  };

  struct Held {
    LeaseGrant terms;            // as in the last answer
    std::string acknowledged{};  // turn of that answer
    std::string turn{};          // the last one sent, unless the server extends no leases
    WallMs end{};                // id clock: of the interval
    Milliseconds third{0};       // of the interval
    WallMs replace_at{};         // id clock: a third of the interval is left
    BootMs renew_at{};
    BootMs answered_at{};
    bool renewable = true;
    bool known = true;     // to its server
    bool expired = false;  // and reported
  };

  static constexpr size_t kReleasesMax = 4;
  static constexpr int kRetryPart = 12;  // of the interval
  static constexpr Milliseconds kRetryMaxLeast{100};
  static constexpr Milliseconds kRetryMin{1}, kRetryMax{60'000};  // whatever the options say
  static constexpr Milliseconds kAdviceMax{10'000};
  static constexpr Milliseconds kTickMax{1'000};
  static constexpr Milliseconds kRenewMin{100};
  static constexpr Milliseconds kGrantPause{2'000};  // between a lease and the request for another

  Request Make(LeaseRequest ask, Now now);
  // Returns the longest wait after a failure: a twelfth of the interval, but at least
  // kRetryMaxLeast, and at most `retry_max`.
  Milliseconds LongestWait() const;
  std::string Draw();
  void AskForGrant(Now now);
  void AskForMore(Now now);
  // After a jump of the wall clock, makes a request due whose answer confirms it: a renewal, or a
  // request that was sent before the jump. If that fails, too, it has the ordinary wait.
  void Hurry(Now now);
  void SendIfDue(Request& request, Now now);

  void OnGrant(const LeaseOutcome& reply, Now now);
  void OnRenewal(const LeaseOutcome& reply, Now now);
  void Hold(const LeaseGrant& terms, Now now);
  // Gives back a granted lease that cannot be used, and asks again. `end`: its interval's end.
  void Reject(const LeaseGrant& terms, std::optional<WallMs> end, const Status& why, Now now);
  // A server has compared the wall clock of this request with its own.
  void ConfirmClock(const Request& request, Now now);
  // Sets the times of the held lease after an answer.
  void Schedule(const LeaseGrant& terms, Now now);
  // The server extends the lease no further, for the reason in `reply`.
  void Abandon(const LeaseOutcome& reply, Now now);
  // Passes a failure to `on_failure`.
  void Report(const LeaseOutcome& reply);
  // Delays the next attempt of a request after a failure.
  void Retry(Request& request, const LeaseOutcome& reply, Now now);
  // Returns the part of a server's advice that is followed.
  Milliseconds Advised(const LeaseOutcome& reply);
  // Asks for the end of the lease whose ids were closed before.
  void Release(Now now);
  void AddRelease(LeaseRequest ask, WallMs useless_at, Now now);
  void Lose(LeaseLoss::Kind kind, const std::string& why);

  const LeaseOptions options_;
  LeasedIds& ids_;
  Entropy& entropy_;
  const std::shared_ptr<LeaseTransport> transport_;
  const std::shared_ptr<LeaseOutcomes> replies_;

  uint64_t numbers_ = 0;
  std::optional<Held> held_;
  std::optional<Request> grant_;
  std::optional<Request> renewal_;
  std::vector<Request> releases_;
  std::string last_server_{};  // of the lease held last
  Milliseconds interval_;      // that a server gave last, at most `ahead`; before that, `ahead`
  BootMs grant_not_before_;
  bool stopping_ = false;
  BootMs next_tick_;
};

}  // namespace firn
