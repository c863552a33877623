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

// A throw-away cluster of real processes to which one bad thing is done. At its end every process
// is killed, everything that any of them ever issued is judged, and one line is printed: ids,
// duplicates, the longest stall, machine ids, and the drill's own figures.
//
// A case fails when an id was issued twice, and when nothing was issued at all. That its fault took
// hold is for the case itself to check. No case asserts a time.
class Drill : public testing::Test {
 protected:
  static constexpr const char* kClusterPath = "/firn/drill";

  Drill();
  void TearDown() override;

  // A real ensemble that serves, with a cluster of `workers` machine ids in each rack.
  void StartEnsemble(int members, int workers = 8);
  // The same in a directory.
  void MakeDirectoryCluster(int workers = 8);
  void InitCluster(int workers);

  ZooKeeper& ensemble() { return *zookeeper_; }
  const std::string& registry() const { return registry_; }
  std::string folder(const std::string& name) const { return folder_ / name; }

  // Starts a claimant; one of a name that ended before is started again on its state folder.
  Claimant& Launch(const std::string& name, ClaimantOptions options = {});

  // Each waits, and says whether it came to pass; the last status is shown when it did not.
  testing::AssertionResult Serves(Claimant& claimant);
  testing::AssertionResult IssuesMore(Claimant& claimant, size_t runs = 100);
  // Its calls are refused for `reason`: a word of the refusal's or the claim's sentence.
  testing::AssertionResult Refuses(Claimant& claimant, const std::string& reason);
  testing::AssertionResult Logs(Claimant& claimant, const std::string& text);
  template <typename Condition>
  testing::AssertionResult Waits(Claimant& claimant, const std::string& what, Condition holds);

  void KillHard(Claimant& claimant);
  void StopCleanly(Claimant& claimant);

  // The operator's command on this registry.
  Finished Firn(std::vector<std::string> arguments);

  // What the registry holds, through a session of the test's own.
  Result<Node> ReadNode(const std::string& path);
  ClusterMeta Meta();
  SlotRecord RecordOf(MachineId machine);
  int64_t VersionOf(MachineId machine);
  static Slot SlotOf(MachineId machine);

  // One of this drill's measured times or numbers, for the line at the end.
  void Figure(const std::string& name, Milliseconds value);
  void Count(const std::string& name, int64_t value);
  void FigureFirstId(const std::string& name, Claimant& claimant);
  const std::string& figures() const { return figures_; }

  // Where the test looks, when claimants are given other hosts.
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
         << claimant.name() << " never " << what
         << "; its status: " << FormatStatus(claimant.status()) << claimant.Log();
}

}  // namespace firn
