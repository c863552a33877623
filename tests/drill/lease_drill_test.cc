// Tests programs that issue ids under leased machine ids, while their servers and the registry have
// faults.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/client.h"
#include "client/lease/local_generator.h"
#include "common/time/clock.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/open/open_coordinator.h"
#include "tests/drill/drill.h"
#include "tests/server/program/running_server.h"
#include "tests/support/paste.h"

namespace firn {
namespace {

// A program: a generator, and a thread that takes its ids.
class LeasingProgram {
 public:
  LeasingProgram(Client& client, const std::string& name, Milliseconds ahead) {
    Result<std::unique_ptr<LocalGenerator>> opened = client.OpenGenerator(
        {.name = name, .ahead = ahead, .on_lost = [this](const LeaseLoss&) { ++lost_; }},
        kPatience);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return;
    generator_ = *std::move(opened);
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }

  bool open() const { return generator_ != nullptr; }
  WallMs until() const { return generator_->until().value_or(WallMs()); }
  MachineId machine() const { return generator_->machine_id().value_or(MachineId()); }
  int64_t taken() const { return taken_; }

  // Ends the thread. Call it before reading the results.
  void Stop() { thread_ = {}; }
  void Close() { generator_.reset(); }
  const std::vector<int64_t>& ids() const { return ids_; }
  const std::vector<Status>& failures() const { return failures_; }
  int lost() const { return lost_; }

 private:
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (int i = 0; i < 20; ++i) {
        const Result<int64_t> id = generator_->Next();
        id.ok() ? ids_.push_back(*id) : failures_.push_back(id.status());
      }
      taken_ += 20;
      SleepBriefly();
    }
  }

  std::atomic<int> lost_ = 0;
  std::atomic<int64_t> taken_ = 0;
  std::vector<int64_t> ids_;  // ids that the thread has taken
  std::vector<Status> failures_;
  std::unique_ptr<LocalGenerator> generator_;
  std::jthread thread_;
};

class LeaseDrill : public Drill {
 protected:
  static constexpr size_t kPrograms = 10;
  // Long enough to find another server on a busy machine, because a program requests another lease
  // when a third of the interval is left.
  static constexpr Milliseconds kAhead{30'000};

  void StartServers(const std::vector<std::string>& init_flags = {},
                    std::vector<std::string> flags = {}) {
    ASSERT_NO_FATAL_FAILURE(StartEnsemble(1, /*workers=*/128, init_flags));
    flags.push_back("--registry=" + registry());
    for (int i = 0; i < 3; ++i) {
      servers_.push_back(
          std::make_unique<RunningServer>(folder("server" + std::to_string(i)), flags));
    }
    std::string list = "list://";
    for (const auto& server : servers_) {
      ASSERT_TRUE(server->BecomesReady()) << server->log();
      list += (list.back() == '/' ? "" : ",") + server->address();
    }
    client_ = std::make_unique<Client>(ClientOptions{
        .servers = list, .deadline = Milliseconds(20'000), .attempt_limit = Milliseconds(2'000)});
  }

  void StartPrograms() {
    for (size_t i = 0; i < kPrograms; ++i) {
      programs_.push_back(
          std::make_unique<LeasingProgram>(*client_, "drill-" + std::to_string(i), kAhead));
      ASSERT_TRUE(programs_.back()->open());
    }
    asker_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const Result<std::vector<int64_t>> ids = client_->GetIds("default", 50);
        if (ids.ok()) servers_ids_.insert(servers_ids_.end(), ids->begin(), ids->end());
        SleepBriefly();
      }
    });
  }

  // Waits until every program's interval ends later than the longest interval now: each lease has
  // then been extended or replaced.
  testing::AssertionResult AllAreExtended() {
    WallMs last{};
    for (const auto& program : programs_) last = std::max(last, program->until());
    for (const auto& program : programs_) {
      if (Eventually(kPatience, [&] { return program->until() > last; })) continue;
      return testing::AssertionFailure()
             << "the lease of machine id " << program->machine().value() << " is not extended";
    }
    return testing::AssertionSuccess();
  }

  // Waits until all leases have bounds far ahead in the registry. While the registry is
  // unreachable, a lease is extended only up to its bound, and a new lease's bound is near.
  testing::AssertionResult AllAreBackedFor(Milliseconds time) {
    for (const auto& server : servers_) {
      std::string body;
      const bool backed = Eventually(kPatience, [&] {
        body = server->Admin("/v1/leases").body;
        return LowestBound(body) > SystemClock().Wall() + time;
      });
      if (!backed) return testing::AssertionFailure() << body;
    }
    return testing::AssertionSuccess();
  }
  static WallMs LowestBound(const std::string& leases) {
    const std::string key = "\"bound_ms\":";
    int64_t lowest = INT64_MAX;
    for (size_t at = leases.find(key); at != leases.npos; at = leases.find(key, at + 1)) {
      lowest = std::min<int64_t>(lowest, std::stoll(leases.substr(at + key.size())));
    }
    return WallMs(lowest);
  }

  std::vector<MachineId> Machines() const {
    std::vector<MachineId> machines;
    for (const auto& program : programs_) machines.push_back(program->machine());
    return machines;
  }
  size_t Replaced(const std::vector<MachineId>& before) const {
    size_t count = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      count += programs_[i]->machine() == before[i] ? 0U : 1U;
    }
    return count;
  }

  int64_t Held() const {
    int64_t held = 0;
    for (const auto& server : servers_) {
      held += std::max<int64_t>(server->Metric("firn_leases"), 0);
    }
    return held;
  }

  // Checks that no id was issued twice, and that no call failed.
  void JudgePrograms() {
    asker_ = {};
    std::vector<int64_t> all = servers_ids_;
    EXPECT_FALSE(all.empty());
    for (const auto& program : programs_) {
      program->Stop();
      EXPECT_TRUE(program->failures().empty())
          << program->failures().size() << ", the first: " << program->failures().front();
      EXPECT_EQ(program->lost(), 0);
      EXPECT_TRUE(std::is_sorted(program->ids().begin(), program->ids().end()));
      EXPECT_FALSE(program->ids().empty());
      all.insert(all.end(), program->ids().begin(), program->ids().end());
    }
    std::sort(all.begin(), all.end());
    const auto once = std::unique(all.begin(), all.end());
    const auto duplicates = std::distance(once, all.end());
    EXPECT_EQ(duplicates, 0) << "ids were issued twice";
    std::printf("drill %s: ids %zu, of servers %zu, duplicates %lld%s\n",
                testing::UnitTest::GetInstance()->current_test_info()->name(), all.size(),
                servers_ids_.size(), static_cast<long long>(duplicates), figures().c_str());
  }

  std::vector<std::unique_ptr<RunningServer>> servers_;
  std::unique_ptr<Client> client_;
  std::vector<int64_t> servers_ids_;  // filled by asker_
  std::vector<std::unique_ptr<LeasingProgram>> programs_;
  std::jthread asker_;
};

TEST_F(LeaseDrill, FaultsOfServersAndRegistryFailNoIdAndRepeatNone) {
  ASSERT_NO_FATAL_FAILURE(StartServers());
  ASSERT_NO_FATAL_FAILURE(StartPrograms());
  ASSERT_TRUE(AllAreExtended());

  size_t replaced = 0;
  for (const auto& server : servers_) {
    const std::vector<MachineId> before = Machines();
    server->Kill();
    ASSERT_TRUE(AllAreExtended()) << "without a server that was killed";
    replaced += Replaced(before);
    server->StartAgain();
    ASSERT_TRUE(server->BecomesReady()) << server->log();
  }
  Count("replaced after kills", static_cast<int64_t>(replaced));
  EXPECT_GE(replaced, kPrograms) << "each lease's server was killed";

  std::vector<MachineId> before = Machines();
  servers_[1]->process().Pause();
  ASSERT_TRUE(AllAreExtended()) << "without a paused server";
  Count("replaced after a pause", static_cast<int64_t>(Replaced(before)));
  servers_[1]->process().Resume();

  ASSERT_TRUE(AllAreExtended());
  ASSERT_TRUE(AllAreBackedFor(Milliseconds(180'000)));
  before = Machines();
  ensemble().Stop(0);
  ASSERT_TRUE(AllAreExtended()) << "without the registry";
  ASSERT_TRUE(AllAreExtended()) << "without the registry";
  EXPECT_EQ(Replaced(before), 0u) << "a claim without the registry";
  ensemble().Continue(0);
  ASSERT_EQ(ensemble().AwaitReady(), Status());
  ASSERT_TRUE(AllAreExtended());

  JudgePrograms();
  for (const auto& program : programs_) program->Close();
  // A killed server keeps a program's lease until the stored bound, even if the program has another
  // lease.
  EXPECT_TRUE(Eventually(kPatience, [&] { return Held() <= static_cast<int64_t>(replaced); }))
      << Held() << " leases are held, " << replaced << " were replaced";
}

// The printed command gives leases a share of the machine ids; a later change ends none of them.
TEST_F(LeaseDrill, APlannedChangeOfSettingsEndsNoLease) {
  ASSERT_NO_FATAL_FAILURE(StartServers({"--lease_share=0"}));
  const auto refused = client_->OpenGenerator({.name = "too-early"}, Milliseconds(5'000));
  ASSERT_FALSE(refused.ok());
  const std::string command = CommandIn(PrintedCommand::kSet, refused.status().message());
  EXPECT_EQ(command, "firn set lease_share=50") << refused.status();
  const Finished pasted = Paste(PrintedCommand::kSet, command, {{"FIRN_REGISTRY", registry()}});
  ASSERT_EQ(pasted.exit_code, 0) << pasted.out << pasted.err;

  ASSERT_NO_FATAL_FAILURE(StartPrograms());
  ASSERT_TRUE(AllAreExtended());
  const std::vector<MachineId> before = Machines();
  for (const char* share : {"lease_share=70", "lease_share=10"}) {
    const Finished set = Firn({"set", share});
    ASSERT_EQ(set.exit_code, 0) << set.err;
    ASSERT_TRUE(AllAreExtended()) << share;
    ASSERT_TRUE(AllAreExtended()) << share;
  }
  EXPECT_EQ(Replaced(before), 0u);
  for (const auto& server : servers_) {
    EXPECT_EQ(server->log().find("root_changed"), std::string::npos) << server->log();
  }
  JudgePrograms();
}

// An upgrade writes the root node, and nothing else. Each lease is replaced before its interval
// ends.
TEST_F(LeaseDrill, AnUpgradeFailsNoId) {
  ASSERT_NO_FATAL_FAILURE(StartServers({}, {"--claim_window_ms=60000"}));
  ASSERT_NO_FATAL_FAILURE(StartPrograms());
  ASSERT_TRUE(AllAreExtended());
  const std::vector<MachineId> before = Machines();
  {
    const auto coordinator = OpenCoordinator(registry(), {}, SystemClock(), SystemEntropy());
    BlockingCoordinator operators(**coordinator, SystemClock());
    ASSERT_TRUE(operators.Connect(kPatience).ok());
    MetaAsRead root = *ReadMeta(operators);
    ASSERT_TRUE(SetMeta(operators, root).ok());
  }
  ASSERT_TRUE(Eventually(2 * kPatience, [&] { return Replaced(before) == kPrograms; }))
      << Replaced(before);
  ASSERT_TRUE(AllAreExtended());
  EXPECT_EQ(Meta().floor, WallMs()) << "no restore";
  const Finished doctor = Firn({"doctor"});
  EXPECT_EQ(doctor.out.find("DATA"), doctor.out.npos) << doctor.out;
  JudgePrograms();
}

}  // namespace
}  // namespace firn
