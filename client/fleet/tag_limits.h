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

// What one server has said that it cannot do for a while: anything that needs a machine id;
// anything for this tag, without its store; anything for this tag, as it gives that up (until a new
// list or an answer for the tag, at the latest). Thread-safe; where nothing is known, which is
// nearly always, looking takes no lock.
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
  // Another process answers at its address.
  void BeginAnew();

  // For a call for `tag`, where `own_numbers` need no machine id: kFit, or kResting or kDraining.
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

  std::atomic<Micros> horizon_{Micros(0)};  // from then on nothing below matters
  mutable std::mutex mutex_;
  Micros not_ready_until_{0};  // under mutex_, as all below
  TagTimes store_down_until_{};
  TagTimes closed_until_{};
};

}  // namespace firn::client
