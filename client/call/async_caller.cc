#include "client/call/async_caller.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/asio/post.hpp>

#include "common/base/no_signals.h"

namespace firn::client {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using What = DueQueue::What;

Status Ending() { return Unavailable("the client is being destroyed"); }

}  // namespace

AsyncCaller::AsyncCaller(Fleet& fleet, TlsContext& tls, const Options& options, const Clock& clock,
                         CloseOnFork& fds)
    : fleet_(fleet),
      tls_(tls),
      options_(options),
      clock_(clock),
      fds_(fds),
      work_(io_.get_executor()),
      timer_(io_.get_executor()) {
  if (options.upkeep) {
    upkeep_.emplace(io_, fleet, clock, [this](const ServerPtr& server, Pipeline::Checked checked) {
      LookAt(server, std::move(checked));
    });
    Post([this] { upkeep_->Run(); });
  }
  thread_ = ThreadWithoutSignals([this] { io_.run(); });
}

AsyncCaller::~AsyncCaller() { Stop(); }

void AsyncCaller::Stop() {
  if (!thread_.joinable()) return;
  Post([this] { EndAll(); });
  thread_.join();
}

void AsyncCaller::EndAll() {
  stopping_ = true;
  TakeInbox();
  if (upkeep_) upkeep_->Stop();
  Reply reply;
  while (const auto entry = due_.Pop(Micros::max())) {
    if (!entry->call->finished) Leave(entry->call, Ending(), reply);
  }
  for_news_.clear();
  Pipelines all = looks_;
  for (auto& [number, pipelines] : pipelines_)
    all.insert(all.end(), pipelines.begin(), pipelines.end());
  for (const auto& pipeline : all) pipeline->Close(Outcome::Of(AttemptEnd::kAbandoned, {}));
  timer_.cancel();
  work_.reset();
}

// --- from other threads -------------------------------------------------------------------------

void AsyncCaller::Post(std::function<void()> task) {
  asio::post(io_, [this, task = std::move(task)] {
    BeginTurn();
    task();
    EndTurn();
  });
}

void AsyncCaller::Start(Ask ask, Micros deadline, CallReport* report, AsyncCall::Done done) {
  if (stopping_) return;
  if (calls_.fetch_add(1) >= kCallsMax) {
    --calls_;
    return Post([done = std::move(done)] {
      Reply reply;
      done(Unavailable("too many asynchronous calls are under way"), reply);
    });
  }
  CallPlan::Limits limits = options_.limits;
  limits.awaits_news = ask.method != Ask::Method::kServers;  // it is what brings them
  auto call = std::make_shared<AsyncCall>(fleet_, limits, std::move(ask), deadline, report,
                                          std::move(done));
  // A callback's call begins when the turn ends: callbacks must not nest.
  if (InTurn()) return begun_.push_back(std::move(call));
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(call));
    if (has_mail_.exchange(true)) return;
  }
  Post([] {});
}

void AsyncCaller::TakeInbox() {
  if (has_mail_) {
    const std::lock_guard lock(mutex_);
    begun_.insert(begun_.end(), std::make_move_iterator(inbox_.begin()),
                  std::make_move_iterator(inbox_.end()));
    inbox_.clear();
    has_mail_ = false;
  }
  beginning_.swap(begun_);
  for (const AsyncCallPtr& call : beginning_) Advance(call);
  beginning_.clear();
}

void AsyncCaller::OnNews() {
  if (has_news_.exchange(true)) return;
  Post([this] {
    has_news_ = false;
    CloseUnlisted();
    std::vector<Waiting> waiting;
    waiting.swap(for_news_);
    for (const auto& [call, number] : waiting) {
      if (call->waiting != number) continue;
      call->waiting = 0;
      Advance(call);
    }
  });
}

// Most waits end otherwise than by news, and nobody looks for them in here then.
void AsyncCaller::ForgetWaits() {
  if (for_news_.size() <= 2 * calls_) return;
  std::erase_if(for_news_, [](const Waiting& one) { return one.call->waiting != one.number; });
}

// --- turns --------------------------------------------------------------------------------------

void AsyncCaller::BeginTurn() {
  if (turns_++ == 0) now_ = clock_.BootMicros();
}

void AsyncCaller::EndTurn() {
  if (turns_ > 1) {
    --turns_;
    return;
  }
  TakeInbox();
  // A callback in there may have begun a call.
  if (!begun_.empty()) Post([] {});
  flushing_.swap(to_flush_);
  for (const auto& pipeline : flushing_) pipeline->Flush();
  flushing_.clear();
  due_.Trim();
  ForgetWaits();
  ArmTimer();
  turns_ = 0;
}

void AsyncCaller::FlushLater(Pipeline& pipeline) {
  to_flush_.push_back(pipeline.shared_from_this());
}

void AsyncCaller::ArmTimer() {
  if (due_.empty() || due_.first() >= armed_for_) return;
  armed_for_ = due_.first();
  // The turn may have taken its time.
  timer_.expires_after(std::max(armed_for_ - clock_.BootMicros(), Micros(0)));
  timer_.async_wait([this](const error_code& error) {
    if (error) return;
    armed_for_ = Micros::max();
    BeginTurn();
    DoWhatIsDue();
    EndTurn();
  });
}

void AsyncCaller::DoWhatIsDue() {
  while (const auto entry = due_.Pop(now_)) OnDue(*entry);
}

// --- a call's steps -----------------------------------------------------------------------------

void AsyncCaller::Advance(const AsyncCallPtr& call) {
  Reply none;
  if (stopping_) return Leave(call, Ending(), none);
  const bool over = now_ >= call->plan.deadline();
  if (!over && call->Find(0) == nullptr) return;  // one of many that are late may answer
  CallPlan::Step step = call->plan.Next(now_);
  while (step.kind == CallPlan::Step::Kind::kTry && !Try(call, step)) {
    step = call->plan.Next(now_);
  }
  switch (step.kind) {
    case CallPlan::Step::Kind::kTry:
      return;
    case CallPlan::Step::Kind::kWait:
      return Wait(call, step);
    case CallPlan::Step::Kind::kEnd:
      if (!over && !call->plan.settled() && call->AnyUnderWay()) return;  // of those that are late
      return Finish(call, call->plan.Failure(), none);
  }
}

bool AsyncCaller::Try(const AsyncCallPtr& call, const CallPlan::Step& step) {
  const auto pipeline = PipelineTo(step.server, step.fresh);
  if (pipeline == nullptr) {
    call->plan.PutOff(step, step.server->connect_at);
    return false;
  }
  const uint32_t number = ++call->last_number;
  AsyncCall::Asking& asking = *call->Find(0);
  asking = {.number = number, .step = step, .began = now_, .watched = now_, .pipeline = pipeline};
  Watch(call, asking);
  if (options_.hedge_after && !std::exchange(call->hedge_planned, true)) {
    due_.Push({now_ + *options_.hedge_after, What::kHedge, number, call});
  }
  pipeline->Send(call, number);
  return true;
}

void AsyncCaller::Wait(const AsyncCallPtr& call, const CallPlan::Step& step) {
  call->waiting = ++call->last_number;
  due_.Push({step.until, What::kWake, call->waiting, call});
  if (step.for_news) for_news_.push_back({call, call->waiting});
}

void AsyncCaller::OnEnded(const AsyncCallPtr& call, uint32_t number, Outcome outcome,
                          Reply& reply) {
  AsyncCall::Asking* found = call->Find(number);
  if (found == nullptr) return;
  const AsyncCall::Asking asking = std::exchange(*found, {});
  if (call->finished && outcome.answered()) fleet_.Count(&ClientCounters::unclaimed);
  if (asking.late) return OnLate(call, asking, outcome, reply);
  if (call->finished) {
    // Another server was sooner, or it is too late; what came of this one is still worth knowing.
    return fleet_.Done(*asking.step.server, call->ask.tag, outcome, now_ - asking.began, now_);
  }
  if (call->plan.Ended(asking.step, outcome, asking.began, now_)) {
    return Leave(call, {}, reply);
  }
  if (!call->AnyInTime()) Advance(call);
}

void AsyncCaller::OnLate(const AsyncCallPtr& call, const AsyncCall::Asking& asking,
                         const Outcome& outcome, Reply& reply) {
  if (call->finished) return;
  if (outcome.answered()) {
    call->plan.Left(asking.step, AttemptEnd::kAnswered, asking.began, now_);
    return Leave(call, {}, reply);
  }
  if (!call->AnyInTime() && call->waiting == 0) Advance(call);
}

void AsyncCaller::Finish(const AsyncCallPtr& call, Status status, Reply& reply) {
  call->finished = true;
  call->waiting = 0;
  --calls_;
  std::exchange(call->done, nullptr)(std::move(status), reply);
}

void AsyncCaller::Leave(const AsyncCallPtr& call, Status status, Reply& reply) {
  for (const AsyncCall::Asking& asking : call->under_way) {
    if (asking.number == 0 || asking.late) continue;
    call->plan.Left(asking.step, AttemptEnd::kAbandoned, asking.began, now_);
  }
  call->plan.FillReport();
  Finish(call, std::move(status), reply);
}

void AsyncCaller::OnDue(const DueQueue::Entry& entry) {
  const AsyncCallPtr& call = entry.call;
  if (entry.what == What::kWake) {
    if (call->waiting != entry.number || call->finished) return;
    call->waiting = 0;
    return Advance(call);
  }
  AsyncCall::Asking* asking = call->Find(entry.number);
  if (asking == nullptr) return;
  if (entry.what == What::kHedge) return Hedge(call, entry.number);
  OnTimeout(call, *asking);
}

void AsyncCaller::Watch(const AsyncCallPtr& call, const AsyncCall::Asking& asking) {
  const Micros until = asking.watched + options_.limits.attempt_limit;
  const Micros at = call->finished ? until : std::min(until, call->plan.deadline());
  due_.Push({at, What::kTimeout, asking.number, call});
}

// A connection that has brought nothing for an attempt's time is closed. One that brings answers to
// others is a line that moves: the call asks elsewhere, and keeps its place there.
void AsyncCaller::OnTimeout(const AsyncCallPtr& call, AsyncCall::Asking& asking) {
  if (!call->finished && now_ >= call->plan.deadline()) GiveUp(call);
  const auto pipeline = asking.pipeline;  // closing it ends `asking`
  const bool whole = now_ - asking.watched >= options_.limits.attempt_limit;
  if (whole && pipeline->heard_at() <= asking.watched) return pipeline->Close(pipeline->Silence());
  if (whole) asking.watched = now_;
  Watch(call, asking);
  if (!whole || call->finished || std::exchange(asking.late, true)) return;
  fleet_.Count(&ClientCounters::in_line);
  call->plan.Ended(asking.step, pipeline->Silence(), asking.began, now_);
  if (!call->AnyInTime()) Advance(call);
}

// The call ends at its deadline; whom it is asking has until the end of an attempt's time.
void AsyncCaller::GiveUp(const AsyncCallPtr& call) {
  for (const AsyncCall::Asking& asking : call->under_way) {
    if (asking.number == 0 || asking.late) continue;
    call->plan.Left(asking.step, asking.pipeline->Silence().end, asking.began, now_);
  }
  Advance(call);
}

void AsyncCaller::Hedge(const AsyncCallPtr& call, uint32_t number) {
  if (call->finished || call->Find(0) == nullptr) return;
  const CallPlan::Step step = call->plan.Hedge(call->Find(number)->step.server, now_);
  if (step.kind == CallPlan::Step::Kind::kTry) Try(call, step);
}

// --- connections --------------------------------------------------------------------------------

std::shared_ptr<Pipeline> AsyncCaller::PipelineTo(const ServerPtr& server, bool fresh) {
  const Pipelines& open = pipelines_[server->number];
  const std::shared_ptr<Pipeline>* least = nullptr;
  for (const auto& pipeline : open) {
    if (fresh && !pipeline->opening()) continue;
    if (pipeline->in_flight() == 0) return pipeline;
    if (least == nullptr || pipeline->in_flight() < (*least)->in_flight()) least = &pipeline;
  }
  const bool may_open = now_ >= server->connect_at.load();
  const bool room = may_open && open.size() < options_.connections;
  if (least != nullptr && !room) return *least;
  return may_open ? OpenPipeline(server, nullptr) : nullptr;
}

std::shared_ptr<Pipeline> AsyncCaller::OpenPipeline(const ServerPtr& server,
                                                    Pipeline::Checked checked) {
  auto pipeline = std::make_shared<Pipeline>(io_, fleet_, tls_, fds_, *this, server);
  pipelines_[server->number].push_back(pipeline);
  pipeline->Open(fleet_.AddressesInTurn(*server), options_.limits.attempt_limit,
                 std::move(checked));
  return pipeline;
}

// Where calls have all connections that they may have, that of a look is closed after it.
void AsyncCaller::LookAt(const ServerPtr& server, Pipeline::Checked checked) {
  const auto open = pipelines_.find(server->number);
  const bool room = open == pipelines_.end() || open->second.size() < options_.connections;
  if (room) return static_cast<void>(OpenPipeline(server, std::move(checked)));
  const auto look = std::make_shared<Pipeline>(io_, fleet_, tls_, fds_, *this, server);
  looks_.push_back(look);
  const std::weak_ptr<Pipeline> weak = look;
  look->Open(
      fleet_.AddressesInTurn(*server), options_.limits.attempt_limit,
      [weak, checked = std::move(checked)](const Outcome& outcome, const ServerFacts& facts) {
        checked(outcome, facts);
        if (const auto over = weak.lock()) {
          over->Close(Outcome::Of(AttemptEnd::kAbandoned, {}));
        }
      });
}

void AsyncCaller::CloseUnlisted() {
  Pipelines unlisted;
  for (const auto& [number, pipelines] : pipelines_) {
    std::copy_if(pipelines.begin(), pipelines.end(), std::back_inserter(unlisted),
                 [](const auto& pipeline) { return pipeline->left_over(); });
  }
  for (const auto& pipeline : unlisted) pipeline->Close(Outcome::Of(AttemptEnd::kAbandoned, {}));
}

void AsyncCaller::OnClosed(Pipeline& pipeline) {
  std::erase_if(looks_, [&](const auto& one) { return one.get() == &pipeline; });
  const auto found = pipelines_.find(pipeline.server()->number);
  if (found == pipelines_.end()) return;
  std::erase_if(found->second, [&](const auto& one) { return one.get() == &pipeline; });
  if (found->second.empty()) pipelines_.erase(found);
}

}  // namespace firn::client
