#pragma once

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/intrusive/set.hpp>

#include "client/call/bells.h"
#include "common/task/task.h"
#include "common/time/clock.h"
#include "common/time/micros.h"

namespace firn::client {

// A task of a JobQueue, with the time or event for which it waits.
class Job {
 public:
  virtual ~Job() = default;

  // Creates the task.
  virtual Task<> Run() = 0;
  // Called once, after the task has ended, outside of all tasks.
  virtual void AfterEnd() = 0;

 private:
  friend class JobQueue;

  Task<> task_;
  std::coroutine_handle<> waiting_;  // null: it is not waiting
  Micros until_{0};
  boost::intrusive::set_member_hook<> timer_;  // in the queue's timers, while it waits
  size_t place_ = 0;                           // in the queue's jobs
  bool ready_ = false;
};

using JobPtr = std::shared_ptr<Job>;

// Runs jobs. Each waits for a time, or for an event that marks it ready; the next Tick then resumes
// it. Memory and time do not grow with the number of waits. Owned by one thread.
class JobQueue final : public Trampoline {
 public:
  ~JobQueue();

  // Starts a job and runs it up to its first wait. Must not be called inside a job.
  void Add(JobPtr job);

  // Resumes ready jobs in the order of their events, then jobs whose time is at or before `due`,
  // until none is left.
  void Tick(Micros now, Micros due);
  void Tick(Micros now) { Tick(now, now); }
  // The time of the last Tick, or the one set later by SetNow.
  Micros now() const { return now_; }
  void SetNow(Micros now) { now_ = now; }

  // Records that the thread ran nothing else for `length`, up to `end`.
  void SawBlocked(Micros length, Micros end) {
    blocked_ = length;
    blocked_end_ = end;
  }
  // Returns how long the thread was last blocked, if that ended after `began`; otherwise 0.
  Micros BlockedSince(Micros began) const { return blocked_end_ > began ? blocked_ : Micros(0); }

  // Makes the next Tick resume the job.
  void MarkReady(Job& job);
  // For awaiters: suspends the job, whose coroutine is `task`, until `until`.
  void Suspend(Job& job, std::coroutine_handle<> task, Micros until);

  // Moves the jobs that have ended since the last call to `ended`, which must be empty. Call after
  // a Tick.
  void TakeEnded(std::vector<JobPtr>& ended) { ended.swap(ended_); }
  bool any_ended() const { return !ended_.empty(); }
  // The earliest time for which a job waits; Micros::max() if there is none.
  Micros first_due() const { return timers_.empty() ? Micros::max() : timers_.begin()->until_; }
  // All jobs that have not ended.
  const std::vector<JobPtr>& jobs() const { return jobs_; }
  // Memory for the frames of the jobs' tasks.
  FramePool& frames() { return frames_; }

 private:
  struct UntilOf {
    using type = Micros;
    const Micros& operator()(const Job& job) const { return job.until_; }
  };

  void Continue(Job& job);
  void EndIfDone(Job& job);

  FramePool frames_;  // declared before the jobs, which use it
  Micros now_{0};
  Micros blocked_{0}, blocked_end_{0};
  std::vector<JobPtr> jobs_, ended_;
  std::vector<Job*> ready_, resuming_;
  // Most calls have the same time limit, so a job is usually added at the end. Then a change takes
  // constant time and reads few jobs.
  boost::intrusive::multiset<
      Job, boost::intrusive::member_hook<Job, boost::intrusive::set_member_hook<>, &Job::timer_>,
      boost::intrusive::key_of_value<UntilOf>>
      timers_;
};

// A thread that runs jobs and the handlers of sockets and timers, in turns. A turn is the work
// between two waits for the kernel. At its end, in this order: jobs that it made ready are resumed;
// callbacks run (Job::AfterEnd); callers of ended blocking calls wake; new jobs start; and each
// connection sends its output in one write. If a callback blocked the turn, or a wait lasted too
// long, sockets are read before timeouts are checked. Timeouts are deferred only once, even if
// further turns are blocked.
class IoThread final {
 public:
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        boost::asio::io_context::executor_type>;

  // A connection with bytes to send.
  class Output {
   public:
    virtual void Flush() = 0;

   protected:
    ~Output() = default;
  };

  // A turn lasts as long as this object. A nested turn is part of the outer one.
  class Turn {
   public:
    explicit Turn(IoThread& io) : io_(io) { io_.BeginTurn(); }
    ~Turn() { io_.EndTurn(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    IoThread& io_;
  };

  explicit IoThread(const Clock& clock);
  ~IoThread();

  // Starts the thread.
  void Run();
  // Runs `last` in the last turn, and ends the thread. Aborts the process if called on the thread.
  void Stop(std::function<void()> last);

  // --- any thread -------------------------------------------------------------------------------

  // Runs `task` in a turn.
  void Post(std::function<void()> task);
  void Start(JobPtr job);
  // The bells of this thread's blocking calls. They ring in each turn.
  const std::shared_ptr<Bells>& bells() const { return bells_; }

  // --- the IO thread ----------------------------------------------------------------------------

  boost::asio::io_context& context() { return context_; }
  JobQueue& jobs() { return jobs_; }
  // The time at which the turn began.
  Micros now() const { return jobs_.now(); }
  // After the thread was blocked, answers may be waiting in the sockets. For kReading, no timeout
  // counts.
  static constexpr Micros kReading{10'000};
  bool reads_first() const { return reads_first_; }
  // Flushes `output` at the end of the turn.
  void FlushLater(std::shared_ptr<Output> output) { to_flush_.push_back(std::move(output)); }

 private:
  // Any thread may post; only the IO thread uses sockets and timers.
  static constexpr int kOneThreadForIo = BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO;

  // A turn or delay of this length counts as having blocked the thread.
  static constexpr Micros kBlocked{20'000};
  void Blocked(Micros length, Micros end);

  bool OnThread() const { return std::this_thread::get_id() == thread_.get_id(); }
  void BeginTurn();
  void EndTurn();
  void StartNew();
  void ArmTimer();

  const Clock& clock_;
  std::mutex mutex_;
  std::vector<JobPtr> inbox_;           // from other threads, under mutex_
  std::atomic<bool> has_mail_ = false;  // inbox_ is not empty; set under mutex_

  int turns_ = 0;
  const std::shared_ptr<Bells> bells_ = std::make_shared<Bells>();
  boost::asio::io_context context_{kOneThreadForIo};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Timer timer_;
  Micros armed_for_ = Micros::max();
  Micros turn_ended_{0};  // end of the last turn
  bool reads_first_ = false;
  bool deferred_ = false;  // timeouts were not checked since reads_first_ was last set
  uint64_t armings_ = 0;
  JobQueue jobs_;
  std::vector<JobPtr> new_, starting_, ended_;  // new_: started by callbacks of this turn
  std::vector<std::shared_ptr<Output>> to_flush_, flushing_;
  std::thread thread_;  // last: it uses all other members
};

}  // namespace firn::client
