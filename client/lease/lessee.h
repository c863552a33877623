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

// Obtains a lease, extends it, and obtains the next one before it ends.
//
//  1. A grant is repeated with its token until a server answers, so a lost answer costs nothing.
//  2. Each renewal has a new random turn and is repeated with it until a server answers. It
//     contains the turn of the last answer, which a copy of this process does not know.
//  3. The lease is used until its end, even if renewals fail. Exception: kGone and kOutdated close
//     the generator's ids at once.
//  4. A lease that is ending is renewed, too: its server extends it up to a final bound. When a
//     third of the interval is left, or at once after kUnknown and kNotExtended, another lease is
//     requested. It replaces the first one, and its ids start in a later tick.
//  5. A replaced lease is released, unless its server does not know it. Its ids are closed before
//     the last used tick is read for the release. A granted lease that cannot be used is released,
//     too.
//  6. If several requests are due, the renewal is sent first, then the request for another lease,
//     then releases.
//  7. Waits between attempts are short compared to the interval, even if a server advises a longer
//     wait.
//  8. A server's terms confirm the wall clock that the request contained. After the wall clock has
//     jumped forward, no id is issued until terms confirm it, and a renewal is due at once.
//
// Owns no thread, never waits, and receives the time as an argument. Used by one thread. Does
// nothing in a child of fork().
class Lessee {
 public:
  // `ids` and `entropy` must outlive this. `entropy` must be unpredictable outside tests.
  Lessee(LeaseOptions options, LeasedIds& ids, Entropy& entropy,
         std::shared_ptr<LeaseTransport> transport, std::shared_ptr<LeaseOutcomes> replies);
  Lessee(const Lessee&) = delete;
  Lessee& operator=(const Lessee&) = delete;

  // Sends the requests that are due.
  void Tick(Now now);
  // Returns when Tick must be called next, at the latest.
  BootMs next_tick() const { return next_tick_; }

  // Processes the outcome of a request. Ignores it if the request already has an outcome.
  void OnReply(uint64_t number, const LeaseOutcome& reply, Now now);

  // Closes the ids permanently and releases the lease.
  void Stop(Now now);
  // Returns whether Stop was called and every release has an outcome or is useless.
  bool stopped() const { return stopping_ && releases_.empty(); }

 private:
  // A request that is repeated until it has an outcome.
  struct Request {
    uint64_t number;
    LeaseRequest ask;
    BootMs send_at;
    std::optional<WallMs> useless_at{};  // id clock: from then on it is not sent
    // The smallest difference between wall and boot clock among the attempts. An answer may belong
    // to any attempt, so it confirms only this difference.
    std::optional<Milliseconds> wall_from_boot{};
    std::unique_ptr<Backoff> backoff;
    bool under_way = false;     // waits for its outcome
    bool sent_in_jump = false;  // the last attempt was sent during a jump of the wall clock
  };

  struct Held {
    LeaseGrant terms;            // as in the last answer
    std::string acknowledged{};  // turn of that answer
    std::string turn{};          // the last one that the server may have accepted
    WallMs end{};                // end of the interval, in id clock time
    Milliseconds third{0};       // of the interval
    WallMs replace_at{};         // when a third of the interval is left, in id clock time
    BootMs renew_at{};
    BootMs answered_at{};
    bool renewable = true;
    bool known = true;     // whether its server knows it
    bool expired = false;  // its end was reported to on_lost
  };

  static constexpr size_t kReleasesMax = 4;
  static constexpr int kRetryPart = 12;  // of the interval
  static constexpr Milliseconds kRetryMaxLeast{100};
  static constexpr Milliseconds kRetryMin{1}, kRetryMax{60'000};  // limits of the options
  static constexpr Milliseconds kAdviceMax{10'000};
  static constexpr Milliseconds kTickMax{1'000};
  static constexpr Milliseconds kRenewMin{100};
  static constexpr Milliseconds kGrantPause{2'000};  // from a grant to the next request

  Request Make(LeaseRequest ask, Now now);
  // Returns the longest wait after a failure: a twelfth of the interval, but at least
  // kRetryMaxLeast, and at most `retry_max`.
  Milliseconds LongestWait() const;
  std::string Draw();
  void AskForGrant(Now now);
  void AskForMore(Now now);
  // After a jump of the wall clock, makes a request due whose answer confirms the clock: a renewal,
  // or a request that was sent before the jump. If it fails, its next attempt waits as usual.
  void Hurry(Now now);
  void SendIfDue(Request& request, Now now);

  void OnGrant(const LeaseOutcome& reply, Now now);
  void OnRenewal(const LeaseOutcome& reply, Now now);
  void Hold(const LeaseGrant& terms, Now now);
  // Releases a granted lease that cannot be used, and requests another one. `end`: the end of its
  // interval.
  void Reject(const LeaseGrant& terms, std::optional<WallMs> end, const Status& why, Now now);
  // Raises the id clock to the wall clock of this request, which a server has compared with its
  // own.
  void ConfirmClock(const Request& request, Now now);
  // Sets the times of the held lease after an answer.
  void Schedule(const LeaseGrant& terms, Now now);
  // Stops renewing the lease, because its server no longer extends it, and requests another one.
  void Abandon(const LeaseOutcome& reply, Now now);
  // Passes a failure to `on_failure`.
  void Report(const LeaseOutcome& reply);
  // Delays the next attempt of a request after a failure.
  void Retry(Request& request, const LeaseOutcome& reply, Now now);
  // Returns the server's advice, limited to a safe wait.
  Milliseconds Advised(const LeaseOutcome& reply);
  // Releases the held lease, whose ids are already closed.
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
  std::string last_server_{};  // server of the last lease held
  Milliseconds interval_;  // the last one that a server granted, at most `ahead`; initially `ahead`
  BootMs grant_not_before_;
  bool stopping_ = false;
  BootMs next_tick_;
};

}  // namespace firn
