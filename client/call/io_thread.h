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

#include "client/call/bells.h"
#include "common/task/task.h"
#include "common/time/clock.h"
#include "common/time/micros.h"

namespace firn::client {

// A task of a JobQueue, and what it waits for.
class Job {
 public:
  virtual ~Job() = default;

  // Makes the task.
  virtual Task<> Run() = 0;
  // Called once when the task has ended, outside of all tasks.
  virtual void AfterEnd() = 0;

 private:
  friend class JobQueue;

  Task<> task_;
  std::coroutine_handle<> waiting_;  // null: it does not wait
  Micros until_{0};
  size_t place_ = 0;  // in the queue's jobs
  size_t timer_ = 0;  // in the queue's timers, while it waits
  bool ready_ = false;
};

using JobPtr = std::shared_ptr<Job>;

// Runs jobs. Each waits until a time, or until an event marks it ready: an event does not resume a
// job, the next Tick does. Its memory and time do not depend on how often jobs have waited.
// Owned by one thread.
class JobQueue final : public Trampoline {
 public:
  ~JobQueue();

  // Starts a job and runs it up to its first wait. Not inside a job.
  void Add(JobPtr job);

  // Resumes ready jobs in the order of their events, then those whose time has come by `due`, until
  // none is left.
  void Tick(Micros now, Micros due);
  void Tick(Micros now) { Tick(now, now); }
  // The time of the last Tick, or a later one that was set since.
  Micros now() const { return now_; }
  void SetNow(Micros now) { now_ = now; }

  // The thread ran nothing else for that long, up to `end`.
  void SawBlocked(Micros length, Micros end) {
    blocked_ = length;
    blocked_end_ = end;
  }
  // Returns for how long the thread was last blocked, if that ended after `began`; otherwise 0.
  Micros BlockedSince(Micros began) const { return blocked_end_ > began ? blocked_ : Micros(0); }

  // The next Tick resumes the job.
  void MarkReady(Job& job);
  // For awaiters: `task` is that of the job, which waits until `until`.
  void Suspend(Job& job, std::coroutine_handle<> task, Micros until);

  // Moves the jobs that have ended since the last time to `ended`, which is empty. Call it after a
  // Tick.
  void TakeEnded(std::vector<JobPtr>& ended) { ended.swap(ended_); }
  bool any_ended() const { return !ended_.empty(); }
  // When the first of the waits for a time is over; Micros::max(): there is none.
  Micros first_due() const { return timers_.empty() ? Micros::max() : timers_.front()->until_; }
  // All that have not ended.
  const std::vector<JobPtr>& jobs() const { return jobs_; }
  // For the frames of the jobs' tasks.
  FramePool& frames() { return frames_; }

 private:
  void Continue(Job& job);
  void EndIfDone(Job& job);
  // timers_ is a heap, the first to be due in front; each job knows its place in it.
  void Cancel(Job& job);
  void Sift(size_t at);
  void Put(size_t at, Job* job);

  FramePool frames_;  // before the jobs, which use it
  Micros now_{0};
  Micros blocked_{0}, blocked_end_{0};
  std::vector<JobPtr> jobs_, ended_;
  std::vector<Job*> ready_, resuming_;
  std::vector<Job*> timers_;
};

// A thread that runs jobs and the handlers of sockets and timers, in turns. A turn is what happens
// between two waits for the kernel. At its end the jobs that it has made ready are resumed, then
// callbacks run (Job::AfterEnd), the callers of blocking calls that have ended wake, new jobs
// start, and whatever was sent leaves in one write for each connection. After a turn that a
// callback has blocked, or a wait that lasted too long, sockets are read before times are judged.
// However many turns are blocked, this defers times once: then they are judged.
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

  // A turn lasts as long as this object. Turns inside a turn are parts of it.
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
  // Runs `last` in the last turn, and ends the thread. Ends the process on the thread itself.
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
  // When the turn began.
  Micros now() const { return jobs_.now(); }
  // The thread was blocked, and answers may lie in the sockets: for kReading, nothing is late.
  static constexpr Micros kReading{10'000};
  bool reads_first() const { return reads_first_; }
  // Flushes `output` when the turn ends.
  void FlushLater(std::shared_ptr<Output> output) { to_flush_.push_back(std::move(output)); }

 private:
  // Any thread posts; sockets and timers are used by the IO thread alone.
  static constexpr int kOneThreadForIo = BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO;

  // A turn or a delay of that length has blocked the thread.
  static constexpr Micros kBlocked{20'000};
  void Blocked(Micros length, Micros end);

  bool OnThread() const { return std::this_thread::get_id() == thread_.get_id(); }
  void BeginTurn();
  void EndTurn();
  void StartNew();
  void ArmTimer();

  const Clock& clock_;
  std::mutex mutex_;
  std::vector<JobPtr> inbox_;           // of other threads, under mutex_
  std::atomic<bool> has_mail_ = false;  // inbox_ is not empty; set under mutex_

  int turns_ = 0;
  const std::shared_ptr<Bells> bells_ = std::make_shared<Bells>();
  boost::asio::io_context context_{kOneThreadForIo};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Timer timer_;
  Micros armed_for_ = Micros::max();
  Micros turn_ended_{0};  // the last one
  bool reads_first_ = false;
  bool deferred_ = false;  // times were not judged since reads_first_ was last set
  uint64_t armings_ = 0;
  JobQueue jobs_;
  std::vector<JobPtr> new_, starting_, ended_;  // new_: begun by callbacks of this turn
  std::vector<std::shared_ptr<Output>> to_flush_, flushing_;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace firn::client
