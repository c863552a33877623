#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "registry/seam/answers.h"
#include "registry/seam/coordinator.h"

namespace firn {

// Sits between a process and its connection, and keeps a second process in the same state, like the
// copy in a snapshot of the machine. The second process receives every answer and event of the
// first one, and its requests are not sent. Both run the same code on the same clocks, so they make
// the same requests in the same order.
//
// Watches are not mirrored, because a claim's keeper sets none.
class SimMirror final : public Coordinator {
 public:
  // The connection; null for a second process, which has none until it continues separately.
  explicit SimMirror(Coordinator* link) : link_(link) {}
  ~SimMirror() override { Part(); }

  // Keeps `second` in step with this one. Neither may have sent a request yet.
  void Lead(SimMirror& second);

  // Stops the mirroring. The second process never receives the outstanding answers.
  void Part();
  bool leads() const { return second_ != nullptr; }

  // The second process continues separately, over its own connection.
  void GoOn(Coordinator& link);

  void Read(const std::string& path, ReadDone done, Changed changed = {}) override;
  void List(const std::string& path, ListDone done, Changed changed = {}) override;
  void Sync(const std::string& path, SyncDone done) override;
  void Multi(std::vector<Write> writes, WriteDone done) override;
  void PrepareRoot(SyncDone done) override;
  void OnSession(std::function<void(SessionEvent)> handler) override;
  int64_t session() const override;
  int Dispatch(Milliseconds wait) override { return link_ == nullptr ? 0 : link_->Dispatch(wait); }
  void Wake() override {}

 private:
  // Makes a callback for a request of the first process, whose answer both receive.
  template <typename Told>
  std::function<void(Told)> ForBoth(std::function<void(Told)> done);
  void Hear(uint64_t number, const Answer& answer);
  void Hear(const SessionEvent& event);

  Coordinator* link_;
  SimMirror* first_ = nullptr;
  SimMirror* second_ = nullptr;
  uint64_t asked_ = 0;
  std::map<uint64_t, AnyDone> awaited_;  // requests of a second process
  std::function<void(SessionEvent)> on_session_;
};

}  // namespace firn
