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

// Between a process and its connection, so that a second process can be kept in the very state of
// the first, as the copy that a snapshot of its machine would hold: what the first one hears, the
// second one hears, too; what the second one asks has been asked already. Both run the same code on
// the same clocks, so they ask the same in the same order.
//
// Watches are not mirrored: no keeper leaves any.
class SimMirror final : public Coordinator {
 public:
  // The connection; null for a second process, which has none until it goes its own way.
  explicit SimMirror(Coordinator* link) : link_(link) {}
  ~SimMirror() override { Part(); }

  // `second` is kept in step with this one. Both in the state of having asked nothing.
  void Lead(SimMirror& second);

  // No longer. What the second one waits for it will never hear.
  void Part();
  bool leads() const { return second_ != nullptr; }

  // The second process goes its own way, over a connection of its own.
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
  // What the first one asks, told to both.
  template <typename Told>
  std::function<void(Told)> ForBoth(std::function<void(Told)> done);
  void Hear(uint64_t number, const Answer& answer);
  void Hear(const SessionEvent& event);

  Coordinator* link_;
  SimMirror* first_ = nullptr;
  SimMirror* second_ = nullptr;
  uint64_t asked_ = 0;
  std::map<uint64_t, AnyDone> awaited_;  // by a second one
  std::function<void(SessionEvent)> on_session_;
};

}  // namespace firn
