#include "client/local_ranges.h"

#include <string_view>
#include <utility>

#include "client/ranges/tag_supply.h"
#include "common/base/fork.h"

namespace firn {
namespace {

constexpr size_t kTagsMax = 64;
constexpr Milliseconds kSnowflakeAgeMax{1000};
// What the layout `firn` gives in 25 ms: every layout's servers give it well within a call's time.
constexpr int64_t kSnowflakeFetchMax = 100'000;
constexpr int64_t kSegmentFetchMax = 10'000'000;

class Ranges final : public LocalSupply {
 public:
  Ranges(const std::vector<LocalTag>& tags, RangeFetcher& fetcher, const Clock& clock,
         Entropy& entropy) {
    for (const LocalTag& tag : tags) {
      if (supplies_.size() == kTagsMax) break;
      if (Find(tag.tag) != nullptr) continue;
      supplies_.push_back(std::make_unique<TagSupply>(tag, fetcher, clock, entropy));
    }
  }

  std::optional<int64_t> TryTake(std::string_view tag) override {
    TagSupply* supply = Find(tag);
    return supply == nullptr ? std::nullopt : supply->TryTake();
  }

  std::optional<int64_t> AwaitAndTake(std::string_view tag, Milliseconds patience) override {
    TagSupply* supply = Find(tag);
    return supply == nullptr ? std::nullopt : supply->AwaitAndTake(patience);
  }

  Counts counts() const override {
    Counts sum;
    for (const auto& supply : supplies_) {
      const Counts counts = supply->counts();
      sum.taken += counts.taken;
      sum.missed += counts.missed;
      sum.awaited += counts.awaited;
      sum.dropped += counts.dropped;
    }
    return sum;
  }

 private:
  // Tags are few, and mostly of different lengths. None in a child that goes on using its parent's
  // object: these ids are the parent's.
  TagSupply* Find(std::string_view tag) const {
    if (sentinel_.InChild()) [[unlikely]]
      return nullptr;
    for (const auto& supply : supplies_) {
      if (supply->tag() == tag) return supply.get();
    }
    return nullptr;
  }

  const ForkSentinel sentinel_;
  std::vector<std::unique_ptr<TagSupply>> supplies_;
};

}  // namespace

LocalTag LocalTag::Snowflake(std::string tag) {
  return {.tag = std::move(tag),
          .max_age = kSnowflakeAgeMax,
          .lasts = kSnowflakeAgeMax / 4,
          .fetch_max = kSnowflakeFetchMax};
}

LocalTag LocalTag::Segment(std::string tag) {
  return {.tag = std::move(tag), .fetch_max = kSegmentFetchMax};
}

LocalSupplyMaker LocalRanges(std::vector<LocalTag> tags, const Clock& clock, Entropy& entropy) {
  return [tags = std::move(tags), &clock, &entropy](RangeFetcher& fetcher) {
    return std::make_unique<Ranges>(tags, fetcher, clock, entropy);
  };
}

}  // namespace firn
