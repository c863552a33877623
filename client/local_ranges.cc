#include "client/local_ranges.h"

#include <map>
#include <string_view>
#include <utility>

#include "client/ranges/tag_supply.h"
#include "common/base/cat.h"
#include "common/base/faults.h"
#include "common/base/fork.h"
#include "common/tag/tag_name.h"

namespace firn {
namespace {

constexpr size_t kTagsMax = 64;
constexpr Milliseconds kSnowflakeAgeMax{1000};
// The number of ids that the layout `firn` permits in 25 ms. Servers of any layout issue that many
// within one call.
constexpr int64_t kSnowflakeFetchMax = 100'000;
constexpr int64_t kSegmentFetchMax = 10'000'000;

// kInvalid names every fault.
Status CheckTags(const std::vector<LocalTag>& tags) {
  Faults faults;
  if (tags.size() > kTagsMax) {
    faults.Add(Cat("local_ranges lists ", tags.size(), " tags; the maximum is ", kTagsMax));
  }
  std::map<std::string_view, int> times;
  for (const LocalTag& tag : tags) {
    if (++times[tag.tag] == 2) faults.Add(Cat("local_ranges lists tag '", tag.tag, "' twice"));
    if (tag.tag.size() > kTagNameMax) {
      faults.Add(Cat("a tag's name in local_ranges has ", tag.tag.size(), " bytes; the maximum is ",
                     kTagNameMax));
    }
  }
  return std::move(faults).ToStatus();
}

class Ranges final : public LocalSupply {
 public:
  Ranges(const std::vector<LocalTag>& tags, RangeFetcher& fetcher, const Clock& clock,
         Entropy& entropy)
      : status_(CheckTags(tags)) {
    if (!status_.ok()) return;
    for (const LocalTag& tag : tags) {
      supplies_.push_back(std::make_unique<TagSupply>(tag, fetcher, clock, entropy));
    }
  }

  Status status() const override { return status_; }

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
  // Searches linearly, because there are few tags, mostly of different lengths. Returns null in a
  // forked child that uses its parent's object, because its ids belong to the parent.
  TagSupply* Find(std::string_view tag) const {
    if (sentinel_.InChild()) [[unlikely]]
      return nullptr;
    for (const auto& supply : supplies_) {
      if (supply->tag() == tag) return supply.get();
    }
    return nullptr;
  }

  const ForkSentinel sentinel_;
  const Status status_;
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
