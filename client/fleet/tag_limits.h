#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "client/client_view.h"
#include "common/time/micros.h"

namespace firn::client {

// Names of tags.
using TagSet = std::set<std::string, std::less<>>;

// What one server has reported that it temporarily cannot serve: all tags that need a machine id, a
// tag whose store is down, or a tag that it stops serving (at most until a new list, or an answer
// for the tag). Thread-safe. If nothing is known, which is nearly always the case, a query takes no
// lock.
class TagLimits {
 public:
  void NotReady(Micros until);
  void StoreDown(std::string_view tag, Micros until);
  void Closed(std::string_view tag, Micros until);

  // A new list has the server: tags are open again.
  void Reopen();
  // The server has issued ids of this tag.
  void Reopen(std::string_view tag, Micros now) {
    if (now < horizon_.load(std::memory_order_relaxed)) [[unlikely]]
      ReopenOne(tag);
  }
  // Discards everything: another process answers at the server's address.
  void Reset();

  // Returns kFit, kResting or kDraining for a call for `tag`; `own_numbers` need no machine id.
  ServerFitness For(std::string_view tag, const TagSet& own_numbers, Micros now) const {
    if (now >= horizon_.load(std::memory_order_relaxed)) [[likely]]
      return ServerFitness::kFit;
    return LookUp(tag, own_numbers, now);
  }

 private:
  using TagTimes = std::map<std::string, Micros, std::less<>>;

  ServerFitness LookUp(std::string_view tag, const TagSet& own_numbers, Micros now) const;
  void ReopenOne(std::string_view tag);
  void Remember(TagTimes& times, std::string_view tag, Micros until);
  void Reach(Micros until);

  std::atomic<Micros> horizon_{Micros(0)};  // after this time, nothing below applies
  mutable std::mutex mutex_;
  Micros not_ready_until_{0};  // under mutex_, as all below
  TagTimes store_down_until_{};
  TagTimes closed_until_{};
};

}  // namespace firn::client
