#include "tests/drill/drill.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/id/rack_split.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/drill/claimant/oracle.h"

namespace firn {

Drill::Drill() {
  // ZooKeeper's client library leaks a little memory at the end of a process.
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
}

void Drill::StartEnsemble(int members, int workers, const std::vector<std::string>& init_flags) {
  auto started = ZooKeeper::Start({.members = members});
  ASSERT_TRUE(started.ok()) << started.status();
  zookeeper_ = *std::move(started);
  registry_ = "zk://" + zookeeper_->hosts() + kClusterPath;
  InitCluster(workers, init_flags);
}

void Drill::MakeDirectoryCluster(int workers) {
  registry_ = "dir://" + folder("registry");
  InitCluster(workers);
}

void Drill::InitCluster(int workers, const std::vector<std::string>& flags) {
  std::vector<std::string> arguments{"init", "--brand-new", "--force",
                                     "--workers=" + std::to_string(workers)};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const Finished init = Firn(std::move(arguments));
  ASSERT_EQ(init.exit_code, 0) << init.err << init.out;
}

Claimant& Drill::Launch(const std::string& name, ClaimantOptions options) {
  const std::string& owner = options.as.empty() ? name : options.as;
  const int port =
      ports_.emplace(owner, 10'000 + 300 * static_cast<int>(ports_.size())).first->second;
  if (options.registry.empty()) options.registry = registry_;
  if (options.state_dir.empty()) options.state_dir = folder(name + ".state");
  if (options.grant_dir.empty()) options.grant_dir = memory_.path();
  int run = 1;
  for (const auto& earlier : claimants_) {
    if (earlier->name().starts_with(name + ".")) ++run;
  }
  claimants_.push_back(std::make_unique<Claimant>(name + "." + std::to_string(run), options, port,
                                                  folder_.path().string()));
  return *claimants_.back();
}

// --- waiting ------------------------------------------------------------------------------------

testing::AssertionResult Drill::Serves(Claimant& claimant) {
  return Waits(claimant, "served", [&] { return claimant.serving(); });
}

testing::AssertionResult Drill::IssuesMore(Claimant& claimant, size_t runs) {
  const size_t before = claimant.runs();
  return Waits(claimant, "issued more", [&] { return claimant.runs() >= before + runs; });
}

testing::AssertionResult Drill::Refuses(Claimant& claimant, const std::string& reason) {
  return Waits(claimant, "refused with " + reason, [&] {
    const StatusLine status = claimant.status();
    return status.answer != "issued" && (status.answer.find(reason) != std::string::npos ||
                                         status.reason.find(reason) != std::string::npos);
  });
}

testing::AssertionResult Drill::Logs(Claimant& claimant, const std::string& text) {
  return Waits(claimant, "logged " + text,
               [&] { return claimant.Log().find(text) != std::string::npos; });
}

void Drill::KillHard(Claimant& claimant) {
  claimant.process().Kill();
  ASSERT_TRUE(claimant.process().Wait(kPatience).has_value());
}

void Drill::StopCleanly(Claimant& claimant) {
  claimant.process().Signal(SIGTERM);
  EXPECT_EQ(claimant.process().Wait(kPatience), 0) << claimant.Log();
}

// --- the registry -------------------------------------------------------------------------------

Finished Drill::Firn(const std::vector<std::string>& words) {
  return RunFirn(words, {"--registry=" + registry_, "--timeout_ms=30000"});
}

Result<Node> Drill::ReadNode(const std::string& path) {
  FIRN_ASSIGN(const auto coordinator,
              OpenCoordinator(registry_, {}, SystemClock(), SystemEntropy()));
  BlockingCoordinator registry(*coordinator, SystemClock());
  FIRN_TRY(registry.Connect(kPatience));
  FIRN_TRY(registry.Sync(path));
  return registry.Read(path);
}

ClusterMeta Drill::Meta() {
  const auto node = ReadNode(kMetaPath);
  EXPECT_TRUE(node.ok()) << node.status();
  return node.ok() ? ParseMeta(node->data).value() : ClusterMeta{};
}

SlotRecord Drill::RecordOf(MachineId machine) {
  const auto node = ReadNode(SlotPath(SlotOf(machine)));
  EXPECT_TRUE(node.ok()) << node.status();
  return node.ok() ? ParseSlotRecord(node->data).value() : SlotRecord{};
}

int64_t Drill::VersionOf(MachineId machine) {
  const auto node = ReadNode(SlotPath(SlotOf(machine)));
  EXPECT_TRUE(node.ok()) << node.status();
  return node.ok() ? node->stat.version : -1;
}

Slot Drill::SlotOf(MachineId machine) {
  const RackSplit split = RackSplit::Default(Layout::Firn());
  return {.rack = split.RackOf(machine), .worker = split.WorkerOf(machine)};
}

// --- the end ------------------------------------------------------------------------------------

void Drill::Figure(const std::string& name, Milliseconds value) {
  figures_ += ", " + name + " " + std::to_string(value.count()) + " ms";
}

void Drill::Count(const std::string& name, int64_t value) {
  figures_ += ", " + name + " " + std::to_string(value);
}

void Drill::FigureFirstId(const std::string& name, Claimant& claimant) {
  const auto first = claimant.first_run();
  ASSERT_TRUE(first.has_value());
  Figure(name, first->at - claimant.launched());
}

void Drill::TearDown() {
  for (const auto& claimant : claimants_) claimant->process().Kill();
  for (const auto& claimant : claimants_) claimant->process().Wait(kPatience);
  Judge();
  if (!HasFailure()) return;
  folder_.Keep();
  if (zookeeper_ != nullptr) zookeeper_->KeepFiles();
}

void Drill::Judge() {
  if (claimants_.empty()) return;
  DuplicateOracle oracle(Layout::Firn());
  for (const auto& claimant : claimants_) {
    for (int i = 0; i < claimant->members(); ++i) {
      const std::string name =
          claimant->name() + (claimant->members() > 1 ? "-" + std::to_string(i) : "");
      for (const IssuedRun& issued : claimant->member(i).runs()) {
        const Status added = oracle.Add(name, issued);
        ASSERT_TRUE(added.ok()) << name << ": " << added;
      }
    }
  }
  const DuplicateOracle::Findings found = oracle.Judge();
  EXPECT_GT(found.ids, 0);
  EXPECT_EQ(found.duplicates, 0) << found.first_duplicate;
  std::string machines;
  for (const auto& [name, held] : oracle.machines()) {
    if (oracle.machines().size() > 6) break;
    machines += machines.empty() ? ", machine ids " : "; ";
    machines += name;
    for (const MachineId machine : held) machines += " " + std::to_string(machine.value());
  }
  std::printf("drill %s: ids %lld, duplicates %lld, longest stall of a process %lld ms%s%s\n",
              testing::UnitTest::GetInstance()->current_test_info()->name(),
              static_cast<long long>(found.ids), static_cast<long long>(found.duplicates),
              static_cast<long long>(oracle.longest_stall().count()), figures_.c_str(),
              machines.c_str());
}

}  // namespace firn
