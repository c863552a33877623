#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/tag/tag_definition.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/fetch_gate.h"
#include "server/issue/segment/range_source.h"
#include "server/issue/strategy.h"

namespace firn {

// What a strategy that lives on ranges is made of; everything outlives it, but `news`.
struct RangedParts {
  RangeSource& source;
  const Clock& clock;
  Entropy& entropy;
  // Calls that wait may have more luck now. Called on the source's threads; may be empty.
  std::function<void()> news{};
};

// How a segment tag is doing here.
struct SegmentStatus {
  int64_t supply = 0;                       // numbers in memory
  double per_second = 0;                    // given out, over the last seconds
  std::optional<int64_t> supply_seconds{};  // at that pace; empty: nobody asks
  int64_t step = 0;                         // what is asked for next
  int64_t ranges = 0;                       // taken, ever
  int64_t failures = 0;                     // to take one, ever
  int64_t wasted = 0;                       // numbers that were taken and will never be given out
  std::string trouble{};                    // why no more come; empty: they do
  StoodIn stood_in{};                       // the tag's ledger, for its store
};

// One segment tag's strategy, as whoever runs it needs it. Thread-safe.
class RangedStrategy : public Strategy {
 public:
  static constexpr int64_t kCountMax = 10'000'000;

  std::string_view name() const override { return "segment"; }
  Status Start() final { return {}; }
  int64_t count_max() const final { return kCountMax; }

  // The tag is defined like this from now on; same name, form, store and buffer as before. Numbers
  // below its start are not given out after it has returned.
  virtual void Adjust(const TagDefinition& tag) = 0;

  // Does what is due. Call every 10 ms or so.
  virtual void Tick(BootMs now) = 0;

  // The tag has another form now (FormOf): nothing is given out after it has returned, what is in
  // memory is wasted, and calls that wait are told to come again. Never undone.
  virtual void Abandon() = 0;

  // Numbers in memory may belong to others: none of them is given out after it has returned. It
  // goes on with the next range that the source gives.
  virtual void Drop(const std::string& why) = 0;

  // After Stop: nothing is on its way any more.
  virtual bool settled() const = 0;

  virtual SegmentStatus status() const = 0;

 protected:
  // Answers to calls that came too late.
  static Refusal ClosedHere() {
    return {Reason::kDraining, "this tag is closed on this server", 1, true};
  }
  static Refusal Redefined() {
    return {Reason::kNotReady, "the tag has just been defined in another way: ask again", 1, true};
  }
  static Refusal Dropped() {
    return {Reason::kStoreDown, "the numbers that this call had got were dropped",
            static_cast<int32_t>(FetchGate::kNear.count()), true};
  }
};

}  // namespace firn
