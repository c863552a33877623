#include "tests/sim/copies/sim_mirror.h"

#include <string>

namespace firn {

void SimMirror::Lead(SimMirror& second) {
  second_ = &second;
  second.first_ = this;
}

void SimMirror::Part() {
  if (first_ != nullptr) first_->second_ = nullptr;
  if (second_ != nullptr) second_->first_ = nullptr;
  first_ = second_ = nullptr;
}

void SimMirror::GoOn(Coordinator& link) {
  Part();
  link_ = &link;
  link.OnSession([this](SessionEvent event) { on_session_(event); });
  for (const auto& [number, done] : std::exchange(awaited_, {})) {
    AnswerLost(done, "the connection is another machine's");
  }
  on_session_({SessionEvent::Kind::kDisconnected, 0});
}

// A connection has its session before it reports it. Both processes must see the change at the same
// time.
int64_t SimMirror::session() const {
  if (link_ != nullptr) return link_->session();
  return first_ != nullptr ? first_->session() : 0;
}

template <typename Told>
std::function<void(Told)> SimMirror::ForBoth(std::function<void(Told)> done) {
  return [this, number = asked_++, done = std::move(done)](Told answer) {
    if (second_ != nullptr) second_->Hear(number, answer);
    done(std::move(answer));
  };
}

void SimMirror::Hear(uint64_t number, const Answer& answer) {
  const auto awaited = awaited_.find(number);
  if (awaited == awaited_.end()) return;
  Tell(awaited->second, answer);
  awaited_.erase(awaited);
}

void SimMirror::Hear(const SessionEvent& event) {
  if (on_session_) on_session_(event);
}

void SimMirror::Read(const std::string& path, ReadDone done, Changed changed) {
  if (link_ == nullptr) {
    awaited_.emplace(asked_++, std::move(done));
  } else if (second_ == nullptr) {
    link_->Read(path, std::move(done), std::move(changed));
  } else {
    link_->Read(path, ForBoth(std::move(done)), std::move(changed));
  }
}

void SimMirror::List(const std::string& path, ListDone done, Changed changed) {
  if (link_ == nullptr) {
    awaited_.emplace(asked_++, std::move(done));
  } else if (second_ == nullptr) {
    link_->List(path, std::move(done), std::move(changed));
  } else {
    link_->List(path, ForBoth(std::move(done)), std::move(changed));
  }
}

void SimMirror::Sync(const std::string& path, SyncDone done) {
  if (link_ == nullptr) {
    awaited_.emplace(asked_++, std::move(done));
  } else if (second_ == nullptr) {
    link_->Sync(path, std::move(done));
  } else {
    link_->Sync(path, ForBoth(std::move(done)));
  }
}

void SimMirror::Multi(std::vector<Write> writes, WriteDone done) {
  if (link_ == nullptr) {
    awaited_.emplace(asked_++, std::move(done));
  } else if (second_ == nullptr) {
    link_->Multi(std::move(writes), std::move(done));
  } else {
    link_->Multi(std::move(writes), ForBoth(std::move(done)));
  }
}

void SimMirror::PrepareRoot(SyncDone done) { link_->PrepareRoot(std::move(done)); }

void SimMirror::OnSession(std::function<void(SessionEvent)> handler) {
  on_session_ = std::move(handler);
  if (link_ == nullptr) return;
  link_->OnSession([this](SessionEvent event) {
    if (second_ != nullptr) second_->Hear(event);
    on_session_(event);
  });
}

}  // namespace firn
