#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "registry/zk/zk_coordinator.h"
#include "tests/contract/coordinator_contract.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

// Writes until its end. A member of an ensemble before ZooKeeper 3.8.1 can forget the request of
// its only client until another client writes (ZOOKEEPER-4537).
class OtherClient {
 public:
  explicit OtherClient(const std::string& hosts)
      : thread_([hosts](const std::stop_token& stop) { WriteUntil(hosts, stop); }) {}

 private:
  static void WriteUntil(const std::string& hosts, const std::stop_token& stop) {
    ZkCoordinator other({.hosts = hosts, .root = "/other"}, SystemClock());
    const auto ignore = [](const WriteOutcome&) {};
    for (BootMs next{}; !stop.stop_requested(); other.Dispatch(Milliseconds(50))) {
      if (SystemClock().Boot() < next) continue;
      next = SystemClock().Boot() + Milliseconds(500);
      other.Multi({Write::Create("/", "", Lifetime::kPersistent)}, ignore);
      other.Multi({Write::Set("/", "", Write::kAnyVersion)}, ignore);
    }
  }

  std::jthread thread_;
};

// One ZooKeeper for all cases of a kind; each case has a separate root in it.
class Shared : public testing::Environment {
 public:
  void TearDown() override {
    other_.reset();
    for (auto& zk : running_) {
      if (zk != nullptr && testing::UnitTest::GetInstance()->Failed()) zk->KeepFiles();
      zk.reset();
    }
  }

  ZooKeeper* Get(int members) {
    auto& zk = running_[members == 1 ? 0 : 1];
    if (zk == nullptr) {
      auto started = ZooKeeper::Start({.members = members});
      EXPECT_TRUE(started.ok()) << started.status();
      if (started.ok()) zk = std::move(*started);
      if (zk != nullptr && members > 1) other_.emplace(zk->hosts());
    }
    return zk.get();
  }

 private:
  std::unique_ptr<ZooKeeper> running_[2];
  std::optional<OtherClient> other_;
};

Shared& shared() {
  static auto* const environment =
      static_cast<Shared*>(testing::AddGlobalTestEnvironment(new Shared));
  return *environment;
}
[[maybe_unused]] const Shared& kRegistered = shared();

class ZkWorld final : public CoordinatorWorld {
 public:
  ZkWorld(ZooKeeper& zk, std::string auth) : zk_(zk), auth_(std::move(auth)) {
    static std::atomic<int> count = 0;
    root_ = "/firn/contract/" + std::to_string(++count);
  }

  std::unique_ptr<Coordinator> Connect() override {
    return std::make_unique<ZkCoordinator>(ZkOptions{.hosts = zk_.hosts(),
                                                     .root = root_,
                                                     .session_time = Milliseconds(20'000),
                                                     .time_limit = Milliseconds(15'000),
                                                     .auth = auth_},
                                           SystemClock());
  }
  // In an ensemble, some member may not have received the node when all are killed.
  bool SetVersion(const std::string& path, int64_t version) override {
    if (zk_.size() > 1) return false;
    const Status set = zk_.SetVersion(root_ + path, version);
    EXPECT_TRUE(set.ok()) << set;
    return set.ok();
  }

 private:
  ZooKeeper& zk_;
  const std::string auth_;
  std::string root_;
};

WorldMaker Maker(const char* name, int members, const char* auth) {
  return {name, [=]() -> std::unique_ptr<CoordinatorWorld> {
            ZooKeeper* zk = shared().Get(members);
            return zk == nullptr ? nullptr : std::make_unique<ZkWorld>(*zk, auth);
          }};
}

INSTANTIATE_TEST_SUITE_P(ZooKeeper, CoordinatorContract,
                         testing::Values(Maker("single", 1, ""), Maker("ensemble", 3, ""),
                                         Maker("with_credentials", 1, "firn:secret")),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
