#include "tests/support/registry/faulty_coordinator.h"

#include <algorithm>
#include <utility>

namespace firn {

FaultyCoordinator::FaultyCoordinator(std::unique_ptr<Coordinator> inner, const Clock& clock,
                                     FaultPlan plan)
    : inner_(std::move(inner)), clock_(clock), plan_(std::move(plan)) {
  inner_->OnSession([this](SessionEvent event) { OnInnerSession(event); });
}

void FaultyCoordinator::Script(Verb verb, Fate fate) {
  script_[static_cast<size_t>(verb)].push_back(fate);
}

Fate FaultyCoordinator::Draw(Verb verb) {
  auto& script = script_[static_cast<size_t>(verb)];
  if (script.empty()) return plan_ ? plan_(verb) : Fate{};
  const Fate fate = script.front();
  script.pop_front();
  return fate;
}

// --- a request on its way out -------------------------------------------------------------------

void FaultyCoordinator::Read(const std::string& path, ReadDone done, Changed changed) {
  Submit({.verb = Verb::kRead, .path = path}, std::move(done), std::move(changed));
}

void FaultyCoordinator::List(const std::string& path, ListDone done, Changed changed) {
  Submit({.verb = Verb::kList, .path = path}, std::move(done), std::move(changed));
}

void FaultyCoordinator::Sync(const std::string& path, SyncDone done) {
  Submit({.verb = Verb::kSync, .path = path}, std::move(done));
}

void FaultyCoordinator::PrepareRoot(SyncDone done) {
  Submit({.verb = Verb::kSync, .prepare = true}, std::move(done));
}

void FaultyCoordinator::Multi(std::vector<Write> writes, WriteDone done) {
  Submit({.verb = Verb::kMulti, .writes = std::move(writes)}, std::move(done));
}

void FaultyCoordinator::Submit(Call call, AnyDone done, Changed changed) {
  const BootMs now = clock_.Boot();
  const Fate fate = connected_ ? Draw(call.verb) : Fate{Fate::Kind::kRefused};
  const Token token = ++last_token_;
  Pending& request = pending_.emplace_back(
      Pending{token, std::move(done), fate, now + fate.apply_after, now + fate.answer_after});
  if (fate.kind == Fate::Kind::kRefused || pending_.size() > kPendingMax) {
    request.refused = true;
    return;
  }
  request.lost = fate.kind != Fate::Kind::kDone;
  if (fate.kind == Fate::Kind::kRequestLost) return;
  if (fate.kind == Fate::Kind::kLate) {
    if (call.verb != Verb::kMulti) return;
    late_.push_back({request.apply_at, inner_->session(), std::move(call.writes)});
    return;
  }
  if (changed && !request.lost && !fate.notice_lost) {
    call.watch = true;
    watches_.emplace(token, std::move(changed));
    if (watches_.size() > kPendingMax) watches_.erase(watches_.begin());
  }
  last_apply_at_ = std::max(last_apply_at_, request.apply_at);
  if (waiting_.empty() && last_apply_at_ <= now) return Apply(token, std::move(call));
  waiting_.push_back({token, last_apply_at_, std::move(call)});
}

void FaultyCoordinator::ApplyDue() {
  const BootMs now = clock_.Boot();
  while (!waiting_.empty() && waiting_.front().apply_at <= now) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    Apply(next.token, std::move(next.call));
  }
  for (size_t i = 0; i < late_.size();) {
    if (late_[i].apply_at > now) {
      ++i;
      continue;
    }
    if (late_[i].session == inner_->session()) {
      inner_->Multi(std::move(late_[i].writes), [](const WriteOutcome&) {});
    }
    late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void FaultyCoordinator::Apply(Token token, Call call) {
  Changed notice;
  if (call.watch) notice = [this, token] { OnNotice(token); };
  switch (call.verb) {
    case Verb::kRead:
      return inner_->Read(
          call.path, [this, token](Result<Node> node) { OnAnswer(token, std::move(node)); },
          std::move(notice));
    case Verb::kList:
      return inner_->List(
          call.path,
          [this, token](Result<std::vector<std::string>> names) {
            OnAnswer(token, std::move(names));
          },
          std::move(notice));
    case Verb::kSync: {
      auto done = [this, token](Status status) { OnAnswer(token, std::move(status)); };
      return call.prepare ? inner_->PrepareRoot(done) : inner_->Sync(call.path, done);
    }
    case Verb::kMulti:
      return inner_->Multi(std::move(call.writes), [this, token](WriteOutcome outcome) {
        OnAnswer(token, std::move(outcome));
      });
  }
}

// --- and back -----------------------------------------------------------------------------------

FaultyCoordinator::Pending* FaultyCoordinator::Find(Token token) {
  const auto at = std::lower_bound(pending_.begin(), pending_.end(), token,
                                   [](const Pending& p, Token t) { return p.token < t; });
  return at == pending_.end() || at->token != token ? nullptr : &*at;
}

void FaultyCoordinator::OnAnswer(Token token, Answer answer) {
  Pending* request = Find(token);
  if (request == nullptr || request->ready()) return;
  request->answer = std::move(answer);
  request->answer_at = clock_.Boot() + request->fate.answer_after;
}

void FaultyCoordinator::OnNotice(Token token) {
  if (Pending* request = Find(token)) {
    request->changed = true;
  } else {
    Notify(token);
  }
}

void FaultyCoordinator::Notify(Token token) {
  auto watch = watches_.extract(token);
  if (!watch.empty() && !orphan_) news_.emplace_back(std::move(watch.mapped()));
}

void FaultyCoordinator::OnInnerSession(SessionEvent event) {
  if (event.kind == SessionEvent::Kind::kExpired) LosePending();
  if (!orphan_) news_.emplace_back(event);
}

int FaultyCoordinator::Dispatch(Milliseconds wait) {
  ApplyDue();
  int delivered = DeliverDue();
  if (!connected_) {
    if (delivered == 0) WaitDisconnected(Until(NextDue(), wait));
    return delivered + DeliverDue();
  }
  const size_t news_before = news_.size();
  inner_->Dispatch(delivered > 0 ? Milliseconds(0) : Until(NextDue(), wait));
  if (announce_) Announce(news_before);
  delivered += DeliverDue();
  return delivered;
}

void FaultyCoordinator::Announce(size_t news_before) {
  announce_ = false;
  for (size_t i = news_before; i < news_.size(); ++i) {
    const auto* event = std::get_if<SessionEvent>(&news_[i]);
    if (event != nullptr) return;  // the inner coordinator reports its session itself
  }
  const SessionEvent back{SessionEvent::Kind::kConnected, inner_->session()};
  news_.insert(news_.begin() + static_cast<std::ptrdiff_t>(news_before), back);
}

int FaultyCoordinator::DeliverDue() {
  const BootMs now = clock_.Boot();
  const auto is_due = [now](const Pending& p) {
    return p.refused || (p.ready() && p.answer_at <= now);
  };
  due_.clear();
  size_t kept = 0;
  for (Pending& request : pending_) {
    if (is_due(request)) {
      due_.push_back(std::move(request));
    } else {
      if (&pending_[kept] != &request) pending_[kept] = std::move(request);
      ++kept;
    }
  }
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(kept), pending_.end());

  std::vector<News> news;
  news.swap(news_);
  int delivered = 0;
  // In a real client's order: answers first, then the events after them.
  for (Pending& request : due_) {
    if (orphan_) break;
    const bool watching = request.answer.has_value() && !request.lost;
    Deliver(request);
    ++delivered;
    if (!watching) watches_.erase(request.token);
    if (request.changed) Notify(request.token);
  }
  return delivered + DeliverNews(std::move(news));
}

int FaultyCoordinator::DeliverNews(std::vector<News> news) {
  int delivered = 0;
  for (News& item : news) {
    if (orphan_) break;
    if (const auto* changed = std::get_if<Changed>(&item)) {
      (*changed)();
    } else if (on_session_) {
      on_session_(std::get<SessionEvent>(item));
    }
    ++delivered;
  }
  return delivered;
}

void FaultyCoordinator::Deliver(Pending& request) {
  if (request.refused) return AnswerFailure(request.done, Unavailable("refused, nothing was done"));
  if (request.lost) return AnswerLost(request.done, "no answer");
  Tell(request.done, std::move(*request.answer));
}

// --- the connection -----------------------------------------------------------------------------

void FaultyCoordinator::Disconnect() {
  if (!connected_) return;
  connected_ = announce_ = false;
  LosePending();
  if (!orphan_) news_.emplace_back(SessionEvent{SessionEvent::Kind::kDisconnected});
}

void FaultyCoordinator::LosePending() {
  const BootMs now = clock_.Boot();
  for (Pending& request : pending_) {
    request.lost = true;
    request.answer_at = now;
  }
  waiting_.clear();
}

void FaultyCoordinator::Reconnect() {
  if (connected_) return;
  connected_ = announce_ = true;
}

void FaultyCoordinator::Orphan() {
  orphan_ = true;
  pending_.clear();
  waiting_.clear();
  watches_.clear();
  news_.clear();
}

void FaultyCoordinator::OnSession(std::function<void(SessionEvent)> handler) {
  on_session_ = std::move(handler);
}

// --- time ---------------------------------------------------------------------------------------

std::optional<BootMs> FaultyCoordinator::NextDue() const {
  std::optional<BootMs> due;
  const auto take = [&due](BootMs at) { due = due.has_value() ? std::min(*due, at) : at; };
  for (const Pending& request : pending_) {
    if (request.ready()) take(request.refused ? BootMs() : request.answer_at);
  }
  if (!waiting_.empty()) take(waiting_.front().apply_at);
  for (const Late& write : late_) take(write.apply_at);
  if (!news_.empty()) take(BootMs());
  return due;
}

Milliseconds FaultyCoordinator::Until(std::optional<BootMs> due, Milliseconds wait) const {
  if (!due.has_value()) return wait;
  return std::clamp(*due - clock_.Boot(), Milliseconds(0), wait);
}

void FaultyCoordinator::WaitDisconnected(Milliseconds wait) {
  std::unique_lock lock(mutex_);
  if (wait.count() > 0) wake_.wait_for(lock, wait, [this] { return woken_; });
  woken_ = false;
}

void FaultyCoordinator::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    wake_.notify_one();
  }
  inner_->Wake();
}

}  // namespace firn
