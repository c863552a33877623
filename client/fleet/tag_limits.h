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

// The tags that one server temporarily cannot serve, according to the server or the list: all tags
// that need a machine id, a tag whose store is down, or a tag that it no longer serves. The last
// kind ends with a new list or an answer for the tag. Thread-safe. Takes no lock if the server has
// reported nothing, the usual case.
class TagLimits {
 public:
  void NotReady(Micros until);
  void StoreDown(std::string_view tag, Micros until);
  void Closed(std::string_view tag, Micros until);

  // A new list contains the server: its closed tags are open again. `unready`: it has no machine
  // id.
  void Listed(bool unready);
  // The server has issued ids of this tag.
  void Reopen(std::string_view tag, Micros now) {
    if (now < horizon_.load(std::memory_order_relaxed)) [[unlikely]]
      ReopenOne(tag);
  }
  // Discards refusals of the previous process at the server's address. Listed must follow.
  void Reset();

  // Returns kHealthy, kEjected or kDraining for calls of `tag`. Tags in `own_numbers` need no
  // machine id.
  ServerHealth For(std::string_view tag, const TagSet& own_numbers, Micros now) const {
    const bool unready = unready_.load(std::memory_order_relaxed) && !own_numbers.contains(tag);
    const ServerHealth listed = unready ? ServerHealth::kEjected : ServerHealth::kHealthy;
    if (now >= horizon_.load(std::memory_order_relaxed)) [[likely]]
      return listed;
    return std::max(listed, LookUp(tag, own_numbers, now));
  }

 private:
  using TagTimes = std::map<std::string, Micros, std::less<>>;

  ServerHealth LookUp(std::string_view tag, const TagSet& own_numbers, Micros now) const;
  void ReopenOne(std::string_view tag);
  void Remember(TagTimes& times, std::string_view tag, Micros until);
  void Reach(Micros until);

  std::atomic<bool> unready_ = false;       // according to the list
  std::atomic<Micros> horizon_{Micros(0)};  // nothing below applies after this time
  mutable std::mutex mutex_;
  Micros not_ready_until_{0};  // under mutex_, as all members below
  TagTimes store_down_until_{};
  TagTimes closed_until_{};
};

}  // namespace firn::client
