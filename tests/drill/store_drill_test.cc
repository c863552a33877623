// Whole servers whose segment tags stand on every kind of store, while the stores and the servers
// are killed.
//
//     FIRN_DRILL_SECONDS=60 FIRN_DRILL_THREADS=16 build/dev/bin/store_drill_test
//
// goes on killing, with so many callers for each server; without, one of each is killed once.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/entropy.h"
#include "tests/drill/drill.h"
#include "tests/server/program/running_server.h"
#include "tests/support/mariadb.h"
#include "tests/support/mysql_tables.h"
#include "tests/support/redis.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

using Json = nlohmann::json;

constexpr int kServers = 4;
// One for each store; `fast` is taken number by number, and rises over all servers.
constexpr std::array kTags{"plain", "table", "leaf", "hash", "fast"};
constexpr size_t kFast = 4;

int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

// What all callers have got of one tag. Thread-safe.
class Takings {
 public:
  struct Numbers {
    int64_t first;
    int64_t count;
  };

  int64_t highest() const { return highest_; }
  int64_t calls() const { return calls_; }
  void Add(Numbers numbers) {
    const std::scoped_lock lock(mutex_);
    all_.push_back(numbers);
    highest_ = std::max(highest_.load(), numbers.first + numbers.count - 1);
    ++calls_;
  }

  struct Findings {
    int64_t ids = 0;
    int64_t duplicates = 0;
  };
  Findings Judge() {
    const std::scoped_lock lock(mutex_);
    std::sort(all_.begin(), all_.end(),
              [](const Numbers& a, const Numbers& b) { return a.first < b.first; });
    Findings found;
    int64_t end = 0;
    for (const Numbers& numbers : all_) {
      found.ids += numbers.count;
      found.duplicates += std::clamp(end - numbers.first, int64_t{0}, numbers.count);
      end = std::max(end, numbers.first + numbers.count);
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<Numbers> all_;
  std::atomic<int64_t> highest_{0};
  std::atomic<int64_t> calls_{0};
};

class StoreDrill : public Drill {
 protected:
  void SetUp() override {
    StartEnsemble(1);
    auto mariadb = MariaDb::Start();
    auto redis = Redis::Start({.append_only = false});
    ASSERT_TRUE(mariadb.ok()) << mariadb.status();
    ASSERT_TRUE(redis.ok()) << redis.status();
    mariadb_ = *std::move(mariadb);
    redis_ = *std::move(redis);
    for (const auto& sql : {CreateTableSql(MysqlForm::kFirn, "firn_tag"),
                            CreateTableSql(MysqlForm::kLeaf, "leaf_alloc"),
                            InsertRowSql(MysqlForm::kLeaf, "leaf_alloc", "leaf", 1)}) {
      ASSERT_EQ(mariadb_->Run(sql), Status());
    }
    WriteStores();
    ApplyTags();
    for (int i = 0; i < kServers; ++i) {
      const std::vector<std::string> flags{"--registry=" + registry(), "--session_timeout_ms=2000",
                                           "--stores_file=" + folder("stores.ini"),
                                           "--issue_wait_ms=1000"};
      servers_.push_back(
          std::make_unique<RunningServer>(folder("server" + std::to_string(i)), flags));
    }
    for (const auto& server : servers_) ASSERT_TRUE(server->BecomesReady()) << server->log();
  }

  void WriteStores() {
    const std::string mysql =
        "kind = mysql\naddress = " + mariadb_->address() +
        "\ndatabase = ids\ncredentials_file = " + mariadb_->credentials_file() + "\n";
    std::ofstream(folder("stores.ini"))
        << "[main]\n"
        << mysql << "[alloc]\n"
        << mysql << "form = leaf\ntable = leaf_alloc\n"
        << "[cache]\nkind = redis\naddress = " << redis_->address() << "\nprefix = hash:\n"
        << "[front]\nkind = redis\naddress = " << redis_->address() << "\nprefix = tier:\n"
        << "[tier]\nkind = tiered\nfront = front\ndurable = main\n";
  }

  void ApplyTags() {
    std::ofstream file(folder("tags.ini"));
    const std::array stores{"registry", "main", "alloc", "cache", "tier"};
    for (size_t i = 0; i < kTags.size(); ++i) {
      file << "[" << kTags[i] << "]\nstrategy = segment\nstep = 50\nstore = " << stores[i] << "\n"
           << (i == kFast ? "buffer = none\n" : "");
    }
    file.close();
    const Finished applied = Firn({"tags", "apply", folder("tags.ini")});
    ASSERT_EQ(applied.exit_code, 0) << applied.err;
  }

  void StartLoad(int threads) {
    for (const auto& server : servers_) {
      for (int i = 0; i < threads; ++i) {
        threads_.emplace_back([this, &server = *server] {
          for (size_t n = 0; going_on_; ++n) Call(server, n % kTags.size());
        });
      }
    }
  }
  void StopLoad() {
    going_on_ = false;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // One call; what is refused is tried again by the next.
  void Call(const RunningServer& server, size_t tag) {
    Takings& takings = takings_[tag];
    const int64_t before = takings.highest();
    const auto answer = server.Get(std::string("/v1/ids/") + kTags[tag] + "?count=3&form=runs");
    if (answer.status != 200) {
      ++refused_;
      SleepBriefly();
      return;
    }
    const Json json = Json::parse(answer.body, nullptr, false);
    for (const Json& run : json.at("runs")) {
      const int64_t first = std::stoll(run.at("first").get<std::string>());
      if (tag == kFast && first <= before) ++fallen_;
      takings.Add({first, run.at("count").get<int64_t>()});
    }
  }

  // Every tag goes on.
  testing::AssertionResult AllGoOn() {
    for (size_t i = 0; i < kTags.size(); ++i) {
      const int64_t before = takings_[i].calls();
      if (!Eventually(kPatience, [&] { return takings_[i].calls() >= before + 20; })) {
        return testing::AssertionFailure() << kTags[i] << " stands still" << servers_[0]->log();
      }
    }
    return testing::AssertionSuccess();
  }

  void KillMariaDb() {
    mariadb_->Kill();
    EXPECT_EQ(mariadb_->Restart(), Status());
    EXPECT_TRUE(AllGoOn()) << "after MariaDB was killed";
  }
  void KillRedis() {
    redis_->Kill();
    EXPECT_EQ(redis_->Restart(), Status());  // empty: it keeps nothing
    EXPECT_TRUE(AllGoOn()) << "after Redis was killed";
  }
  void KillServer(RunningServer& server) {
    server.Kill();
    server.StartAgain();
    EXPECT_TRUE(server.BecomesReady()) << server.log();
    EXPECT_TRUE(AllGoOn()) << "after a server was killed";
  }
  void Kill(uint64_t victim) {
    if (victim == 0) return KillMariaDb();
    if (victim == 1) return KillRedis();
    KillServer(*servers_[(victim - 2) % servers_.size()]);
  }

  int64_t Ledger(const char* tag) {
    const Finished shown = Firn({"tags", "show", tag, "--json"});
    const Json json = Json::parse(shown.out, nullptr, false);
    return json.is_array() ? std::stoll(json.at(0).at("high").get<std::string>()) : -1;
  }

  void JudgeTakings() {
    for (size_t i = 0; i < kTags.size(); ++i) {
      const Takings::Findings found = takings_[i].Judge();
      EXPECT_EQ(found.duplicates, 0) << kTags[i];
      EXPECT_GT(found.ids, 0) << kTags[i];
      const int64_t ledger = Ledger(kTags[i]);
      EXPECT_LT(takings_[i].highest(), ledger) << kTags[i];
      std::printf("drill of stores: %s: ids %lld, duplicates %lld, covered and not given %lld\n",
                  kTags[i], static_cast<long long>(found.ids),
                  static_cast<long long>(found.duplicates),
                  static_cast<long long>(ledger - 1 - found.ids));
    }
    EXPECT_EQ(fallen_, 0) << "numbers of `fast` that were not above those answered before";
    std::printf("drill of stores: calls refused %lld\n", static_cast<long long>(refused_.load()));
  }

  std::unique_ptr<MariaDb> mariadb_;
  std::unique_ptr<Redis> redis_;
  std::vector<std::unique_ptr<RunningServer>> servers_;
  std::vector<std::thread> threads_;
  std::array<Takings, kTags.size()> takings_;
  std::atomic<bool> going_on_{true};
  std::atomic<int64_t> refused_{0};
  std::atomic<int64_t> fallen_{0};
};

TEST_F(StoreDrill, KilledStoresAndServersRepeatNoNumber) {
  const BootMs until = TestNow() + Milliseconds(1000 * FromEnvironment("FIRN_DRILL_SECONDS", 0));
  SCOPED_TRACE(SeedText(TestSeed()));
  SeededEntropy entropy(TestSeed());
  StartLoad(FromEnvironment("FIRN_DRILL_THREADS", 2));
  EXPECT_TRUE(AllGoOn()) << "in peace";
  for (const uint64_t victim : {0u, 1u, 2u}) Kill(victim);
  while (TestNow() < until && !HasFailure()) Kill(entropy.Below(2 + kServers));
  StopLoad();
  JudgeTakings();
}

}  // namespace
}  // namespace firn
