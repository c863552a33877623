#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "client/call/async_call.h"
#include "common/time/micros.h"

namespace firn::client {

// What has to be looked at, and when. Entries are not taken back: whoever gets one that is due
// finds out whether it still matters. Used by one thread.
class DueQueue {
 public:
  enum class What : uint8_t { kTimeout, kHedge, kWake };
  struct Entry {
    Micros at;
    What what;
    uint32_t number;  // of the call's Asking, or of its wait
    AsyncCallPtr call;
  };

  void Push(Entry entry) { heap_.push(std::move(entry)); }

  // The first entry that is due, if one is.
  std::optional<Entry> Pop(Micros now) {
    if (heap_.empty() || heap_.top().at > now) return std::nullopt;
    Entry entry = heap_.top();
    heap_.pop();
    return entry;
  }

  // Takes entries off the front that matter no more, so that the queue stays as short as there are
  // calls under way: mostly the front is the oldest.
  void Trim() {
    while (!heap_.empty() && !Matters(heap_.top())) heap_.pop();
  }

  bool empty() const { return heap_.empty(); }
  Micros first() const { return heap_.top().at; }
  size_t size() const { return heap_.size(); }

 private:
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const { return a.at > b.at; }
  };
  static bool Matters(const Entry& entry) {
    if (entry.what == What::kWake) return entry.call->waiting == entry.number;
    return entry.call->Find(entry.number) != nullptr;
  }

  std::priority_queue<Entry, std::vector<Entry>, Later> heap_;
};

}  // namespace firn::client
