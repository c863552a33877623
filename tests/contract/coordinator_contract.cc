#include "tests/contract/coordinator_contract.h"

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "registry/seam/node_version.h"
#include "registry/seam/requests.h"

namespace firn {

using Kind = SessionEvent::Kind;
using Names = std::vector<std::string>;

void CoordinatorContract::SetUp() {
  world = GetParam().make();
  ASSERT_NE(world, nullptr);
  b = Connect();
  Status prepared;
  // Creating the root may be repeated.
  for (int tries = 0; tries < 3; ++tries) {
    a = Connect();
    prepared = a->PrepareRoot();
    if (prepared.code() != Code::kUnknown) break;
  }
  ASSERT_TRUE(prepared.ok()) << prepared;
  const WriteOutcome made = a->Create("/", "meta");
  ASSERT_TRUE(made.status.ok()) << made.status;
}

std::unique_ptr<CoordinatorClient> CoordinatorContract::Connect() {
  auto client = std::make_unique<CoordinatorClient>(world->Connect());
  EXPECT_TRUE(client->AwaitSession());
  client->RepeatWhileDisconnected();
  return client;
}

// --- nodes --------------------------------------------------------------------------------------

TEST_P(CoordinatorContract, ReportsItsSessionOnce) {
  EXPECT_EQ(a->events, (std::vector<SessionEvent>{{Kind::kConnected, (*a)->session()}}));
  EXPECT_NE((*a)->session(), 0);
  EXPECT_NE((*a)->session(), (*b)->session());
}

TEST_P(CoordinatorContract, ReadsAnotherClientsWrite) {
  const std::string data("{\"bytes\":\"\0\xff\n\"}", 16);
  ASSERT_TRUE(a->Create("/x", data).status.ok());
  ASSERT_TRUE(b->Sync().ok());
  const Result<Node> node = b->Read("/x");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->data, data);
  EXPECT_EQ(node->stat.version, 0);
  EXPECT_EQ(node->stat.ephemeral_owner, 0);
  EXPECT_NE(node->stat.created_zxid, 0);
}

TEST_P(CoordinatorContract, ReturnsNotFoundForAMissingNode) {
  EXPECT_EQ(a->Read("/none").code(), Code::kNotFound);
  EXPECT_EQ(a->List("/none").code(), Code::kNotFound);
  const WriteOutcome set = a->Set("/none", "x", Write::kAnyVersion);
  EXPECT_EQ(set.status.code(), Code::kNotFound);
  EXPECT_EQ(set.failed, 0);
}

TEST_P(CoordinatorContract, ListsChildrenSorted) {
  for (const char* name : {"b", "a", ".hidden", "node", "tmp%2F", "zeta", "ä b"}) {
    ASSERT_TRUE(a->Create(std::string("/") + name, "").status.ok()) << name;
  }
  EXPECT_EQ(*a->List("/"), (Names{".hidden", "a", "b", "node", "tmp%2F", "zeta", "ä b"}));
  EXPECT_EQ(*a->List("/a"), Names{});
}

TEST_P(CoordinatorContract, AcceptsNamesUpToItsLimit) {
  const std::string path = "/" + std::string(Coordinator::kNameBytesMax, 'u');
  ASSERT_TRUE(a->Create(path, "1").status.ok());
  ASSERT_TRUE(a->Create(ChildPath(path, "child"), "2").status.ok());
  EXPECT_EQ(a->Read(path)->data, "1");
  EXPECT_EQ(*a->List("/"), Names{path.substr(1)});
  EXPECT_EQ(*a->List(path), Names{"child"});
  EXPECT_EQ(a->Create(path + "u", "1").status.code(), Code::kInvalid);
}

TEST_P(CoordinatorContract, AcceptsDataUpToItsLimit) {
  const std::string most(Coordinator::kRequestBytesMax - 2, 'x');
  ASSERT_TRUE(a->Create("/x", most).status.ok());
  EXPECT_EQ(a->Read("/x")->data, most);
  EXPECT_EQ(a->Set("/x", most + "x", 0).status.code(), Code::kInvalid);
}

TEST_P(CoordinatorContract, EverySetRaisesTheVersionAndKeepsTheCreation) {
  ASSERT_TRUE(a->Create("/x", "0").status.ok());
  const NodeStat created = a->Read("/x")->stat;
  const NodeStat set = a->Set("/x", "1", 0).stats.at(0);
  EXPECT_EQ(set.version, 1);
  EXPECT_EQ(set.created_zxid, created.created_zxid);
  EXPECT_EQ(a->Read("/x")->stat, set);
}

TEST_P(CoordinatorContract, ARecreatedNodeIsAnotherCreation) {
  ASSERT_TRUE(a->Create("/x", "").status.ok());
  const NodeStat first = a->Read("/x")->stat;
  ASSERT_TRUE(a->Erase("/x").status.ok());
  ASSERT_TRUE(a->Create("/x", "").status.ok());
  EXPECT_NE(a->Read("/x")->stat.created_zxid, first.created_zxid);
  EXPECT_EQ(a->Read("/x")->stat.version, 0);
}

TEST_P(CoordinatorContract, TimestampsAreCurrentAndRise) {
  ASSERT_TRUE(a->Create("/x", "").status.ok());
  const WallMs first = a->Read("/x")->stat.modified;
  EXPECT_LT(first, SystemClock().Wall() + Milliseconds(60'000));
  EXPECT_GT(first, SystemClock().Wall() - Milliseconds(60'000));
  EXPECT_GE(a->Set("/x", "", 0).stats.at(0).modified, first);
}

// --- versions that wrap -------------------------------------------------------------------------

TEST_P(CoordinatorContract, AVersionIsThirtyTwoBitsAndWraps) {
  ASSERT_TRUE(a->Create("/x", "0").status.ok());
  const NodeStat created = a->Read("/x")->stat;
  if (!world->SetVersion("/x", INT32_MAX)) GTEST_SKIP() << "2^31 sets would take too long here";
  a = Connect();  // its server may have been restarted to set the version
  b = Connect();
  EXPECT_EQ(b->Set("/x", "1", INT32_MAX - 1).status.code(), Code::kConflict);
  const WriteOutcome set = a->Set("/x", "1", INT32_MAX);
  ASSERT_TRUE(set.status.ok()) << set.status;
  EXPECT_EQ(set.stats.at(0).version, INT32_MIN);
  EXPECT_EQ(set.stats.at(0).created_zxid, created.created_zxid);
  EXPECT_EQ(a->Read("/x")->stat.version, INT32_MIN);
  EXPECT_EQ(b->Set("/x", "2", INT32_MAX).status.code(), Code::kConflict);
  ASSERT_TRUE(b->Set("/x", "2", INT32_MIN).status.ok());
  EXPECT_EQ(a->Multi({Write::Check("/x", INT32_MIN)}).status.code(), Code::kConflict);
  EXPECT_TRUE(a->Multi({Write::Check("/x", INT32_MIN + 1)}).status.ok());
}

TEST_P(CoordinatorContract, ASetSkipsTheUnguardedVersion) {
  ASSERT_TRUE(a->Create("/x", "0").status.ok());
  if (!world->SetVersion("/x", -2)) GTEST_SKIP() << "2^32 sets would take too long here";
  a = Connect();
  b = Connect();
  std::vector<Write> writes{Write::Check("/", 0)};
  const size_t last = AddSet(writes, "/x", "1", -2);
  const WriteOutcome set = a->Multi(writes);
  ASSERT_TRUE(set.status.ok()) << set.status;
  EXPECT_TRUE(Follows(-2, set.stats.at(last).version)) << set.stats.at(last).version;
  EXPECT_EQ(b->Read("/x")->stat.version, set.stats.at(last).version);
  EXPECT_EQ(b->Read("/x")->data, "1");
  const WriteOutcome late = b->Multi(writes);
  EXPECT_EQ(late.status.code(), Code::kConflict) << "a writer that read -2, too, is too late";
  EXPECT_EQ(late.failed, 1);
}

// --- writes -------------------------------------------------------------------------------------

TEST_P(CoordinatorContract, ASetAtAnotherVersionIsAConflict) {
  ASSERT_TRUE(a->Set("/", "1", 0).status.ok());
  const WriteOutcome late = b->Set("/", "2", 0);
  EXPECT_EQ(late.status.code(), Code::kConflict);
  EXPECT_EQ(late.failed, 0);
  EXPECT_EQ(a->Read("/")->data, "1");
}

TEST_P(CoordinatorContract, ReportsConflicts) {
  ASSERT_TRUE(a->Create("/x", "").status.ok());
  ASSERT_TRUE(a->Create("/x/y", "").status.ok());
  EXPECT_EQ(a->Create("/x", "").status.code(), Code::kConflict);
  EXPECT_EQ(a->Erase("/x").status.code(), Code::kConflict);
  EXPECT_EQ(a->Erase("/x/y", 7).status.code(), Code::kConflict);
  EXPECT_EQ(a->Create("/p/q", "").status.code(), Code::kNotFound);
}

TEST_P(CoordinatorContract, AMultiIsAppliedCompletely) {
  const WriteOutcome done =
      a->Multi({Write::Check("/", 0), Write::Create("/x", "1", Lifetime::kPersistent),
                Write::Set("/x", "2", 0), Write::Create("/y", "3", Lifetime::kEphemeral),
                Write::Set("/", "moved", 0)});
  ASSERT_TRUE(done.status.ok()) << done.status;
  EXPECT_EQ(done.failed, -1);
  ASSERT_EQ(done.stats.size(), 5u);
  EXPECT_EQ(done.stats[2].version, 1);
  EXPECT_EQ(done.stats[4].version, 1);
  EXPECT_EQ(done.stats[3].ephemeral_owner, (*a)->session());
  EXPECT_EQ(a->Read("/x")->data, "2");
  EXPECT_EQ(a->Read("/y")->stat.created_zxid, done.stats[3].created_zxid);
}

TEST_P(CoordinatorContract, AMultiIsNeverAppliedPartially) {
  const struct {
    Write bad;
    Code code;
  } table[] = {
      {Write::Check("/", 9), Code::kConflict},
      {Write::Check("/none", 0), Code::kNotFound},
      {Write::Set("/", "x", 9), Code::kConflict},
      {Write::Erase("/none", 0), Code::kNotFound},
      {Write::Create("/x", "", Lifetime::kEphemeral), Code::kConflict},
  };
  for (const auto& row : table) {
    WriteOutcome refused;
    do {  // it is never applied, so it may be repeated if its answer is lost
      refused =
          a->Multi({Write::Set("/", "moved", 0), Write::Create("/x", "", Lifetime::kPersistent),
                    row.bad, Write::Create("/never", "", Lifetime::kPersistent)});
    } while (refused.status.code() == Code::kUnknown);
    EXPECT_EQ(refused.status.code(), row.code) << refused.status;
    EXPECT_EQ(refused.failed, 2);
  }
  EXPECT_EQ(a->Read("/")->data, "meta");
  EXPECT_EQ(a->Read("/")->stat.version, 0);
  EXPECT_EQ(*a->List("/"), Names{});
}

TEST_P(CoordinatorContract, ReplacesANodeInOneMulti) {
  ASSERT_TRUE(a->Create("/live", "a", Lifetime::kEphemeral).status.ok());
  const WriteOutcome done = b->Multi({Write::Set("/", "m", 0), Write::Erase("/live", 0),
                                      Write::Create("/live", "b", Lifetime::kEphemeral)});
  ASSERT_TRUE(done.status.ok()) << done.status;
  const Result<Node> live = b->Read("/live");
  EXPECT_EQ(live->data, "b");
  EXPECT_EQ(live->stat.ephemeral_owner, (*b)->session());
  a->Close();
  EXPECT_TRUE(b->Read("/live").ok());
}

// So a multi can check that a node does not exist.
TEST_P(CoordinatorContract, CreatesAndErasesANodeInOneMulti) {
  const auto if_missing = [&](const std::string& data) {
    return b->Multi({Write::Set("/", data, Write::kAnyVersion),
                     Write::Create("/gone", "", Lifetime::kPersistent), Write::Erase("/gone", 0)});
  };
  const WriteOutcome done = if_missing("first");
  ASSERT_TRUE(done.status.ok()) << done.status;
  EXPECT_EQ(a->Read("/gone").code(), Code::kNotFound);
  ASSERT_TRUE(a->Create("/gone", "", Lifetime::kPersistent).status.ok());
  const WriteOutcome refused = if_missing("second");
  EXPECT_EQ(refused.status.code(), Code::kConflict);
  EXPECT_EQ(refused.failed, 1);
  EXPECT_TRUE(a->Read("/gone").ok());
  EXPECT_EQ(a->Read("/")->data, "first");
}

TEST_P(CoordinatorContract, OneOfManyWritersWins) {
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    std::optional<Code> first, second;
    (*a)->Multi({Write::Set("/", "a", round)}, [&](WriteOutcome o) { first = o.status.code(); });
    (*b)->Multi({Write::Set("/", "b", round)}, [&](WriteOutcome o) { second = o.status.code(); });
    ASSERT_TRUE(a->Await([&] { return first.has_value(); }));
    ASSERT_TRUE(b->Await([&] { return second.has_value(); }));
    EXPECT_EQ((*first == Code::kOk) + (*second == Code::kOk), 1);
    EXPECT_EQ((*first == Code::kConflict) + (*second == Code::kConflict), 1);
  }
  EXPECT_EQ(a->Read("/")->stat.version, kRounds);
}

TEST_P(CoordinatorContract, RequestsAreAppliedInTheOrderOfTheCalls) {
  std::vector<Code> codes;
  std::optional<std::string> seen;
  for (int i = 0; i < 10; ++i) {
    (*a)->Multi({Write::Set("/", std::to_string(i), i)},
                [&](WriteOutcome o) { codes.push_back(o.status.code()); });
  }
  (*a)->Read("/", [&](Result<Node> node) { seen = node->data; });
  ASSERT_TRUE(a->Await([&] { return codes.size() == 10 && seen.has_value(); }));
  EXPECT_EQ(codes, std::vector<Code>(10, Code::kOk));
  EXPECT_EQ(*seen, "9");
}

TEST_P(CoordinatorContract, RefusesInvalidRequests) {
  for (const char* path : {"", "x", "//", "/x/", "/x//y", "/.", "/x/..", "/\n"}) {
    EXPECT_EQ(a->Read(path).code(), Code::kInvalid) << path;
    EXPECT_EQ(a->List(path).code(), Code::kInvalid) << path;
    EXPECT_EQ(a->Sync(path).code(), Code::kInvalid) << path;
    EXPECT_EQ(a->Create(path, "").status.code(), Code::kInvalid) << path;
  }
  EXPECT_EQ(a->Multi({}).status.code(), Code::kInvalid);
  EXPECT_EQ(
      a->Multi(std::vector<Write>(Coordinator::kWritesMax + 1, Write::Check("/", 0))).status.code(),
      Code::kInvalid);
}

TEST_P(CoordinatorContract, CreatesMissingParents) {
  for (int i = 0; i < 2; ++i) {
    std::optional<Status> done;
    EnsureParents(**a, "/service/providers/one", [&](Status status) { done = status; });
    ASSERT_TRUE(a->Await([&] { return done.has_value(); }));
    EXPECT_TRUE(done->ok()) << *done;
  }
  EXPECT_EQ(*a->List("/service"), Names{"providers"});
  EXPECT_EQ(*a->List("/service/providers"), Names{});
  EXPECT_TRUE(a->PrepareRoot().ok());
  EXPECT_EQ(a->Read("/")->data, "meta");
}

// --- sessions and watches -----------------------------------------------------------------------

TEST_P(CoordinatorContract, AnEphemeralNodeEndsWithItsSession) {
  ASSERT_TRUE(a->Create("/live", "a", Lifetime::kEphemeral).status.ok());
  ASSERT_TRUE(b->Sync().ok());
  EXPECT_EQ(b->ReadAndWatch("/live")->stat.ephemeral_owner, (*a)->session());
  EXPECT_EQ(b->Create("/live/child", "").status.code(), Code::kInvalid);
  a->Close();
  EXPECT_TRUE(b->Await([&] { return b->notices == 1; }));
  EXPECT_TRUE(b->Await([&] { return b->Read("/live").code() == Code::kNotFound; }));
}

TEST_P(CoordinatorContract, AWatchReportsASetOnce) {
  ASSERT_TRUE(b->ReadAndWatch("/").ok());
  ASSERT_TRUE(a->Set("/", "1", 0).status.ok());
  ASSERT_TRUE(a->Set("/", "2", 1).status.ok());
  EXPECT_TRUE(b->Await([&] { return b->notices == 1; }));
  ASSERT_TRUE(b->Sync().ok());
  EXPECT_EQ(b->Read("/")->data, "2");
  EXPECT_EQ(b->notices, 1);
}

TEST_P(CoordinatorContract, AWatchReportsCreationAndErasure) {
  EXPECT_EQ(b->ReadAndWatch("/x").code(), Code::kNotFound);
  EXPECT_EQ(b->ListAndWatch("/y").code(), Code::kNotFound);
  ASSERT_TRUE(a->Create("/x", "").status.ok());
  EXPECT_TRUE(b->Await([&] { return b->notices == 1; }));
  ASSERT_TRUE(a->Create("/y", "").status.ok());
  EXPECT_TRUE(b->Await([&] { return b->notices == 2; }));
  ASSERT_TRUE(b->Sync().ok());
  ASSERT_TRUE(b->ReadAndWatch("/x").ok());
  ASSERT_TRUE(a->Erase("/x").status.ok());
  EXPECT_TRUE(b->Await([&] { return b->notices == 3; }));
}

TEST_P(CoordinatorContract, AWatchReportsChildren) {
  ASSERT_TRUE(b->ListAndWatch("/").ok());
  ASSERT_TRUE(a->Create("/x", "").status.ok());
  EXPECT_TRUE(b->Await([&] { return b->notices == 1; }));
  ASSERT_TRUE(b->Sync().ok());
  EXPECT_EQ(*b->ListAndWatch("/"), Names{"x"});
  ASSERT_TRUE(a->Erase("/x").status.ok());
  EXPECT_TRUE(b->Await([&] { return b->notices == 2; }));
}

TEST_P(CoordinatorContract, SeveralWatchesOnOneNodeAllFire) {
  ASSERT_TRUE(b->ReadAndWatch("/").ok());
  ASSERT_TRUE(b->ReadAndWatch("/").ok());
  ASSERT_TRUE(a->Set("/", "1", 0).status.ok());
  EXPECT_TRUE(b->Await([&] { return b->notices == 2; }));
}

TEST_P(CoordinatorContract, RepeatedWatchesDoNotAccumulate) {
  constexpr int kMost = static_cast<int>(Coordinator::kWatchesMax);
  for (int i = 0; i < kMost + 10; ++i) ASSERT_TRUE(b->ReadAndWatch("/").ok());
  ASSERT_TRUE(a->Set("/", "1", 0).status.ok());
  EXPECT_TRUE(b->Await([&] { return b->notices == kMost; }));
  ASSERT_TRUE(b->Sync().ok());
  EXPECT_EQ(b->notices, kMost);
}

TEST_P(CoordinatorContract, AnAnswerCanSendARequest) {
  std::optional<std::string> seen;
  (*a)->Multi({Write::Set("/", "1", 0)}, [&](const WriteOutcome&) {
    (*a)->Read("/", [&](Result<Node> node) { seen = node->data; });
  });
  EXPECT_FALSE(seen.has_value());
  EXPECT_TRUE(a->Await([&] { return seen.has_value(); }));
  EXPECT_EQ(seen, "1");
}

TEST_P(CoordinatorContract, AnotherThreadWakesADispatch) {
  std::thread waker([this] { (*a)->Wake(); });
  const BootMs before = SystemClock().Boot();
  while ((*a)->Dispatch(Milliseconds(60'000)) != 0) {
  }
  EXPECT_LT(SystemClock().Boot(), before + Milliseconds(30'000));
  waker.join();
}

TEST_P(CoordinatorContract, DropsUnansweredRequestsAtItsEnd) {
  bool answered = false;
  for (int i = 0; i < 50; ++i) {
    (*a)->Multi({Write::Set("/", "x", Write::kAnyVersion)},
                [&](const WriteOutcome&) { answered = true; });
  }
  a->Close();
  EXPECT_FALSE(answered);
  EXPECT_TRUE(b->Read("/").ok());
}

}  // namespace firn
