#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/issue/segment/ordered.h"
#include "tests/server/issue/segment/ordered_rig.h"

namespace firn {
namespace {

// What the screens show: WhyNot and the tag's trouble.
class OrderedTroubleTest : public testing::Test, protected OrderedServers {};

TEST_F(OrderedTroubleTest, ATagIsRefusedUntilTheFirstOwnerIsKnown) {
  for (Server* server : {&first_, &second_}) {
    EXPECT_TRUE(server->tag->WhyNot().has_value());
    Pass(Milliseconds(10));
    EXPECT_TRUE(server->tag->WhyNot().has_value());
    EXPECT_NE(server->tag->status().trouble, "");
  }
  Own(first_);
  for (Server* server : {&first_, &second_}) EXPECT_EQ(server->tag->WhyNot(), std::nullopt);
  Pass(Milliseconds(10));
  Leave(first_);
  for (Server& server : servers_) server.link.owner = nullptr;
  Pass(OwnerSource::kHold - Milliseconds(10));
  for (Server* server : {&first_, &second_}) {
    EXPECT_EQ(server->tag->WhyNot(), std::nullopt) << "calls wait for the next owner";
  }
}

TEST_F(OrderedTroubleTest, AServerThatStartsRefusesCallsUntilItHasReadTheOwners) {
  Own(first_);
  second_.link.starts = true;
  EXPECT_EQ(Ask(second_), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kNotReady);
  EXPECT_TRUE(call_.refusal().another_server_may_help);
  EXPECT_EQ(second_.tag->WhyNot()->message, call_.refusal().message);
  second_.link.starts = false;
  EXPECT_EQ(second_.tag->WhyNot(), std::nullopt);
  EXPECT_GT(One(second_), 0);
}

TEST_F(OrderedTroubleTest, AServerIsReadyAgainOnceAnOwnerGivesNumbers) {
  second_.link.trouble = "the cluster is frozen";
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  Pass(Milliseconds(5'000));
  EXPECT_TRUE(second_.tag->WhyNot().has_value());
  EXPECT_EQ(
      second_.tag->status().trouble,
      "unavailable: no owner of this tag's numbers answers this server: the cluster is frozen");
  Own(first_);
  EXPECT_TRUE(second_.tag->WhyNot().has_value());
  for (int i = 0; i < 250; ++i) {
    AnswerAll();
    Pass(Milliseconds(10));
  }
  EXPECT_EQ(second_.tag->WhyNot(), std::nullopt) << "it has asked, although no call waits";
  EXPECT_EQ(second_.tag->status().trouble, "");
}

TEST_F(OrderedTroubleTest, ARefusalLastsWithoutCallsWhileTheOwnerGivesNoNumbers) {
  Own(first_);
  EXPECT_GT(One(second_), 0);
  clock_.Advance(kWindow);  // the registry is unreachable: the owner's window ends
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  PassSlowly(Milliseconds(2'500));
  second_.tag->TakeBack(call_);
  for (const bool confirms : {true, false}) {
    second_.link.confirms = confirms;
    for (int i = 0; i < 10; ++i) {
      PassSlowly(Milliseconds(1'000));
      const auto why = second_.tag->WhyNot();
      ASSERT_TRUE(why.has_value()) << confirms << " " << i;
      EXPECT_EQ(why->reason, Reason::kStoreDown);
      EXPECT_NE(second_.tag->status().trouble, "");
    }
  }
}

TEST_F(OrderedTroubleTest, ATagWithoutCallsIsRefusedWhileNoOwnerIsKnown) {
  Own(first_);
  PassSlowly(Milliseconds(5'000));
  for (Server* server : {&first_, &second_}) EXPECT_EQ(server->tag->WhyNot(), std::nullopt);
  for (Server& server : servers_) {
    server.link.confirms = false;
    server.link.trouble = "the registry does not answer";
  }
  for (Server* server : {&first_, &second_}) {
    EXPECT_EQ(server->tag->WhyNot(), std::nullopt) << "calls wait for another owner";
  }
  PassSlowly(OwnerSource::kHold + Milliseconds(20));
  for (Server* server : {&first_, &second_}) {
    const auto why = server->tag->WhyNot();
    ASSERT_TRUE(why.has_value());
    EXPECT_EQ(why->reason, Reason::kStoreDown);
    EXPECT_THAT(why->message, testing::HasSubstr("the registry does not answer"));
    EXPECT_THAT(server->tag->status().trouble, testing::HasSubstr("the registry does not answer"));
    server->link.confirms = true;
    EXPECT_EQ(server->tag->WhyNot(), std::nullopt);
    EXPECT_EQ(server->tag->status().trouble, "");
  }
  EXPECT_EQ(ledger_.next, 1) << "no number was taken to find this out";
}

TEST_F(OrderedTroubleTest, ATroubleOfTheStoreIsShownUntilTheOwnerHasNumbers) {
  Own(first_);
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  for (int i = 0; i < 50; ++i) {
    while (!ledger_.questions.empty()) ledger_.Fail(NotFound("there is no row"));
    Pass(Milliseconds(10));
    second_.tag->Issue(call_);
  }
  second_.tag->TakeBack(call_);
  for (int i = 0; i < 500; ++i) {
    first_.term.Extend(clock_.Boot() + kWindow);
    while (!ledger_.questions.empty()) ledger_.Fail(NotFound("there is no row"));
    Pass(Milliseconds(10));
    EXPECT_TRUE(second_.tag->WhyNot().has_value());
    EXPECT_THAT(second_.tag->status().trouble, testing::HasSubstr("there is no row"));
  }
  for (int i = 0; i < 500; ++i) {
    first_.term.Extend(clock_.Boot() + kWindow);
    AnswerAll();
    Pass(Milliseconds(10));
  }
  EXPECT_EQ(second_.tag->WhyNot(), std::nullopt);
  EXPECT_EQ(second_.tag->status().wasted, 1) << "by the request that found numbers";
}

// The pauses between failed requests have grown so long that calls no longer wait.
TEST_F(OrderedTroubleTest, CallsWaitAgainAsSoonAsAnOwnerIsKnown) {
  for (int i = 0; i < 500 && Ask(second_) == Verdict::kWait; ++i) PassSlowly(Milliseconds(100));
  ASSERT_EQ(Ask(second_), Verdict::kRefused);
  Own(first_);
  Pass(Milliseconds(10));
  EXPECT_GT(One(second_), 0);
}

TEST_F(OrderedTroubleTest, CallsWaitAgainAsSoonAsThereIsAnotherOwner) {
  Own(first_);
  second_.link.refusal = "its owner cannot reach the store";
  second_.link.trouble = "this server could own nothing";
  for (int i = 0; i < 500 && Ask(second_) == Verdict::kWait; ++i) PassSlowly(Milliseconds(100));
  ASSERT_EQ(Ask(second_), Verdict::kRefused);
  EXPECT_THAT(call_.refusal().message, testing::HasSubstr(second_.link.refusal));
  EXPECT_THAT(call_.refusal().message, testing::Not(testing::HasSubstr(second_.link.trouble)));
  second_.link.refusal.clear();
  Own(third_);
  ++second_.link.change;
  Pass(Milliseconds(10));
  EXPECT_GT(One(second_), 0);
}

TEST_F(OrderedTroubleTest, AFormerOwnerHasNoTrouble) {
  Own(first_);
  EXPECT_EQ(Ask(first_), Verdict::kWait);
  Leave(first_);
  Own(second_);
  AnswerAll();
  EXPECT_EQ(first_.tag->status().trouble, "");
  EXPECT_EQ(first_.tag->own()->status().trouble, "");
}

TEST_F(OrderedTroubleTest, AFormerOwnerHasNoTroubleIfItsLastRequestFails) {
  Own(first_);
  EXPECT_EQ(Ask(first_), Verdict::kWait);
  Leave(first_);
  ledger_.Fail(Unknown("no answer"));
  EXPECT_EQ(first_.tag->own()->status().trouble, "");
}

TEST_F(OrderedTroubleTest, AFailedRequestOfAnEarlierTermDoesNotHideALaterDrop) {
  Own(first_);
  EXPECT_EQ(Ask(first_), Verdict::kWait);
  Leave(first_);
  ledger_.Fail(Unknown("no answer"));
  Own(first_);
  PassSlowly(Milliseconds(200));
  ASSERT_EQ(ledger_.questions.size(), 1U);
  first_.tag->own()->Drop("the registry has gone back in time");
  AnswerAll();
  EXPECT_THAT(first_.tag->own()->status().trouble, testing::HasSubstr("were dropped meanwhile"));
}

}  // namespace
}  // namespace firn
