#include "server/front/desk/id_desk.h"

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/issue/plugin_rig.h"
#include "tests/support/temp_dir.h"

namespace firn::front {
namespace {

using testing::ElementsAre;

// Calls of `alice`, whose rights are in a file, for tag `order`.
class IdDeskTest : public testing::Test {
 protected:
  IdDeskTest() {
    EXPECT_EQ(issuer_.Set({"order", strategy_, {plugin_}}), Status());
    Permit("order");
  }
  void Permit(const std::string& tags) {
    std::ofstream(file_) << "redis:alice " << tags << "\n";
    EXPECT_EQ(rights_.Reload(), Status());
  }

  TempDir dir_;
  const std::string file_ = dir_ / "rights";
  std::vector<std::string> log_;
  std::shared_ptr<ScriptedPlugin> plugin_ = std::make_shared<ScriptedPlugin>("p", 1, &log_);
  std::shared_ptr<CountingStrategy> strategy_ = std::make_shared<CountingStrategy>();
  RecordingRejections rejections_;
  Issuer issuer_{rejections_};
  DeskCounters counters_;
  TagRights rights_{file_};
  IdDesk desk_{issuer_, counters_, Method::kRedis, "order", &rights_};
  DoorCall door_{.user = "redis:alice"};
};

TEST_F(IdDeskTest, GivesBackTheNumbersOfAWaitingCallWhoseRightWasWithdrawn) {
  constexpr int64_t kCount = 2 * PluginChain::kIdsPerPart;
  plugin_->does = Plugin::Effect::kEach;
  ASSERT_EQ(desk_.Ask("order", kCount, firn::Form::kNumbers, door_), Verdict::kWait);
  WaitingIds waiting = desk_.TakeWaiting();
  Permit("user");
  EXPECT_EQ(desk_.Continue(std::move(waiting), door_), Verdict::kRefused);
  EXPECT_EQ(desk_.call().refusal().reason, Reason::kRejected);
  EXPECT_TRUE(desk_.lacks_right());
  EXPECT_EQ(strategy_->lost, kCount);
  EXPECT_THAT(log_, ElementsAre("p before", "p after", "p refused REJECTED"));
  EXPECT_THAT(rejections_.reasons, ElementsAre(Reason::kRejected));
}

// Also for the name of a tag that this server served until it was deleted.
TEST_F(IdDeskTest, TellsTheSeekerWhetherTheClientMayCreateTheTag) {
  struct Seeker final : TagSeeker {
    Found Seek(std::string_view, uint64_t&, bool may_create) override {
      return may_create ? Found::kFull : Found::kNoRight;
    }
  } seeker;
  issuer_.SetSeeker(seeker);
  issuer_.Remove("order");
  for (const std::string tag : {"order", "user"}) {
    for (const bool may : {false, true}) {
      Permit(tag + (may ? ",@create" : ""));
      EXPECT_EQ(desk_.Ask(tag, 1, firn::Form::kNumbers, door_), Verdict::kRefused);
      EXPECT_EQ(desk_.call().refusal().message.find("no right to create") == std::string::npos,
                may);
    }
  }
}

}  // namespace
}  // namespace firn::front
