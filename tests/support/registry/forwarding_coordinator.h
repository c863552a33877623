#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "registry/seam/coordinator.h"

namespace firn {

// Forwards every verb. Tests that change some of them derive from it.
class ForwardingCoordinator : public Coordinator {
 public:
  // `inner` must outlive it.
  explicit ForwardingCoordinator(Coordinator& inner) : inner_(inner) {}

  void Read(const std::string& path, ReadDone done, Changed changed = {}) override {
    inner_.Read(path, std::move(done), std::move(changed));
  }
  void List(const std::string& path, ListDone done, Changed changed = {}) override {
    inner_.List(path, std::move(done), std::move(changed));
  }
  void Sync(const std::string& path, SyncDone done) override { inner_.Sync(path, std::move(done)); }
  void Multi(std::vector<Write> writes, WriteDone done) override {
    inner_.Multi(std::move(writes), std::move(done));
  }
  void PrepareRoot(SyncDone done) override { inner_.PrepareRoot(std::move(done)); }
  void OnSession(std::function<void(SessionEvent)> handler) override {
    inner_.OnSession(std::move(handler));
  }
  int64_t session() const override { return inner_.session(); }
  int Dispatch(Milliseconds wait) override { return inner_.Dispatch(wait); }
  void Wake() override { inner_.Wake(); }

 protected:
  Coordinator& inner() { return inner_; }

 private:
  Coordinator& inner_;
};

}  // namespace firn
