#include "server/node/tag_owners.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tests/server/node/tag_owners_rig.h"

namespace firn {
namespace {

TEST_F(TagOwnersTest, OneServerOwnsTheTagAndAllSayWhich) {
  Pass(Milliseconds(6'000));
  const auto [owner, other] = Roles();
  ASSERT_TRUE(owner != nullptr && other != nullptr);
  for (const auto& [address, server] : servers_) {
    EXPECT_EQ(server->owners.report().tags.at("order"), owner->address);
    const WallMs since = server->owners.OwnerOf("order").since;
    EXPECT_GT(since, WallMs(1'700'000'000'000));
    EXPECT_LT(since, clock_.Read().wall);
  }
  EXPECT_EQ(owner->owners.report().owned + other->owners.report().owned, kPartitions);
}

TEST_F(TagOwnersTest, AServerThatStartsReadsTheOwnersFirst) {
  Pass(Milliseconds(6'000));
  const std::string owner = Roles().first->address;
  const Server& late = Start("10.0.0.3:7609", 3);
  EXPECT_TRUE(late.owners.Starts());
  Pass(Milliseconds(100));
  EXPECT_FALSE(late.owners.Starts());
  EXPECT_EQ(late.owners.OwnerOf("order").address, owner);
}

TEST_F(TagOwnersTest, AServerThatStartsKnowsNoOwnerThatDoesNotAnswer) {
  Pass(Milliseconds(6'000));
  for (const std::string& ended : {Roles().first->address, Roles().second->address}) {
    servers_.erase(ended);
  }
  const Server& late = Start("10.0.0.3:7609", 3);
  for (int i = 0; i < 20; ++i) {
    Pass(Milliseconds(100));
    EXPECT_EQ(late.owners.OwnerOf("order").address, "") << i;
  }
}

TEST_F(TagOwnersTest, AServerThatServesDoesNotStartAgainWithItsFirstTag) {
  Server& late = Start("10.0.0.3:7609", 3);
  late.owners.EndStart();
  EXPECT_FALSE(late.owners.Starts());
}

TEST_F(TagOwnersTest, AServerWithoutARegistryDoesNotReadTheOwnersForever) {
  const Server& late = Start("10.0.0.3:7609", 3);
  cut_off_.insert(late.address);
  Pass(TagOwners::kFirstLook - Milliseconds(20));
  EXPECT_TRUE(late.owners.Starts());
  Pass(Milliseconds(50));
  EXPECT_FALSE(late.owners.Starts());
}

TEST_F(TagOwnersTest, AHandOverRefusesNoCall) {
  Pass(Milliseconds(6'000));
  const auto [owner, other] = Roles();
  const int64_t before = One(*other);
  EXPECT_GT(One(*owner), before);
  owner->owners.HandOver();
  Pass(Milliseconds(10));
  const int64_t after = One(*owner);
  EXPECT_GT(after, before + 1);
  Pass(Beat::kWindow / 2);
  EXPECT_FALSE(owner->tag->own()->owns());
  EXPECT_TRUE(owner->owners.handed_over());
  EXPECT_TRUE(other->tag->own()->owns());
  EXPECT_GT(One(*other), after);
}

// The tag is idle before the call, so its tick is due only after a second.
TEST_F(TagOwnersTest, ACallOfAnIdleTagIsRepeatedAsSoonAsANewOwnerGivesNumbers) {
  Pass(Milliseconds(6'000));
  const auto [owner, other] = Roles();
  One(*other);
  Pass(Milliseconds(1'500));
  owner->owners.HandOver();
  while (owner->tag->own()->owns()) Pass(Milliseconds(10));
  IssueCall call;
  call.Begin({.count = 1});
  ASSERT_EQ(owner->tag->Issue(call), Verdict::kWait);
  while (!other->tag->own()->owns()) Pass(Milliseconds(10));
  Pass(Milliseconds(30));
  EXPECT_EQ(owner->tag->Issue(call), Verdict::kIssued) << call.refusal();
}

TEST_F(TagOwnersTest, AServerWhoseLastTagWasDeletedHasNone) {
  Server& server = *Roles().second;
  EXPECT_TRUE(server.owners.has_tags());
  TagNode node{OrderDefinition()};
  node.deleted = true;
  server.tags.Saw("order", node);
  server.tag.reset();
  Pass(Milliseconds(20));
  EXPECT_FALSE(server.owners.has_tags());
  EXPECT_TRUE(server.owners.report().tags.empty());
}

TEST_F(TagOwnersTest, AServerThatCannotReachTheOwnerSaysSoFirst) {
  Pass(Milliseconds(6'000));
  const auto [owner, other] = Roles();
  cut_off_.insert(other->address);
  unreachable_[other->address] = owner->address;
  Pass(Beat::kWindow + Milliseconds(100));
  EXPECT_EQ(other->owners.Trouble("order"), "this server cannot reach " + owner->address);
  unreachable_.clear();
  Pass(Milliseconds(20));
  EXPECT_EQ(other->owners.Trouble("order"),
            "the registry does not acknowledge this server's renewals");
}

TEST_F(TagOwnersTest, AnotherServerTakesOverAfterALoss) {
  Pass(Milliseconds(6'000));
  const std::string lost = Roles().first->address;
  const int64_t before = One(*Roles().first);
  servers_.erase(lost);
  Pass(Milliseconds(6'000));
  EXPECT_GT(One(*servers_.begin()->second), before);
}

TEST_F(TagOwnersTest, TakesOnlyForServersThatKnowTheTenureAndTheForm) {
  Pass(Milliseconds(6'000));
  const auto [owner, other] = Roles();
  One(*owner);
  One(*other);
  EXPECT_FALSE(owner->owners.TakeFor(last_take_).value().empty());
  PeerTake take = last_take_;
  for (const std::string& secret : {std::string(32, '0'), std::string(32, '1'), std::string()}) {
    take.secret = secret;
    EXPECT_EQ(owner->owners.TakeFor(take).code(), Code::kNotFound);
  }
  take = last_take_;
  take.tag = "other";
  EXPECT_EQ(owner->owners.TakeFor(take).code(), Code::kNotFound);
  take = last_take_;
  take.form += "x";
  EXPECT_EQ(owner->owners.TakeFor(take).code(), Code::kNotFound);
  PeerTake none = last_take_;
  none.count = -5;
  EXPECT_EQ(owner->owners.TakeFor(none).value().size(), 1);
  EXPECT_EQ(other->owners.TakeFor(last_take_).code(), Code::kNotFound)
      << "its tenure has another secret";
}

TEST_F(TagOwnersTest, AsksTheOwnersEvenIfNoCallWaits) {
  Pass(Milliseconds(9'000));
  const auto [owner, other] = Roles();
  const Range answer = *owner->owners.TakeFor(probe_);
  EXPECT_TRUE(TagOwners::Confirms(answer, PartitionOf("order")));
  uint64_t confirmed = 0;
  for (size_t i = 0; i < kPartitions; ++i) confirmed += TagOwners::Confirms(answer, i) ? 1U : 0U;
  EXPECT_EQ(confirmed, owner->owners.report().owned);
  EXPECT_EQ(owner->owners.report().answered, 0U);
}

// A new owner may be asked before it has read that a partition names it.
TEST_F(TagOwnersTest, ATenureWithoutATermYetNeitherConfirmsNorDenies) {
  Pass(Milliseconds(6'000));
  const Server& late = Start("10.0.0.3:7609", 3);
  Pass(Milliseconds(500));
  ASSERT_EQ(late.owners.report().owned, 0U);
  const Result<Range> answer =
      servers_[late.address]->owners.TakeFor({.secret = Secret(late), .tag = {}, .form = {}});
  EXPECT_EQ(answer.value_or({1, 2}), Range{}) << answer.status();
}

TEST_F(TagOwnersTest, ConfirmsNothingOnceTheWindowIsOver) {
  Pass(Milliseconds(9'000));
  const auto [owner, other] = Roles();
  EXPECT_TRUE(owner->owners.TakeFor(probe_).ok());
  clock_.Advance(Beat::kWindow);  // and the control thread hangs
  EXPECT_EQ(owner->owners.TakeFor(probe_).code(), Code::kUnavailable);
}

// The owner has given the partition up and owns another one under the same tenure.
TEST_F(TagOwnersTest, AnOwnerConfirmsOnlyThePartitionsThatItNames) {
  Pass(Milliseconds(9'000));
  const auto [owner, other] = Roles();
  cut_off_.insert(other->address);
  const int64_t all = (int64_t{1} << kPartitions) - 1;
  for (const bool confirms : {true, false}) {
    const int64_t order = int64_t{1} << PartitionOf("order");
    confirmation_ = TagOwners::Confirmation(confirms ? order : all - order);
    Pass(TagOwners::kConfirmedFor + Beat::kWindow);
    EXPECT_EQ(other->owners.Knows("order"), confirms);
  }
}

TEST_F(TagOwnersTest, AnOwnerThatTheOtherServerCannotReachHandsOver) {
  Pass(Milliseconds(6'000));
  const auto [owner, other] = Roles();
  const int64_t before = One(*owner);
  unreachable_[other->address] = owner->address;
  Pass(Milliseconds(9'000));
  EXPECT_TRUE(other->tag->own()->owns());
  EXPECT_GT(One(*other), before);
}

TEST_F(TagOwnersTest, OwnsNothingWhileTheRegistryDoesNotAnswer) {
  Pass(Milliseconds(6'000));
  Server& owner = *Roles().first;
  const uint64_t taken = owner.owners.report().taken_over;
  clock_.Advance(Beat::kWindow);
  owner.owners.Tick(clock_.Boot());
  EXPECT_EQ(owner.owners.report().owned, 0U);
  EXPECT_EQ(owner.owners.OwnerOf("order").address, "");
  EXPECT_NE(owner.owners.Trouble("order"), "");
  while (owner.link.Dispatch(Milliseconds(0)) > 0) owner.owners.Tick(clock_.Boot());
  EXPECT_EQ(owner.owners.OwnerOf("order").address, owner.address);
  EXPECT_EQ(owner.owners.report().taken_over, taken) << "the same term continues";
}

// All screens show these values.
void ExpectKnown(const TagOwners& owners, const Ordered& tag, bool known) {
  const TagOwner owner = owners.OwnerOf("order");
  EXPECT_EQ(!owner.address.empty(), known);
  EXPECT_EQ(owner.since != WallMs(), known);
  EXPECT_EQ(owners.Knows("order"), known);
  EXPECT_EQ(!owners.report().tags.at("order").empty(), known);
  EXPECT_EQ(tag.WhyNot().has_value(), !known);
  EXPECT_EQ(tag.status().trouble.empty(), known);
}

TEST_F(TagOwnersTest, NoServerKnowsAnOwnerWhileTheRegistryIsUnreachable) {
  for (const bool called : {false, true}) {
    Pass(Milliseconds(9'000));
    for (const auto& [address, server] : servers_) {
      if (called) One(*server);
      ExpectKnown(server->owners, *server->tag, true);
      cut_off_.insert(address);
    }
    Pass(Milliseconds(10'000));
    IssueCall call;
    if (called) {
      call.Begin({.count = 1});
      Server& other = *Roles().second;
      EXPECT_EQ(other.tag->Issue(call), Verdict::kWait);
      Pass(Milliseconds(3'000));
      other.tag->TakeBack(call);
    }
    for (int second = 0; second < 20; ++second) {
      Pass(Milliseconds(1'000));
      for (const auto& [address, server] : servers_) {
        ExpectKnown(server->owners, *server->tag, false);
        EXPECT_NE(server->owners.Trouble("order"), "");
      }
    }
    cut_off_.clear();
    Pass(Milliseconds(9'000));
    for (const auto& [address, server] : servers_) {
      ExpectKnown(server->owners, *server->tag, true);
    }
  }
}

TEST_F(TagOwnersTest, AServerThatIsCutOffFromTheRegistryKnowsAnOwnerThatAnswers) {
  Pass(Milliseconds(9'000));
  const auto [owner, other] = Roles();
  cut_off_.insert(other->address);
  int64_t last = 0;
  for (int second = 0; second < 60; ++second) {
    Pass(Milliseconds(1'000));
    ExpectKnown(other->owners, *other->tag, true);
    EXPECT_EQ(other->owners.OwnerOf("order").address, owner->address);
    if (second % 20 != 0) continue;
    const int64_t number = One(*other);
    EXPECT_GT(number, last);
    last = number;
  }
}

TEST_F(TagOwnersTest, AnUnreachableOwnerIsNotKnown) {
  Pass(Milliseconds(9'000));
  const auto [owner, other] = Roles();
  unreachable_[other->address] = owner->address;
  Pass(OwnerSource::kHold + SegmentTags::kVisitAllEvery + Milliseconds(100));
  ExpectKnown(other->owners, *other->tag, false);
  EXPECT_EQ(other->owners.Trouble("order"), "this server cannot reach " + owner->address);
  unreachable_.clear();
  Pass(Milliseconds(100));
  ExpectKnown(other->owners, *other->tag, true);
}

// An edit from buffer = none, while a call waits for the store's answer.
TEST_F(TagOwnersTest, ATagThatGetsAnOwnerGivesTheStoresLateAnswerToNoCall) {
  TagDefinition raw = OrderDefinition();
  raw.name = "raw";
  raw.high = 101;
  raw.buffer = TagBuffer::kNone;
  ledger_.permits = true;
  ledger_.next = raw.high;
  Server& one = *servers_.begin()->second;
  int redefined = 0;
  one.tags.OnRedefined([&](const std::string& tag) { redefined += tag == "raw" ? 1 : 0; });
  const std::shared_ptr<Strategy> before = *one.tags.Make(raw);
  IssueCall early;
  early.Begin({.count = 1});
  ASSERT_EQ(before->Issue(early), Verdict::kWait);
  ASSERT_EQ(ledger_.questions.back().tag.name, "raw");

  raw.buffer = TagBuffer::kOwner;
  one.tags.Saw("raw", TagNode{.tag = raw});
  EXPECT_EQ(redefined, 1);
  ASSERT_EQ(before->Issue(early), Verdict::kRefused);
  EXPECT_EQ(early.refusal().reason, Reason::kNotReady);
  EXPECT_EQ(early.refusal().retry_after_ms, 1);
  ledger_.permits = false;
  for (const auto& [address, server] : servers_) {
    server->tag = std::dynamic_pointer_cast<Ordered>(*server->tags.Make(raw));
    ASSERT_NE(server->tag, nullptr);
  }
  int64_t last = raw.high;
  Pass(Milliseconds(9'000));  // the store answers
  for (int round = 0; round < 3; ++round) {
    for (const auto& [address, server] : servers_) {
      const int64_t number = One(*server);
      EXPECT_GT(number, last) << address;
      last = number;
    }
  }
  EXPECT_EQ(one.tags.status("raw")->wasted, 1);
}

TEST_F(TagOwnersTest, AProgramThatOthersCannotReachTakesNoPart) {
  const TagOwners alone(operator_, servers_.begin()->second->entropy, clock_, {});
  EXPECT_EQ(alone.Check().code(), Code::kInvalid);
}

}  // namespace
}  // namespace firn
