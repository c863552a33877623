#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/client_options.h"
#include "client/client_view.h"
#include "client/fleet/cluster_check.h"
#include "client/fleet/retry_budget.h"
#include "client/fleet/roster.h"
#include "client/fleet/server.h"
#include "client/fleet/server_backoff.h"
#include "client/fleet/tag_limits.h"
#include "client/wire/outcome.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "common/time/micros.h"
#include "common/time/thread_index.h"

namespace firn::client {

// The servers of one client: their health, the server for the next attempt, and the retry budget of
// all calls. Its source supplies lists (Apply). A call gets a server from Pick and reports the
// outcome with Done, from which the fleet learns each server's health. The upkeep gets the servers
// to probe and to resolve (TakeProbes, TakeUnresolved). The fleet sends nothing itself, so tests
// run it with a virtual clock.
//
// Thread-safe. A successful call takes no lock: each thread picks from a cached roster until there
// is a newer one, and counts with atomics. (Threads beyond kThreadIndexMax share a lock.) Hooks are
// called without locks.
//
// A server that was picked or borrowed must be reported exactly once, with Done, or with GiveBack
// if no request was sent. Otherwise it appears busy permanently.
//
//  1. A pick takes the best standing, in the order of ServerHealth: healthy; failing; ejected, or
//     unable to serve this tag now; disabled; draining. A call is thus refused only after all were
//     tried. Servers without a resolved address are not picked, and quarantined ones by rule 6
//     only.
//  2. Within a standing, servers of the client's subset (subset.h) come first, unless fewer than
//     kHealthyMin of the subset are healthy. Within those, servers of the client's rack come first.
//  3. A new list ends quarantine and draining, and so can a probe (Membership has the table). If a
//     list shows that a server was restarted, its health and limits are reset: it is no longer
//     ejected, and it warms up.
//  4. A server that refuses a call with DRAINING counts as draining and is probed at once. If its
//     status says that it does not drain, only the call's tag is unavailable there. An answer with
//     ids ends both: the server no longer drains, and issues ids of the tag.
//  5. At most half of the enabled servers are ejected or quarantined, not counting foreign servers
//     (of another cluster). A server beyond that limit is failing instead.
//  6. While fewer than half of them are healthy, quarantined servers are used like ejected ones.
//  7. A server's weight grows from a tenth to all of it, in ten steps, in its first kWarmUp.
//  8. The client waits for the time that a server advises plus up to half of it, so that not all
//     clients return at the same time.
class Fleet {
 public:
  static constexpr Micros kWarmUp{10'000'000};
  static constexpr size_t kHealthyMin = 3;
  static constexpr Micros kNoAdvice{100'000};  // backoff if the server advises none

  // `news` is called, without locks, when servers were added, have recovered, or have left the
  // list; not before the first list.
  Fleet(const ClientOptions& options, const Clock& clock, uint64_t seed,
        std::function<void()> news = {});

  // Adopts a list from the source.
  void Apply(const ServerList& list);

  // Returns a server for `tag` that is not in `tried`, or null. The caller reports it with Done.
  ServerPtr Pick(std::string_view tag, std::span<const ServerPtr> tried, Micros now);

  // Returns the server listed as `address`, regardless of its health; null if it is in `tried`,
  // unresolved, or belongs to another cluster. The caller reports it with Done.
  ServerPtr PickOne(const std::string& address, std::span<const ServerPtr> tried);
  // Returns the listed ones of these servers.
  std::vector<ServerPtr> Find(std::span<const std::string> addresses);

  // Borrow counts one more request at a picked server; GiveBack uncounts a request that was not
  // sent.
  void Borrow(Server& server) { server.in_flight.fetch_add(1, std::memory_order_relaxed); }
  void GiveBack(Server& server) { server.in_flight.fetch_sub(1, std::memory_order_relaxed); }

  // Records the outcome of an attempt at `server`; `took` is the time since it was picked.
  void Done(Server& server, std::string_view tag, const Outcome& outcome, Micros took, Micros now);

  // Returns whether a server whose status request ended with `asked` and `facts` may get calls:
  // kAnswered if so; kRefused, as NOT_READY, while it does not know its cluster; kWrongService,
  // with the cause, if it belongs to another cluster or has no status; otherwise the outcome of the
  // status request.
  Outcome Admit(Outcome asked, const ServerFacts& facts);

  // Counts a call; takes a retry from the budget, if it has one.
  void CountCall() { calls_.fetch_add(1, std::memory_order_relaxed); }
  bool TakeRetry(Micros now);

  // Returns whether a call may retry without the retry budget, because its attempt at `from`, which
  // began at `began`, ended with the timeout of another one on the same connection. Permitted while
  // other servers answer, in one of kMovesEvery attempt limits. So a paused server does not use
  // up the budget for all calls that it held; and if all servers are slow, their load hardly grows.
  static constexpr int kMovesEvery = 10;
  bool MayMove(Server& from, Micros began, Micros now);

  // Returns the servers that the upkeep should probe now: connect, request their status, and report
  // with Probed. Each is returned once until it is reported.
  std::vector<ServerPtr> TakeProbes(Micros now);
  void Probed(Server& server, const Outcome& outcome, const ServerFacts& facts, Micros now);

  // Records that a connection was opened whose requests do not count. It ends no ejection: probes
  // and calls do.
  void Connected(Server& server);

  // Returns the servers whose names must be looked up: every few seconds if there is no address, or
  // none that accepts connections; otherwise once a minute.
  std::vector<ServerPtr> TakeUnresolved(Micros now);
  // Records the addresses of the server listed as `address`. If `found` is empty, the known
  // addresses stay.
  void Resolved(const std::string& address, const std::vector<Address>& found);

  // Returns the addresses to connect to, in order. Each call begins with a different one.
  std::vector<Address> AddressesInTurn(Server& server);
  // Records which address was reached, and which were not. If none was reached, calls open no
  // connection for 10 ms, doubling to 100 ms.
  void Dialled(Server& server, const std::optional<Address>& reached,
               std::span<const Address> led_nowhere, Micros now);

  // Returns whether the source may ever supply another list.
  bool lists_change() const { return !fixed_.load(std::memory_order_relaxed); }

  ClusterView View() const;
  // Returns why no server can be used, in a sentence, and passes it to the event hook.
  std::string ReportNoServer() const;
  // Tells the event hook that the tag's ids cannot be prefetched.
  void TellNotPrefetched(const std::string& tag, const Status& why) const;
  ClientCounters counters() const;
  // Returns a random time up to `most`, added to the time that a server advises.
  Micros Spread(Micros most);
  // Adds to a counter that only callers of the fleet can count.
  void Count(uint64_t ClientCounters::*counter, uint64_t n = 1);

 private:
  using Events = std::vector<ClientEvent>;

  // A thread's cached roster.
  struct alignas(64) Seat {
    std::shared_ptr<const Roster> roster;
    uint64_t version = 0;  // of the roster
    SeededEntropy entropy{0};
  };

  ServerPtr PickFrom(Seat& seat, std::string_view tag, std::span<const ServerPtr> tried,
                     Micros now);
  void Renew(Seat& seat, Micros now);
  std::shared_ptr<const Roster> MakeRoster(Micros now);
  // Runs `what` under the mutex, then reports its events. It may change the standing of `server`.
  template <typename What>
  void Change(Server& server, What what) {
    std::unique_lock lock(mutex_);
    const auto stands = [&] { return std::pair(server.Standing(), server.membership.foreign()); };
    const auto before = stands();
    what();
    if (stands() != before) NewRoster();
    server.well.store(server.health.spotless() && !server.membership.draining(),
                      std::memory_order_relaxed);
    const Events events = std::exchange(events_, {});
    lock.unlock();
    Tell(events);
  }
  // Invalidates all earlier rosters.
  void NewRoster() { version_.fetch_add(1, std::memory_order_release); }
  // Under the mutex: returns the number of servers for which `is` is true.
  template <typename Is>
  size_t CountIf(Is is) const {
    size_t count = 0;
    for (const auto& [address, server] : servers_) count += is(*server) ? 1U : 0U;
    return count;
  }
  // Returns whether rule 6 applies now. Counts how often it begins to apply.
  bool Panics();
  // Chooses the client's subset of the servers.
  void Choose();
  // Rule 2: fewer than kHealthyMin of the subset are healthy.
  bool Widened() const;
  // Discards the server's health and limits, because another process answers at its address.
  static void Reset(Server& server, Micros now);
  void Merge(const KnownServer& known, std::map<std::string, ServerPtr>& before, Micros now);
  // The following are parts of Change.
  void Heed(Server& server, std::string_view tag, const Outcome& outcome, Micros now);
  void HeedRefusal(Server& server, std::string_view tag, const Outcome& outcome, Micros now);
  void Failed(Server& server, int times, const Outcome& outcome, Micros now);
  // Ejects an unhealthy server, or makes it failing. Returns for how long.
  Micros TakeOut(Server& server, Micros now);
  void Seen(Server& server, const ServerFacts& facts, Micros now);
  void NotSeen(Server& server, const Outcome& outcome, Micros now);
  void Quarantine(Server& server, const Outcome& outcome, Micros now);
  void Drain(Server& server, std::string_view tag, Micros now);
  void Revive(Server& server, bool drained);
  void TellLater(ClientEvent::Kind kind, const Server& server, std::string text) {
    events_.push_back({kind, server.name, std::move(text)});
  }
  // Returns whether rule 5 permits to eject or quarantine this server, too.
  bool MayLeave(const Server& server) const;
  // Rule 8. Under the mutex.
  Micros AtLeast(Micros time) { return time + RandomUpTo(time / 2, entropy_); }
  void LearnOwnNumbers(const ServerFacts& facts);
  std::string Lack() const;
  void TellNews();
  void Tell(const Events& told) const;

  const uint64_t name_;  // the client's random name, which determines its subset
  const std::optional<uint32_t> rack_;
  const size_t servers_max_;
  const bool tls_;
  const Micros attempt_limit_;
  const EventHook on_event_;
  const Clock& clock_;
  const std::function<void()> news_;
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
  uint64_t calls_earned_for_ = 0;  // part of calls_ that budget_ has counted
  ClientCounters counters_;        // except calls_ and attempts_
  Events events_;                  // of the Change in progress
  SeededEntropy entropy_;
  std::shared_ptr<const Roster> roster_;
  uint64_t roster_version_ = 0;  // version_ when it was made

  std::atomic<uint64_t> version_ = 1;        // written under mutex_
  std::array<Seat, kThreadIndexMax> seats_;  // each is used by one thread only
  std::mutex common_mutex_;
  Seat common_seat_;  // under common_mutex_
};

}  // namespace firn::client
