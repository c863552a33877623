#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/time/clock.h"
#include "registry/seam/answers.h"
#include "registry/seam/coordinator.h"
#include "tests/support/registry/faults.h"

namespace firn {

// Injects faults into another coordinator, by a plan or by a script: for tests and simulations, and
// for a drill in which a program loses answers.
//
//  1. Requests reach the inner coordinator in the order of the calls, each not before its delay is
//     over; a late write is the exception.
//  2. Every request is answered once, when its own delay is over; answers may overtake each other.
//  3. A disconnection and the end of a session answer all waiting requests at once, kUnknown or
//     kUnavailable; requests that had not reached the inner coordinator never will, except late
//     writes.
//  4. While disconnected, the inner coordinator's events are held back: an expiry shows afterwards.
//  5. A late write is not applied if its session has ended meanwhile.
//
// Sessions are expired from outside, for example by MemoryTree::Expire. Without a plan and a script
// there are no faults. Threads: as any coordinator. Delays are measured on the given clock's boot
// time, so with a virtual clock time passes only when the test says so.
class FaultyCoordinator final : public Coordinator {
 public:
  static constexpr size_t kPendingMax = 4096;  // more are refused with kUnavailable

  // `clock` must outlive this.
  FaultyCoordinator(std::unique_ptr<Coordinator> inner, const Clock& clock, FaultPlan plan = {});

  // Sets the fate of the next request of this verb, in place of the plan's. Several apply in their
  // order.
  void Script(Verb verb, Fate fate);
  void SetPlan(FaultPlan plan) { plan_ = std::move(plan); }

  // Both do nothing if the state is already so.
  void Disconnect();
  void Reconnect();
  bool connected() const { return connected_; }

  // The client has died: nothing is delivered any more, but late writes are still applied in later
  // Dispatches.
  void Orphan();

  // Late writes never arrive: their servers have ended.
  void ForgetLate() { late_.clear(); }

  // When the next event is due; empty if nothing waits for time to pass.
  std::optional<BootMs> NextDue() const;

  Coordinator& inner() { return *inner_; }

  void Read(const std::string& path, ReadDone done, Changed changed = {}) override;
  void List(const std::string& path, ListDone done, Changed changed = {}) override;
  void Sync(const std::string& path, SyncDone done) override;
  void Multi(std::vector<Write> writes, WriteDone done) override;
  void PrepareRoot(SyncDone done) override;
  void OnSession(std::function<void(SessionEvent)> handler) override;
  int64_t session() const override { return inner_->session(); }
  int Dispatch(Milliseconds wait) override;
  void Wake() override;

 private:
  using Token = uint64_t;
  using News = std::variant<Changed, SessionEvent>;

  struct Call {
    Verb verb;
    std::string path{};
    std::vector<Write> writes{};
    bool watch = false;
    bool prepare = false;  // of a sync: it is PrepareRoot
  };

  // A request that has not been answered.
  struct Pending {
    Token token;
    AnyDone done;
    Fate fate;
    BootMs apply_at;
    BootMs answer_at;      // once `answer` is set, or when the request is lost
    bool lost = false;     // must be answered as lost
    bool refused = false;  // must be answered kUnavailable
    std::optional<Answer> answer{};
    bool changed = false;  // the notification came before the answer could be delivered
    bool ready() const { return lost || refused || answer.has_value(); }
  };
  struct Waiting {
    Token token;
    BootMs apply_at;
    Call call;
  };
  struct Late {
    BootMs apply_at;
    int64_t session;
    std::vector<Write> writes;
  };

  Fate Draw(Verb verb);
  void Submit(Call call, AnyDone done, Changed changed = {});
  void Apply(Token token, Call call);
  void ApplyDue();
  void OnAnswer(Token token, Answer answer);
  void OnNotice(Token token);
  void Notify(Token token);
  void OnInnerSession(SessionEvent event);
  void LosePending();
  void Announce(size_t news_before);
  Pending* Find(Token token);
  int DeliverDue();
  int DeliverNews(std::vector<News> news);
  static void Deliver(Pending& pending);
  void WaitDisconnected(Milliseconds wait);
  Milliseconds Until(std::optional<BootMs> due, Milliseconds wait) const;

  std::unique_ptr<Coordinator> inner_;
  const Clock& clock_;
  FaultPlan plan_;
  std::array<std::deque<Fate>, 4> script_;  // by verb
  std::function<void(SessionEvent)> on_session_;
  bool connected_ = true;
  bool announce_ = false;  // that the connection is back
  bool orphan_ = false;

  Token last_token_ = 0;
  BootMs last_apply_at_;
  std::vector<Pending> pending_;  // by token
  std::deque<Waiting> waiting_;   // for their delay, in order
  std::vector<Late> late_;
  std::map<Token, Changed> watches_;  // by the read that left it; the oldest is forgotten
  std::vector<News> news_;
  std::vector<Pending> due_;  // DeliverDue's, kept for its capacity

  std::mutex mutex_;  // guards the two below
  bool woken_ = false;
  std::condition_variable wake_;
};

}  // namespace firn
