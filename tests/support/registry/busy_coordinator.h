#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "registry/seam/coordinator.h"

namespace firn {

// A registry in which something happens right after a certain node was read: others go on between a
// look and what is made of it. `inner` must outlive it.
class BusyCoordinator : public Coordinator {
 public:
  explicit BusyCoordinator(Coordinator& inner) : inner_(inner) {}

  void OnceAfterReading(const std::string& path, std::function<void()> happens) {
    path_ = path;
    happens_ = std::move(happens);
  }

  void Read(const std::string& path, ReadDone done, Changed changed) override {
    inner_.Read(path, std::move(done), std::move(changed));
    if (path == path_ && happens_) std::exchange(happens_, {})();
  }
  void List(const std::string& path, ListDone done, Changed changed) override {
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

 private:
  Coordinator& inner_;
  std::string path_;
  std::function<void()> happens_;
};

}  // namespace firn
