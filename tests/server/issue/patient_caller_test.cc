#include "server/issue/patient_caller.h"

#include <gtest/gtest.h>

#include "tests/server/issue/plugin_rig.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

VirtualClock clock_of_test(WallMs(0));
void Sleep(std::chrono::microseconds duration) {
  clock_of_test.Advance(std::chrono::ceil<Milliseconds>(duration));
}

class PatientCallerTest : public testing::Test {
 protected:
  PatientCallerTest() {
    EXPECT_EQ(issuer_.Set({"order", strategy_, {}}), Status());
    tag_ = issuer_.Resolve("order");
  }

  std::shared_ptr<CountingStrategy> strategy_ = std::make_shared<CountingStrategy>();
  RecordingRejections rejections_;
  Issuer issuer_{rejections_};
  const Tag* tag_ = nullptr;
  PatientCaller caller_{issuer_, clock_of_test, Milliseconds(50), &Sleep};
  IssueCall call_;
  int64_t id_ = 0;
};

TEST_F(PatientCallerTest, UsesTheFastPathIfPossible) {
  EXPECT_TRUE(caller_.IssueOne(call_, *tag_, {.tag = "order"}, &id_));
  EXPECT_EQ(id_, 1);
}

TEST_F(PatientCallerTest, SleepsWhileACallWaits) {
  strategy_->waits = 40;
  EXPECT_TRUE(caller_.IssueOne(call_, *tag_, {.tag = "order"}, &id_));
  EXPECT_EQ(id_, 1);
}

TEST_F(PatientCallerTest, GivesUpAtItsTimeout) {
  strategy_->waits = 1'000;
  const BootMs begin = clock_of_test.Boot();
  EXPECT_FALSE(caller_.IssueOne(call_, *tag_, {.tag = "order"}, &id_));
  EXPECT_EQ(call_.refusal().reason, Reason::kOverloaded);
  EXPECT_EQ(clock_of_test.Boot() - begin, Milliseconds(50));
}

TEST_F(PatientCallerTest, WaitsNoTimeForThePluginsOfALongList) {
  std::vector<std::string> log;
  const auto plugin = std::make_shared<ScriptedPlugin>("slow", 1, &log);
  plugin->does = Plugin::Effect::kEach;
  ASSERT_EQ(issuer_.Set({"order", strategy_, {plugin}}), Status());
  PatientCaller hasty(issuer_, clock_of_test, Milliseconds(0), [](auto) { FAIL() << "it slept"; });
  call_.Begin(*tag_, {.tag = "order", .count = 10'000});
  EXPECT_TRUE(hasty.Issue(call_));
  EXPECT_EQ(call_.runs().count(), 10'000);
}

TEST_F(PatientCallerTest, PassesARefusalOn) {
  issuer_.Drain();
  EXPECT_FALSE(caller_.IssueOne(call_, *tag_, {.tag = "order"}, &id_));
  EXPECT_EQ(call_.refusal().reason, Reason::kDraining);
}

}  // namespace
}  // namespace firn
