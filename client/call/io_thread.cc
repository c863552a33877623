#include "client/call/io_thread.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/asio/post.hpp>

#include "common/base/no_signals.h"
#include "common/base/status.h"

namespace firn::client {

namespace asio = boost::asio;
using boost::system::error_code;

// --- jobs ---------------------------------------------------------------------------------------

JobQueue::~JobQueue() {
  // A job may outlive the queue; its frame must not.
  for (const JobPtr& job : jobs_) job->task_ = {};
}

void JobQueue::Add(JobPtr job) {
  Job& added = *job;
  added.place_ = jobs_.size();
  jobs_.push_back(std::move(job));
  added.task_ = added.Run();
  Start(added.task_);
  EndIfDone(added);
}

void JobQueue::Tick(Micros now, Micros due) {
  now_ = now;
  while (true) {
    while (!ready_.empty()) {
      resuming_.swap(ready_);
      for (Job* const job : resuming_) {
        job->ready_ = false;
        Continue(*job);
      }
      resuming_.clear();
    }
    if (first_due() > due) return;
    Continue(*timers_.begin());
  }
}

void JobQueue::MarkReady(Job& job) {
  if (!std::exchange(job.ready_, true)) ready_.push_back(&job);
}

void JobQueue::Suspend(Job& job, std::coroutine_handle<> task, Micros until) {
  job.waiting_ = task;
  job.until_ = until;
  timers_.insert(timers_.end(), job);
}

void JobQueue::Continue(Job& job) {
  if (!job.waiting_) return;
  timers_.erase(timers_.iterator_to(job));
  Resume(std::exchange(job.waiting_, {}));
  EndIfDone(job);
}

void JobQueue::EndIfDone(Job& job) {
  if (!job.task_.done()) return;
  job.task_ = {};
  ended_.push_back(std::move(jobs_[job.place_]));
  if (job.place_ + 1 != jobs_.size()) {
    jobs_[job.place_] = std::move(jobs_.back());
    jobs_[job.place_]->place_ = job.place_;
  }
  jobs_.pop_back();
}

// --- the thread ---------------------------------------------------------------------------------

IoThread::IoThread(const Clock& clock)
    : clock_(clock), work_(context_.get_executor()), timer_(context_.get_executor()) {}

IoThread::~IoThread() {
  if (thread_.joinable()) Stop([] {});
}

void IoThread::Run() {
  thread_ = ThreadWithoutSignals([this] { context_.run(); });
}

void IoThread::Stop(std::function<void()> last) {
  if (!thread_.joinable()) return;
  if (OnThread()) Die("a client was destroyed in one of its own callbacks");
  Post([this, last = std::move(last)] {
    last();
    timer_.cancel();
    work_.reset();
  });
  thread_.join();
}

void IoThread::Post(std::function<void()> task) {
  asio::post(context_, [this, task = std::move(task)] {
    const Turn turn(*this);
    task();
  });
}

void IoThread::Start(JobPtr job) {
  // A job that a callback starts waits for the end of the turn: callbacks must not nest.
  if (OnThread() && turns_ > 0) return new_.push_back(std::move(job));
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(job));
    if (has_mail_.exchange(true)) return;
  }
  Post([] {});
}

void IoThread::BeginTurn() {
  if (turns_++ > 0) return;
  const Micros now = clock_.BootMicros();
  const Micros idle_since = std::max(jobs_.first_due(), turn_ended_);
  if (idle_since < now - kBlocked) Blocked(now - idle_since, now);
  jobs_.SetNow(now);
}

void IoThread::Blocked(Micros length, Micros end) {
  jobs_.SawBlocked(length, end);
  // Deferring again before timeouts were checked could repeat without end.
  if (std::exchange(deferred_, true)) return;
  reads_first_ = true;
  armed_for_ = Micros::max();
}

void IoThread::EndTurn() {
  if (turns_ > 1) {
    --turns_;
    return;
  }
  jobs_.Tick(now(), reads_first_ ? Micros(-1) : now());
  if (!reads_first_) deferred_ = false;
  jobs_.TakeEnded(ended_);
  for (const JobPtr& job : ended_) job->AfterEnd();
  ended_.clear();
  bells_->RingAll();
  StartNew();
  if (jobs_.any_ended()) Post([] {});
  flushing_.swap(to_flush_);
  for (const auto& output : flushing_) output->Flush();
  flushing_.clear();
  const Micros end = clock_.BootMicros();
  if (end - now() > kBlocked) Blocked(end - now(), end);
  turn_ended_ = end;
  ArmTimer();
  turns_ = 0;
}

void IoThread::StartNew() {
  if (has_mail_) {
    const std::lock_guard lock(mutex_);
    new_.insert(new_.end(), std::make_move_iterator(inbox_.begin()),
                std::make_move_iterator(inbox_.end()));
    inbox_.clear();
    bells_->UseNext();
    has_mail_ = false;
  }
  starting_.swap(new_);
  for (JobPtr& job : starting_) jobs_.Add(std::move(job));
  starting_.clear();
}

void IoThread::ArmTimer() {
  const Micros due = reads_first_ ? Micros(0) : jobs_.first_due();
  if (due >= armed_for_) return;
  armed_for_ = due;
  // The turn itself may have taken time.
  timer_.expires_after(reads_first_ ? kReading : std::max(due - clock_.BootMicros(), Micros(0)));
  timer_.async_wait([this, arming = ++armings_](const error_code& error) {
    if (error || arming != armings_) return;  // it was armed again
    armed_for_ = Micros::max();
    reads_first_ = false;
    const Turn turn(*this);
  });
}

}  // namespace firn::client
