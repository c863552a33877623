#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/seam/coordinator.h"
#include "tests/drill/claimant/claimant.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {

// A temporary cluster of real processes with one fault. At the end, every process is killed, all
// ids that any of them issued are checked for duplicates, and one line is printed: ids, duplicates,
// the longest stall, machine ids, and the drill's own figures.
//
// A test fails if an id was issued twice, or if none was issued. Each test must check that its
// fault had an effect. No test asserts a duration.
class Drill : public testing::Test {
 protected:
  static constexpr const char* kClusterPath = "/firn/drill";

  Drill();
  void TearDown() override;

  // Starts a real ensemble, and creates a cluster with `workers` machine ids in each rack.
  void StartEnsemble(int members, int workers = 8, const std::vector<std::string>& init_flags = {});
  // Creates such a cluster in a directory.
  void MakeDirectoryCluster(int workers = 8);
  void InitCluster(int workers, const std::vector<std::string>& flags = {});

  ZooKeeper& ensemble() { return *zookeeper_; }
  const std::string& registry() const { return registry_; }
  std::string folder(const std::string& name) const { return folder_ / name; }

  // Starts a claimant, or restarts the claimant of this name with its state folder.
  Claimant& Launch(const std::string& name, ClaimantOptions options = {});

  // These functions wait for a condition and return whether it became true. A failure shows the
  // last status.
  testing::AssertionResult Serves(Claimant& claimant);
  testing::AssertionResult IssuesMore(Claimant& claimant, size_t runs = 100);
  // Waits until its calls are refused. `reason`: a part of the refusal's or the claim's message.
  testing::AssertionResult Refuses(Claimant& claimant, const std::string& reason);
  testing::AssertionResult Logs(Claimant& claimant, const std::string& text);
  template <typename Condition>
  testing::AssertionResult Waits(Claimant& claimant, const std::string& what, Condition holds);

  void KillHard(Claimant& claimant);
  void StopCleanly(Claimant& claimant);

  // Runs `firn` with this registry.
  Finished Firn(const std::vector<std::string>& words);

  // These functions read the registry through the test's own session.
  Result<Node> ReadNode(const std::string& path);
  ClusterMeta Meta();
  SlotRecord RecordOf(MachineId machine);
  int64_t VersionOf(MachineId machine);
  static Slot SlotOf(MachineId machine);

  // Adds a measured time or number of this drill to the line at the end.
  void Figure(const std::string& name, Milliseconds value);
  void Count(const std::string& name, int64_t value);
  void FigureFirstId(const std::string& name, Claimant& claimant);
  const std::string& figures() const { return figures_; }

  // The registry address that the test uses; claimants may use others.
  std::string registry_;

 private:
  void Judge();

  TempDir folder_;
  TempDir memory_{kMemoryDir};
  std::unique_ptr<ZooKeeper> zookeeper_;
  std::vector<std::unique_ptr<Claimant>> claimants_;
  std::map<std::string, int> ports_;
  std::string figures_;
};

template <typename Condition>
testing::AssertionResult Drill::Waits(Claimant& claimant, const std::string& what,
                                      Condition holds) {
  if (Eventually(kPatience, holds)) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << claimant.name() << " is not " << what
         << "; its status: " << FormatStatus(claimant.status()) << claimant.Log();
}

}  // namespace firn
