#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/client_options.h"
#include "client/client_view.h"
#include "client/fleet/cluster_check.h"
#include "client/fleet/retry_budget.h"
#include "client/fleet/roster.h"
#include "client/fleet/server.h"
#include "client/fleet/tag_limits.h"
#include "client/wire/outcome.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "common/time/micros.h"
#include "common/time/thread_index.h"

namespace firn::client {

// The servers of one client: which there are, which one a call should ask now, and what all calls
// together may spend on retries. The source tells it lists (Apply). Whoever asks a server is given
// it here (Pick) and says afterwards what came of it (Done), from which it learns who is fit. The
// upkeep is told whom to look at in the background (TakeProbes, TakeUnresolved). It sends nothing
// itself: all of it can be played through with a virtual clock.
//
// Thread-safe. A call that goes well takes no lock: each thread picks from a roster that it keeps
// until there is a newer one, and counts by atomics. (Threads beyond kThreadIndexMax share a lock.)
// Hooks are called without locks.
//
// Sharp edge: a server that was picked, or borrowed, is reported exactly once, with Done, or with
// GiveBack when nobody asked it after all. One that is forgotten looks busy for ever.
//
//  1. The fittest are picked from, in the order of ServerFitness: fit; failing; resting, or unable
//     for this tag for now; disabled; draining. So a call is refused only when all was tried. Those
//     whose name is not looked up yet are not picked, nor those in quarantine, but for rule 6.
//  2. Among those the servers go first that the client keeps to (subset.h), unless fewer than
//     kFitMin of these are fit; then all are alike. Among those its own rack, when it has one.
//  3. A new list forgives quarantine and draining, and so does a look in the background (Fitness
//     has the table). A server that was started anew, as a list tells, is known no more: it rests
//     no longer, and warms up.
//  4. A server that refuses a call with DRAINING counts as draining, and its status is asked at
//     once: where that says otherwise, it is only the call's tag that it gives no more. Ids in
//     answer to a call end both: the server no longer drains, and issues ids of the tag.
//  5. Never more than half of the enabled servers rest or are in quarantine, strangers aside, which
//     are not of the cluster. One that would be more is failing.
//  6. While fewer than half of them are fit, those in quarantine are asked like those that rest.
//  7. A server's weight grows from a tenth to all of it, in ten steps, in its first kWarmUp.
//  8. What a server advises is kept at least as long, and up to half as long again, so that not all
//     come back at the same moment.
class Fleet {
 public:
  static constexpr Micros kWarmUp{10'000'000};
  static constexpr size_t kFitMin = 3;
  static constexpr Micros kNoAdvice{100'000};  // out for so long, when the server does not say

  Fleet(const ClientOptions& options, const Clock& clock, uint64_t seed);

  // Before the first list: `news` is called, without locks, when servers have come, come back or
  // left the list.
  void OnNews(std::function<void()> news) { news_ = std::move(news); }

  // A list from the source.
  void Apply(const ServerList& list);

  // A server for `tag` that is not among `tried`, or null. Whoever gets one reports with Done.
  ServerPtr Pick(std::string_view tag, std::span<const ServerPtr> tried, Micros now);

  // A picked server that is asked once more, and one that is not asked after all.
  void Borrow(Server& server) { server.in_flight.fetch_add(1, std::memory_order_relaxed); }
  void GiveBack(Server& server) { server.in_flight.fetch_sub(1, std::memory_order_relaxed); }

  // What became of asking `server`; `took` since it was picked.
  void Done(Server& server, std::string_view tag, const Outcome& outcome, Micros took, Micros now);

  // Whether a server may be asked for ids that was `asked` for its status and said `facts`:
  // kAnswered if so. kRefused, as NOT_READY, while it does not know its cluster; kWrongService,
  // with a sentence, when it is not of this one, or has no status; what it was asked came to,
  // otherwise.
  Outcome Admit(Outcome asked, const ServerFacts& facts);

  // A call begins; a retry wants to be sent.
  void CountCall() { calls_.fetch_add(1, std::memory_order_relaxed); }
  bool TakeRetry(Micros now);

  // Whether a call, whose attempt at `from` began at `began` and ended with the time-out of another
  // one on the same connection, may go on free of the retry budget: while another server answers,
  // and within one attempt limit in kMovesEvery. So one paused server does not spend the budget for
  // all calls that it held, and where all are slow next to nothing is added to their load.
  static constexpr int kMovesEvery = 10;
  bool MayMove(Server& from, Micros began, Micros now);

  // Servers that the maintainer should look at now: connect, ask for their status, and report with
  // Probed. Each is told once until then.
  std::vector<ServerPtr> TakeProbes(Micros now);
  void Probed(Server& server, const Outcome& outcome, const ServerFacts& facts, Micros now);

  // Servers whose names have to be looked up: each is told once every few seconds while it has no
  // address, or while those that it has lead nowhere good, and once a minute otherwise.
  std::vector<ServerPtr> TakeUnresolved(Micros now);
  // What the name of the server at `address`, as the list has it, stands for now. Nothing: what
  // was known of it stays.
  void Resolved(const std::string& address, const std::vector<Address>& found);

  // Where to connect, in the order in which to try; another one is the first each time.
  std::vector<Address> AddressesInTurn(Server& server);
  // What came of it: which address was reached, and which led nowhere. Where none was reached, no
  // connection is begun for a call for 10 ms, twice as long each time up to 100 ms.
  void Dialled(Server& server, const std::optional<Address>& reached,
               std::span<const Address> led_nowhere, Micros now);

  // Whether the source may ever tell another list.
  bool lists_change() const { return !fixed_.load(std::memory_order_relaxed); }

  ClusterView View() const;
  // Why there is nobody to ask, in a sentence, which the event hook is told as well.
  std::string TellNobodyToAsk() const;
  ClientCounters counters() const;
  // Up to `most`, by lot: how much longer than told one call waits than another.
  Micros Spread(Micros most);
  // Adds to one of the counters that only those who do the asking know.
  void Count(uint64_t ClientCounters::*counter, uint64_t n = 1);

 private:
  using Events = std::vector<ClientEvent>;

  // Where a thread keeps the roster that it picks from.
  struct alignas(64) Seat {
    std::shared_ptr<const Roster> roster;
    uint64_t version = 0;  // of the roster
    SeededEntropy entropy{0};
  };

  ServerPtr PickFrom(Seat& seat, std::string_view tag, std::span<const ServerPtr> tried,
                     Micros now);
  void Renew(Seat& seat, Micros now);
  std::shared_ptr<const Roster> MakeRoster(Micros now);
  // Puts one first that is there for good, and others as they are drawn.
  void SettleOnOne(std::vector<Roster::Entry>& entries);
  // Under the mutex: does what may change how `server` stands.
  template <typename What>
  void Change(Server& server, What what) {
    const auto stands = [&] { return std::pair(server.Standing(), server.fitness.strange()); };
    const auto before = stands();
    what();
    if (stands() != before) NewRoster();
    server.well.store(server.fitness.health.spotless() && !server.fitness.draining(),
                      std::memory_order_relaxed);
  }
  // Rosters that were made before are no longer good.
  void NewRoster() { version_.fetch_add(1, std::memory_order_release); }
  // For a call without a tag.
  ServerFitness FitnessOf(const Server& server, Micros now) const;
  // Rule 6. Counts the times that it becomes so.
  bool Panics();
  // Which servers the client keeps to.
  void Choose();
  // Rule 2: fewer of them are fit than it takes.
  bool Widened() const;
  // Another process answers at its address.
  static void BeginAnew(Server& server, Micros now);
  void Merge(const KnownServer& known, std::map<std::string, ServerPtr>& before, Micros now);
  void Heed(Server& server, std::string_view tag, const Outcome& outcome, Micros now, Events& told);
  void HeedRefusal(Server& server, std::string_view tag, const Outcome& outcome, Micros now,
                   Events& told);
  void Failed(Server& server, int times, const Outcome& outcome, Micros now, Events& told);
  // An ill one is asked no more, or last; for how long.
  Micros TakeOut(Server& server, Micros now);
  void Seen(Server& server, const ServerFacts& facts, Micros now, Events& told);
  void NotSeen(Server& server, const Outcome& outcome, Micros now, Events& told);
  void Quarantine(Server& server, const Outcome& outcome, Micros now, Events& told);
  void Drain(Server& server, std::string_view tag, Micros now, Events& told);
  void Revive(Server& server, bool drained, Events& told);
  // Rule 5, for one more.
  bool MayLeave(const Server& server) const;
  // Rule 8. Under the mutex, as the next.
  Micros AtLeast(Micros time) { return time + Drawn(time / 2); }
  Micros Drawn(Micros most);
  void LearnOwnNumbers(const ServerFacts& facts);
  std::string Lack() const;
  void TellNews();
  void Tell(const Events& told) const;

  const uint64_t name_;  // its own, by which it chooses servers
  const Balancing balancing_;
  const std::optional<uint32_t> rack_;
  const size_t servers_max_;
  const bool tls_;
  const Micros attempt_limit_;
  const EventHook on_event_;
  const Clock& clock_;
  std::function<void()> news_;
  std::atomic<uint64_t> calls_ = 0, attempts_ = 0;  // ClientCounters' of the same name

  mutable std::mutex mutex_;
  std::atomic<bool> fixed_ = false;  // written under mutex_
  bool from_cache_ = false;
  uint64_t next_number_ = 1;
  std::map<std::string, ServerPtr> servers_;   // by address
  std::shared_ptr<const TagSet> own_numbers_;  // tags that need no machine id
  bool panics_ = false;
  ClusterCheck check_;
  RetryBudget budget_;
  uint64_t calls_earned_for_ = 0;  // of calls_, those that budget_ was told of
  ClientCounters counters_;        // all but those above
  SeededEntropy entropy_;
  std::shared_ptr<const Roster> roster_;
  uint64_t roster_version_ = 0;  // of version_, when it was made
  uint64_t settled_on_ = 0;      // the number of a sticky client's server

  std::atomic<uint64_t> version_ = 1;  // written under mutex_
  alignas(64) std::atomic<uint64_t> turn_ = 0;
  std::array<Seat, kThreadIndexMax> seats_;  // each is its thread's alone
  std::mutex common_mutex_;
  Seat common_seat_;  // under common_mutex_
};

}  // namespace firn::client
