#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include <sys/mman.h>

#include "tests/contract/range_store_contract.h"
#include "tests/server/store/tiered_server.h"
#include "tests/support/database/redis.h"
#include "tests/support/process.h"

namespace firn {
namespace {

// The ledgers of a few tags, in memory that processes share.
class SharedLedgers final : public FakeLedgers {
 public:
  static constexpr size_t kTagsMax = 32;

  SharedLedgers()
      : highs_(static_cast<Highs*>(mmap(nullptr, sizeof(Highs), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    new (highs_) Highs{};
  }
  ~SharedLedgers() override { munmap(highs_, sizeof(Highs)); }
  SharedLedgers(const SharedLedgers&) = delete;
  SharedLedgers& operator=(const SharedLedgers&) = delete;

  // Call before any process is started.
  void Add(const TagDefinition& tag) {
    ASSERT_LT(places_.size(), kTagsMax);
    const size_t place = places_.emplace(tag.name, places_.size()).first->second;
    highs_->at(place) = tag.start.value_or(1);
  }

  Result<LedgerPlace> Where(const std::string& tag) const override {
    return LedgerPlace{.cluster = "a cluster", .begin = highs_->at(places_.at(tag))};
  }
  Result<Range> Extend(const std::string& tag, int64_t size) override {
    const int64_t begin = highs_->at(places_.at(tag)).fetch_add(size);
    return Range{begin, begin + size};
  }

 private:
  using Highs = std::array<std::atomic<int64_t>, kTagsMax>;

  Highs* const highs_;
  std::map<std::string, size_t> places_;
};

// A TieredServer as a store. The ledger decides where its numbers begin. Its threads start at the
// first call: before that, the suite forks.
class TieredStore final : public RangeStore {
 public:
  TieredStore(int redis_port, SharedLedgers& ledgers)
      : redis_port_(redis_port), ledgers_(ledgers) {}

  std::string_view name() const override { return "fast"; }
  Status Check(const TagDefinition&) override { return {}; }

  // Retries while other callers have just taken the numbers, or fetch more.
  Result<Range> Advance(const TagDefinition& tag, int64_t, int64_t size) override {
    if (!server_) {
      server_.emplace(redis_port_, ledgers_, kPatience,
                      [](const std::string& sentence) { ADD_FAILURE() << sentence; });
    }
    TagDefinition with_steps = tag;
    with_steps.step = std::max<int64_t>(size, 500);
    with_steps.step_max = with_steps.step * 2;
    Result<Range> range = Unavailable("");
    static_cast<void>(Eventually(kPatience, [&] {
      range = server_->Take(with_steps, size);
      return range.code() != Code::kUnavailable && range.code() != Code::kConflict;
    }));
    return range;
  }

 private:
  const int redis_port_;
  SharedLedgers& ledgers_;
  std::optional<TieredServer> server_;
};

class TieredWorld final : public RangeStoreWorld {
 public:
  TieredWorld() {
    auto started = Redis::Start({.append_only = false});
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }

  std::unique_ptr<RangeStore> Open() override {
    return std::make_unique<TieredStore>(server_->port(), ledgers_);
  }
  void Prepare(const TagDefinition& tag) override { ledgers_.Add(tag); }
  int64_t end() const override { return TieredHash::kNumbersEnd; }
  bool begins_where_told() const override { return false; }
  bool gives_all() const override { return false; }

 private:
  std::unique_ptr<Redis> server_;
  SharedLedgers ledgers_;
};

INSTANTIATE_TEST_SUITE_P(Tiered, RangeStoreContract,
                         testing::Values(RangeWorldMaker{
                             "source", [] { return std::make_unique<TieredWorld>(); }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
