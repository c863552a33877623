#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "client/client_events.h"
#include "client/server_source.h"
#include "tests/support/process.h"

namespace firn {

// Records the lists and events of a source. Thread-safe.
class ListRecorder {
 public:
  ServerSource::Listener Listener() {
    return [this](const ServerList& list) {
      const std::scoped_lock lock(mutex_);
      lists_.push_back(list);
    };
  }
  EventHook Hook() {
    return [this](const ClientEvent& event) {
      const std::scoped_lock lock(mutex_);
      notes_ += event.detail + "\n";
    };
  }

  size_t count() const {
    const std::scoped_lock lock(mutex_);
    return lists_.size();
  }
  ServerList last() const {
    const std::scoped_lock lock(mutex_);
    return lists_.empty() ? ServerList{} : lists_.back();
  }
  std::vector<std::string> addresses() const {
    std::vector<std::string> addresses;
    for (const KnownServer& server : last().servers) addresses.push_back(server.address);
    return addresses;
  }
  std::string notes() const {
    const std::scoped_lock lock(mutex_);
    return notes_;
  }

  bool Noted(const std::string& sentence) const {
    return Eventually(Milliseconds(60'000),
                      [&] { return notes().find(sentence) != sentence.npos; });
  }
  bool Shows(const std::vector<std::string>& wanted) const {
    return Eventually(Milliseconds(60'000), [&] { return addresses() == wanted; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<ServerList> lists_;
  std::string notes_;
};

}  // namespace firn
