#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/servers/provider.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {

// Runs the program on its own directory registry.
class FirnClusterTest : public testing::Test {
 protected:
  Finished Firn(const std::vector<std::string>& words) {
    return RunFirn(words, {"--registry=" + registry_});
  }

  Json FirnJson(std::vector<std::string> arguments, int exit_code = 0) {
    arguments.push_back("--json");
    const Finished finished = Firn(std::move(arguments));
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err << finished.out;
    return JsonOf(finished.out);
  }

  void Init() { FirnJson({"init", "--brand-new", "--force", "--workers=4"}); }

  std::string WriteFile(const std::string& text) {
    const std::string path = folder_ / "tags.ini";
    std::ofstream(path) << text;
    return path;
  }

  // Writes to the registry without the program.
  void Break(const std::string& path, const std::string& data) {
    Put(Write::Set(path, data, Write::kAnyVersion));
  }
  void Put(const Write& write) {
    auto coordinator = OpenCoordinator(registry_, {}, SystemClock(), SystemEntropy());
    ASSERT_TRUE(coordinator.ok()) << coordinator.status();
    BlockingCoordinator registry(**coordinator, SystemClock());
    ASSERT_TRUE(registry.Connect(Milliseconds(30'000)).ok());
    const WriteOutcome outcome = registry.Multi({write});
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }

  void Freeze(const std::string& reason) {
    auto coordinator = OpenCoordinator(registry_, {}, SystemClock(), SystemEntropy());
    ASSERT_TRUE(coordinator.ok()) << coordinator.status();
    BlockingCoordinator registry(**coordinator, SystemClock());
    ASSERT_TRUE(registry.Connect(kPatience).ok());
    Result<MetaAsRead> root = ReadMeta(registry);
    ASSERT_TRUE(root.ok()) << root.status();
    root->meta.frozen = true;
    root->meta.reason = reason;
    ASSERT_TRUE(SetMeta(registry, *root).ok());
  }

  // Creates the node of a running server with this report.
  void Announce(const ProviderReport& report) {
    for (const auto path : {kServicePath, kProvidersPath}) {
      Put(Write::Create(std::string(path), "", Lifetime::kPersistent));
    }
    Put(Write::Create(std::string(kProvidersPath) + "/" + ProviderNodeName({.address = "h:1"}),
                      FormatReport(report), Lifetime::kPersistent));
  }

  TempDir folder_;
  std::string registry_ = "dir://" + (folder_ / "registry");
};

}  // namespace firn
