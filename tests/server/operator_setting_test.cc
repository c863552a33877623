#include "server/operator_setting.h"

#include <memory>

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

// One server's setting in a registry in memory, and an operator who reads the registry.
class OperatorSettingTest : public testing::Test {
 protected:
  static constexpr const char* kAddress = "10.0.0.7:7609";
  static constexpr const char* kPath = "/firn.IdService/configurators/10.0.0.7:7609";

  OperatorSettingTest() {
    operator_.OnSession([](SessionEvent) {});
    Put("/", "{}");
    Start();
  }

  // Starts another process of the same server.
  void Start() {
    setting_.reset();
    server_ = std::make_unique<MemoryCoordinator>(tree_);
    server_->OnSession([](SessionEvent) {});
    setting_ = std::make_unique<OperatorSetting>(*server_, entropy_, kAddress);
  }

  void Pass(Milliseconds d) {
    for (const BootMs until = clock_.Boot() + d; clock_.Boot() < until;) {
      clock_.Advance(Milliseconds(50));
      setting_->Tick(clock_.Boot());
      while (server_->Dispatch(Milliseconds(0)) + operator_.Dispatch(Milliseconds(0)) > 0) {
      }
    }
  }

  void Write(firn::Write write) {
    operator_.Multi({std::move(write)},
                    [](const WriteOutcome& outcome) { EXPECT_TRUE(outcome.status.ok()); });
  }
  void Put(const std::string& path, const std::string& data) {
    Write(Write::Create(path, data, Lifetime::kPersistent));
  }
  void PutWord(const Configurator& word) {
    for (const auto path : {kServicePath, kConfiguratorsPath}) {
      if (!tree_.Peek(path)) Put(std::string(path), "");
    }
    Put(kPath, FormatConfigurator(word));
  }
  std::optional<Configurator> Stands() const {
    const auto node = tree_.Peek(kPath);
    if (!node) return std::nullopt;
    return ParseConfigurator(node->data).value_or({});
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SeededEntropy entropy_{7};
  MemoryTree tree_{clock_};
  MemoryCoordinator operator_{tree_};
  std::unique_ptr<MemoryCoordinator> server_;
  std::unique_ptr<OperatorSetting> setting_;
};

TEST_F(OperatorSettingTest, WritesNothingForOnline) {
  EXPECT_FALSE(setting_->known());
  Pass(Milliseconds(500));
  EXPECT_TRUE(setting_->known());
  EXPECT_FALSE(setting_->offline());
  setting_->Set(false);
  Pass(Milliseconds(5000));
  EXPECT_FALSE(Stands());
}

TEST_F(OperatorSettingTest, ASettingAppliesAtOnceAndIsWritten) {
  setting_->Set(true);
  EXPECT_TRUE(setting_->offline());
  Pass(Milliseconds(5000));
  EXPECT_TRUE(setting_->offline());
  ASSERT_TRUE(Stands());
  EXPECT_TRUE(Stands()->disabled);
}

TEST_F(OperatorSettingTest, SurvivesTheProcess) {
  setting_->Set(true);
  Pass(Milliseconds(5000));
  Start();
  EXPECT_FALSE(setting_->known());
  Pass(Milliseconds(500));
  EXPECT_TRUE(setting_->known());
  EXPECT_TRUE(setting_->offline());
  setting_->Set(false);
  Pass(Milliseconds(5000));
  EXPECT_FALSE(Stands()->disabled);
}

TEST_F(OperatorSettingTest, FollowsChangesInTheRegistry) {
  PutWord({.disabled = true});
  Pass(Milliseconds(500));
  EXPECT_TRUE(setting_->offline());
  Write(Write::Set(kPath, FormatConfigurator({}), Write::kAnyVersion));
  Pass(Milliseconds(500));
  EXPECT_FALSE(setting_->offline());
  Write(Write::Set(kPath, FormatConfigurator({.disabled = true}), Write::kAnyVersion));
  Pass(Milliseconds(500));
  Write(Write::Erase(kPath, Write::kAnyVersion));
  Pass(Milliseconds(500));
  EXPECT_FALSE(setting_->offline());
}

TEST_F(OperatorSettingTest, TheLastSettingApplies) {
  PutWord({.weight = 50});
  Pass(Milliseconds(500));
  setting_->Set(true);
  Pass(Milliseconds(100));
  setting_->Set(false);
  Pass(Milliseconds(5000));
  EXPECT_FALSE(setting_->offline());
  EXPECT_FALSE(Stands()->disabled);
  Write(Write::Set(kPath, FormatConfigurator({.disabled = true}), Write::kAnyVersion));
  Pass(Milliseconds(500));
  EXPECT_TRUE(setting_->offline()) << "once written, the registry's setting applies again";
}

TEST_F(OperatorSettingTest, KeepsTheWeight) {
  PutWord({.weight = 30});
  Pass(Milliseconds(500));
  setting_->Set(true);
  Pass(Milliseconds(5000));
  EXPECT_EQ(Stands(), (Configurator{.weight = 30, .disabled = true}));
}

TEST_F(OperatorSettingTest, NeverLeavesANodeAtTheUnguardedVersion) {
  PutWord({.weight = 30});
  tree_.SetVersion(kPath, -2);
  Pass(Milliseconds(500));
  for (const bool offline : {true, false}) {
    setting_->Set(offline);
    Pass(Milliseconds(5000));
    EXPECT_EQ(Stands(), (Configurator{.weight = 30, .disabled = offline}));
    EXPECT_GE(tree_.Peek(kPath)->stat.version, 0);
  }
}

TEST_F(OperatorSettingTest, IgnoresSettingsOfOtherServers) {
  for (const auto path : {kServicePath, kConfiguratorsPath}) Put(std::string(path), "");
  Put("/firn.IdService/configurators/10.0.0.8:7609", FormatConfigurator({.disabled = true}));
  Pass(Milliseconds(500));
  EXPECT_TRUE(setting_->known());
  EXPECT_FALSE(setting_->offline());
}

TEST_F(OperatorSettingTest, IgnoresAnInvalidSetting) {
  for (const auto path : {kServicePath, kConfiguratorsPath}) Put(std::string(path), "");
  Put(kPath, "off, please");
  Pass(Milliseconds(500));
  EXPECT_FALSE(setting_->offline());
  setting_->Set(true);
  Pass(Milliseconds(5000));
  EXPECT_TRUE(Stands()->disabled);
}

}  // namespace
}  // namespace firn
