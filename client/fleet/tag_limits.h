#pragma once

#include <algorithm>
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

// What one server temporarily cannot serve, as it or the list has reported: all tags that need a
// machine id, a tag whose store is down, or a tag that it stops serving (at most until a new list,
// or an answer for the tag). Thread-safe. A query takes no lock if the server has reported nothing,
// which is nearly always the case.
class TagLimits {
 public:
  void NotReady(Micros until);
  void StoreDown(std::string_view tag, Micros until);
  void Closed(std::string_view tag, Micros until);

  // A new list has the server: tags are open again. `unready`: except those that need a machine id.
  void Listed(bool unready);
  // The server has issued ids of this tag.
  void Reopen(std::string_view tag, Micros now) {
    if (now < horizon_.load(std::memory_order_relaxed)) [[unlikely]]
      ReopenOne(tag);
  }
  // Discards everything: another process answers at the server's address.
  void Reset();

  // Returns kFit, kResting or kDraining for a call for `tag`; `own_numbers` need no machine id.
  ServerFitness For(std::string_view tag, const TagSet& own_numbers, Micros now) const {
    const bool unready = unready_.load(std::memory_order_relaxed) && !own_numbers.contains(tag);
    const ServerFitness listed = unready ? ServerFitness::kResting : ServerFitness::kFit;
    if (now >= horizon_.load(std::memory_order_relaxed)) [[likely]]
      return listed;
    return std::max(listed, LookUp(tag, own_numbers, now));
  }

 private:
  using TagTimes = std::map<std::string, Micros, std::less<>>;

  ServerFitness LookUp(std::string_view tag, const TagSet& own_numbers, Micros now) const;
  void ReopenOne(std::string_view tag);
  void Remember(TagTimes& times, std::string_view tag, Micros until);
  void Reach(Micros until);

  std::atomic<bool> unready_ = false;       // according to the list
  std::atomic<Micros> horizon_{Micros(0)};  // after this time, nothing below applies
  mutable std::mutex mutex_;
  Micros not_ready_until_{0};  // under mutex_, as all below
  TagTimes store_down_until_{};
  TagTimes closed_until_{};
};

}  // namespace firn::client
