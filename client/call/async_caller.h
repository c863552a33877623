#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "client/call/async_call.h"
#include "client/call/due_queue.h"
#include "client/call/pipeline.h"
#include "client/call/upkeep.h"
#include "client/fleet/fleet.h"
#include "client/wire/tls_context.h"
#include "common/base/fork.h"
#include "common/time/clock.h"

namespace firn::client {

// Calls on their way, on an IO thread of their own: pipelined connections, time limits, hedges. A
// call that blocks is one of these whose caller sleeps.
//
// A turn is what happens between two waits for the kernel. Whatever calls a turn has put on a
// connection leave in one write at its end.
class AsyncCaller final {
 public:
  static constexpr size_t kCallsMax = 1 << 17;  // under way at a time; more are refused

  struct Options {
    CallPlan::Limits limits{};
    std::optional<Micros> hedge_after{};
    size_t connections = 2;  // per server
    bool upkeep = false;     // does what no call waits for as well
  };

  // Starts the IO thread.
  AsyncCaller(Fleet& fleet, TlsContext& tls, const Options& options, const Clock& clock,
              CloseOnFork& fds);
  ~AsyncCaller();

  // Ends every call that is under way with kUnavailable, then the thread. Calls that are started
  // from then on, in callbacks for instance, are dropped. Not on the IO thread.
  void Stop();

  // Any thread. `done` is called once, on the IO thread, never in here. `report` may be null.
  void Start(Ask ask, Micros deadline, CallReport* report, AsyncCall::Done done);

  // Runs `task` on the IO thread, in a turn. Any thread.
  void Post(std::function<void()> task);

  // Any thread: calls that wait for servers look again, and connections to servers that have left
  // the list are closed when the calls on them have ended.
  void OnNews();

  // --- told by its pipelines, on the IO thread, within a turn --------------------------------

  // The answer to a call, or why there is none. May send more on the pipeline, and close it.
  void OnEnded(const AsyncCallPtr& call, uint32_t number, Outcome outcome, Reply& reply);
  // There is something to flush when this turn ends.
  void FlushLater(Pipeline& pipeline);
  // It can be used no more. The last thing that it tells.
  void OnClosed(Pipeline& pipeline);
  void BeginTurn();
  void EndTurn();
  // When the turn began.
  Micros now() const { return now_; }

 private:
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        boost::asio::io_context::executor_type>;
  using Pipelines = std::vector<std::shared_ptr<Pipeline>>;
  struct Waiting {
    AsyncCallPtr call;
    uint32_t number;  // of its wait; another one, or 0, when this wait is over
  };

  // Tasks are posted by any thread; sockets and timers are touched by the IO thread alone.
  static constexpr int kOneThreadForIo = BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO;

  bool InTurn() const { return std::this_thread::get_id() == thread_.get_id() && turns_ > 0; }
  void TakeInbox();
  void ForgetWaits();
  void CloseUnlisted();
  // Takes the call's next step, when nothing of it is under way.
  void Advance(const AsyncCallPtr& call);
  // False: there is no connection, and none may be begun yet.
  bool Try(const AsyncCallPtr& call, const CallPlan::Step& step);
  void Wait(const AsyncCallPtr& call, const CallPlan::Step& step);
  void Finish(const AsyncCallPtr& call, Status status, Reply& reply);
  // Ends it, with `reply` or as the client itself ends, and whom it is asking is left.
  void Leave(const AsyncCallPtr& call, Status status, Reply& reply);
  // Null: there is none, and none may be begun yet.
  std::shared_ptr<Pipeline> PipelineTo(const ServerPtr& server, bool fresh);
  void LookAt(const ServerPtr& server, Pipeline::Checked checked);
  std::shared_ptr<Pipeline> OpenPipeline(const ServerPtr& server, Pipeline::Checked checked);
  void DoWhatIsDue();
  void OnDue(const DueQueue::Entry& entry);
  // Looks at it again when the connection has had an attempt's time, or the call is over.
  void Watch(const AsyncCallPtr& call, const AsyncCall::Asking& asking);
  void OnTimeout(const AsyncCallPtr& call, AsyncCall::Asking& asking);
  void GiveUp(const AsyncCallPtr& call);
  void OnLate(const AsyncCallPtr& call, const AsyncCall::Asking& asking, const Outcome& outcome,
              Reply& reply);
  void Hedge(const AsyncCallPtr& call, uint32_t number);
  void ArmTimer();
  void EndAll();

  Fleet& fleet_;
  TlsContext& tls_;
  const Options options_;
  const Clock& clock_;
  CloseOnFork& fds_;

  std::mutex mutex_;
  std::vector<AsyncCallPtr> inbox_;     // of other threads, under mutex_
  std::atomic<bool> has_mail_ = false;  // inbox_ is not empty; set under mutex_
  std::atomic<bool> has_news_ = false;  // that this thread has not heard yet
  std::atomic<size_t> calls_ = 0;       // under way
  std::atomic<bool> stopping_ = false;

  // The rest is the IO thread's.
  Micros now_{0};  // when the turn began
  int turns_ = 0;  // nested ones end with the outermost
  boost::asio::io_context io_{kOneThreadForIo};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Timer timer_;
  Micros armed_for_ = Micros::max();
  DueQueue due_;
  std::unordered_map<uint64_t, Pipelines> pipelines_;  // by the server's number
  Pipelines looks_;                                    // beside those
  std::vector<std::shared_ptr<Pipeline>> to_flush_, flushing_;
  std::vector<AsyncCallPtr> begun_, beginning_;  // by callbacks of this turn
  std::vector<Waiting> for_news_;  // at most twice as many as there are calls under way
  std::optional<Upkeep> upkeep_;
  std::thread thread_;  // last: everything it uses stands
};

}  // namespace firn::client
