// The registry as a store: ledgers of many processes on one real ZooKeeper.

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/seam/control_loop.h"
#include "registry/zk/zk_coordinator.h"
#include "server/store/ledger.h"
#include "tests/contract/range_store_contract.h"
#include "tests/support/process.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

constexpr uint64_t kAgainWithinMs = 100;

// One ZooKeeper for all cases; each has a separate cluster in it.
class Shared : public testing::Environment {
 public:
  void TearDown() override { zk_.reset(); }

  ZooKeeper* Get() {
    if (zk_ == nullptr) {
      auto started = ZooKeeper::Start();
      EXPECT_TRUE(started.ok()) << started.status();
      if (started.ok()) zk_ = *std::move(started);
    }
    return zk_.get();
  }

 private:
  std::unique_ptr<ZooKeeper> zk_;
};

Shared& shared() {
  static auto* const environment =
      static_cast<Shared*>(testing::AddGlobalTestEnvironment(new Shared));
  return *environment;
}
[[maybe_unused]] const Shared& kRegistered = shared();

ZkOptions OptionsOf(const ZooKeeper& zk, const std::string& root) {
  return {.hosts = zk.hosts(),
          .root = root,
          .session_time = Milliseconds(20'000),
          .time_limit = Milliseconds(15'000)};
}

// A ledger with a separate session and control thread, created at the first call: before that, the
// suite forks.
class LedgerStore final : public RangeStore {
 public:
  explicit LedgerStore(ZkOptions options) : options_(std::move(options)) {}
  ~LedgerStore() override {
    if (loop_) loop_->Stop();
  }

  std::string_view name() const override { return "registry"; }
  Status Check(const TagDefinition&) override { return {}; }

  Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override {
    if (size < 1 || at_least < 0) return Invalid("a range needs a size and a place to begin");
    if (at_least >= kRangeEnd) return Exhausted("there are no more numbers of 63 bits");
    Connect();
    const BootMs give_up = SystemClock().Boot() + kPatience;
    for (;;) {
      const Result<Range> range = Try(tag, at_least, size);
      // There is no session yet, or another store was faster: retry after a random time.
      const bool again = range.code() == Code::kUnavailable || range.code() == Code::kConflict;
      if (!again || SystemClock().Boot() >= give_up) return range;
      SleepFor(Milliseconds(static_cast<int64_t>(SystemEntropy().Below(kAgainWithinMs))));
    }
  }

 private:
  void Connect() {
    if (loop_) return;
    loop_.emplace(SystemClock(), std::make_unique<ZkCoordinator>(options_, SystemClock()));
    ledger_.emplace(loop_->coordinator(), LedgerHooks{});
    loop_->Start([this](Now now) { ledger_->Tick(now.boot); });
  }

  Result<Range> Try(const TagDefinition& tag, int64_t at_least, int64_t size) {
    const Result<int64_t> begin = Wait<int64_t>([&](auto done) { ledger_->Begin(tag, done); });
    if (!begin.ok()) return begin.status();
    if (begin.value() >= at_least) {
      return Wait<Range>([&](auto done) { ledger_->Extend(tag, size, done); });
    }
    const Range range{at_least, at_least + std::min(size, kRangeEnd - at_least)};
    return Wait<Range>([&](auto done) {
      ledger_->Cover(tag, range, [done, range](const Status& covered) {
        done(covered.ok() ? Result<Range>(range) : Result<Range>(covered));
      });
    });
  }

  template <typename T, typename Ask>
  Result<T> Wait(Ask ask) {
    auto told = std::make_shared<std::promise<Result<T>>>();
    loop_->Post([told, ask] { ask([told](Result<T> result) { told->set_value(result); }); });
    return told->get_future().get();
  }

  const ZkOptions options_;
  std::optional<ControlLoop> loop_;
  std::optional<Ledger> ledger_;
};

class RegistryWorld final : public RangeStoreWorld {
 public:
  explicit RegistryWorld(const ZooKeeper& zk) : zk_(zk) {
    static std::atomic<int> count = 0;
    root_ = "/firn/ranges" + std::to_string(++count);
    OnRegistry([](BlockingCoordinator& registry) {
      EXPECT_TRUE(registry.PrepareRoot().ok());
      EXPECT_TRUE(MakeCluster(registry, {.workers = 1}, SystemEntropy()).ok());
    });
  }

  std::unique_ptr<RangeStore> Open() override {
    return std::make_unique<LedgerStore>(OptionsOf(zk_, root_));
  }
  void Prepare(const TagDefinition& tag) override {
    OnRegistry([&](BlockingCoordinator& registry) {
      const Status made = TagStore(registry).Create(tag);
      EXPECT_TRUE(made.ok() || made.code() == Code::kConflict) << made;
    });
  }

 private:
  template <typename Do>
  void OnRegistry(Do act) {
    ZkCoordinator coordinator(OptionsOf(zk_, root_), SystemClock());
    BlockingCoordinator registry(coordinator, SystemClock());
    ASSERT_TRUE(registry.Connect(kPatience).ok());
    act(registry);
  }

  const ZooKeeper& zk_;
  std::string root_;
};

INSTANTIATE_TEST_SUITE_P(Registry, RangeStoreContract,
                         testing::Values(RangeWorldMaker{"zookeeper",
                                                         []() -> std::unique_ptr<RangeStoreWorld> {
                                                           const ZooKeeper* zk = shared().Get();
                                                           if (zk == nullptr) return nullptr;
                                                           return std::make_unique<RegistryWorld>(
                                                               *zk);
                                                         }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
