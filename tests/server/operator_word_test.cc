#include "server/operator_word.h"

#include <memory>

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

// One server's setting in a registry in memory, and an operator who reads the registry.
class OperatorWordTest : public testing::Test {
 protected:
  static constexpr const char* kAddress = "10.0.0.7:7609";
  static constexpr const char* kPath = "/firn.IdService/configurators/10.0.0.7:7609";

  OperatorWordTest() {
    operator_.OnSession([](SessionEvent) {});
    Put("/", "{}");
    Start();
  }

  // Starts another process of the same server.
  void Start() {
    word_.reset();
    server_ = std::make_unique<MemoryCoordinator>(tree_);
    server_->OnSession([](SessionEvent) {});
    word_ = std::make_unique<OperatorWord>(*server_, entropy_, kAddress);
  }

  void Pass(Milliseconds d) {
    for (const BootMs until = clock_.Boot() + d; clock_.Boot() < until;) {
      clock_.Advance(Milliseconds(50));
      word_->Tick(clock_.Boot());
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
  std::unique_ptr<OperatorWord> word_;
};

TEST_F(OperatorWordTest, WritesNothingForOnline) {
  EXPECT_FALSE(word_->known());
  Pass(Milliseconds(500));
  EXPECT_TRUE(word_->known());
  EXPECT_FALSE(word_->offline());
  word_->Say(false);
  Pass(Milliseconds(5000));
  EXPECT_FALSE(Stands());
}

TEST_F(OperatorWordTest, ASettingAppliesAtOnceAndIsWritten) {
  word_->Say(true);
  EXPECT_TRUE(word_->offline());
  Pass(Milliseconds(5000));
  EXPECT_TRUE(word_->offline());
  ASSERT_TRUE(Stands());
  EXPECT_TRUE(Stands()->disabled);
}

TEST_F(OperatorWordTest, SurvivesTheProcess) {
  word_->Say(true);
  Pass(Milliseconds(5000));
  Start();
  EXPECT_FALSE(word_->known());
  Pass(Milliseconds(500));
  EXPECT_TRUE(word_->known());
  EXPECT_TRUE(word_->offline());
  word_->Say(false);
  Pass(Milliseconds(5000));
  EXPECT_FALSE(Stands()->disabled);
}

TEST_F(OperatorWordTest, FollowsChangesInTheRegistry) {
  PutWord({.disabled = true});
  Pass(Milliseconds(500));
  EXPECT_TRUE(word_->offline());
  Write(Write::Set(kPath, FormatConfigurator({}), Write::kAnyVersion));
  Pass(Milliseconds(500));
  EXPECT_FALSE(word_->offline());
  Write(Write::Set(kPath, FormatConfigurator({.disabled = true}), Write::kAnyVersion));
  Pass(Milliseconds(500));
  Write(Write::Erase(kPath, Write::kAnyVersion));
  Pass(Milliseconds(500));
  EXPECT_FALSE(word_->offline());
}

TEST_F(OperatorWordTest, TheLastSettingApplies) {
  PutWord({.weight = 50});
  Pass(Milliseconds(500));
  word_->Say(true);
  Pass(Milliseconds(100));
  word_->Say(false);
  Pass(Milliseconds(5000));
  EXPECT_FALSE(word_->offline());
  EXPECT_FALSE(Stands()->disabled);
  Write(Write::Set(kPath, FormatConfigurator({.disabled = true}), Write::kAnyVersion));
  Pass(Milliseconds(500));
  EXPECT_TRUE(word_->offline()) << "once written, the registry's setting applies again";
}

TEST_F(OperatorWordTest, KeepsTheWeight) {
  PutWord({.weight = 30});
  Pass(Milliseconds(500));
  word_->Say(true);
  Pass(Milliseconds(5000));
  EXPECT_EQ(Stands(), (Configurator{.weight = 30, .disabled = true}));
}

TEST_F(OperatorWordTest, NeverLeavesANodeAtTheUnguardedVersion) {
  PutWord({.weight = 30});
  tree_.SetVersion(kPath, -2);
  Pass(Milliseconds(500));
  for (const bool offline : {true, false}) {
    word_->Say(offline);
    Pass(Milliseconds(5000));
    EXPECT_EQ(Stands(), (Configurator{.weight = 30, .disabled = offline}));
    EXPECT_GE(tree_.Peek(kPath)->stat.version, 0);
  }
}

TEST_F(OperatorWordTest, IgnoresSettingsOfOtherServers) {
  for (const auto path : {kServicePath, kConfiguratorsPath}) Put(std::string(path), "");
  Put("/firn.IdService/configurators/10.0.0.8:7609", FormatConfigurator({.disabled = true}));
  Pass(Milliseconds(500));
  EXPECT_TRUE(word_->known());
  EXPECT_FALSE(word_->offline());
}

TEST_F(OperatorWordTest, IgnoresAnInvalidSetting) {
  for (const auto path : {kServicePath, kConfiguratorsPath}) Put(std::string(path), "");
  Put(kPath, "off, please");
  Pass(Milliseconds(500));
  EXPECT_FALSE(word_->offline());
  word_->Say(true);
  Pass(Milliseconds(5000));
  EXPECT_TRUE(Stands()->disabled);
}

}  // namespace
}  // namespace firn
