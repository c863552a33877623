#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/units.h"
#include "server/issue/plugin.h"

namespace firn {

// The counts and the rate of one tag.
struct TagRate {
  std::string tag;
  int64_t ids = 0;            // issued since the tag was first used
  double ids_per_second = 0;  // averaged as RateBoard describes

  friend bool operator==(const TagRate&, const TagRate&) = default;
};

// Counts ids and calls of one tag. Thread-safe and wait-free; reads no clock. Each thread has its
// own counters, so that threads do not contend for a cache line. A forked child has counts of its
// own.
class RatePlugin final : public Plugin {
 public:
  static constexpr int kOrder = 200;

  std::string_view name() const override { return "rate"; }
  int order() const override { return kOrder; }
  Effect effect() const override { return Effect::kNone; }
  std::optional<Refusal> After(const Request& request, Runs& runs) override;

  // Number of ids that were issued to calls, including calls that a later plugin refused.
  int64_t ids() const;

 private:
  static constexpr size_t kPlaces = 16;

  struct alignas(64) Place {
    std::atomic<int64_t> ids{0};
  };

  std::array<Place, kPlaces> places_;
};

// The rates of all tags that have the plugin `rate`, for metrics and the console. Thread-safe;
// calls for ids never take its lock.
//
// The object has no thread: counts are sampled only in Read. A read averages over the time since
// the oldest reading that is at most kWindow old. A reading within kSpacing of the previous one is
// not stored, so that several readers do not shorten each other's window. The first read of a tag
// returns a rate of 0.
class RateBoard {
 public:
  static constexpr Milliseconds kSpacing{1000};
  static constexpr Milliseconds kWindow{10'000};

  // Returns the tag's plugin. While the object is referenced, this returns the same one, so that a
  // changed tag continues its counts.
  std::shared_ptr<RatePlugin> ForTag(const std::string& tag);

  // Returns the rates, sorted by tag name. `now` must not be lower than in an earlier read. Forgets
  // tags whose plugin is no longer referenced elsewhere.
  std::vector<TagRate> Read(BootMs now);

 private:
  struct Reading {
    BootMs at;
    int64_t ids = 0;
  };
  struct Entry {
    std::shared_ptr<RatePlugin> plugin;
    std::deque<Reading> readings;  // oldest first, at most kWindow / kSpacing + 1
  };

  static double Average(Entry& entry, Reading reading);

  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // under mutex_
};

}  // namespace firn
