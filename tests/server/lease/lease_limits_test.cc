#include "common/base/cat.h"
#include "registry/operate/restore.h"
#include "tests/server/lease/lease_rig.h"

// Tests rules 7 to 11 of leases (registry/claim/WHY-LEASES-HOLD.md): losses, ending claims, other
// servers and limits.

namespace firn {
namespace {

// --- rule 7: loss --------------------------------------------------------------------------------

TEST_F(LeaseTest, RevokesALeaseWhoseSlotIsAnothers) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  SlotRecord others = RecordOf(lease.worker);
  others.nonce = Nonce(1, 1);
  Write1(SlotPath({0, lease.worker}), FormatSlotRecord(others));
  const auto renewed = server->Renew(lease.lease, 1, 0);
  Run(Milliseconds(5'000), *server);
  EXPECT_EQ(server->Renew(lease.lease, 2, 1)->verdict(), LeaseVerdict::kRevoked);
  EXPECT_EQ(server->table().counts().lost, 1u);
}

TEST_F(LeaseTest, AnswersOnlyAfterTheBoundIsOnTheDisk) {
  auto server = StartServer();
  lease_disk_.stalled = true;
  const auto replied = server->Ask(1);
  Run(Milliseconds(2'000), *server);
  EXPECT_FALSE(replied->reply);
  lease_disk_.stalled = false;
  Run(Milliseconds(50), *server);
  const LeaseGrant lease = replied->terms();
  const auto kept = ParseKeptBounds(lease_disk_.text);
  ASSERT_TRUE(kept.ok()) << kept.status();
  ASSERT_EQ(kept->bounds.size(), 1u);
  EXPECT_EQ(kept->bounds[0].slot, (Slot{0, lease.worker}));
  EXPECT_GE(kept->bounds[0].bound, StartOf(lease.until));
}

TEST_F(LeaseTest, GrantsNoneWhileTheClusterGivesLeasesNoShare) {
  const auto set_share = [this](int64_t percent) {
    AsOperator([&](BlockingCoordinator& registry) {
      const auto change = [percent](ClusterSettings& it) { it.lease_share = percent; };
      ASSERT_TRUE(ChangeSettings(registry, Meta().era, change).ok());
    });
  };
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  set_share(0);
  // There are more requests than claims that may begin at once, but no client gets the answer to
  // wait.
  for (uint64_t token = 2; token < 2 * LeaseTable::kBurst; ++token) {
    const auto replied = server->Ask(token);
    Run(Milliseconds(50), *server);
    ASSERT_EQ(replied->verdict(), LeaseVerdict::kRefused) << replied->reply->message;
    for (const char* part : {"lease_share is 0", "firn set lease_share=50"}) {
      EXPECT_NE(replied->reply->message.find(part), std::string::npos) << replied->reply->message;
    }
  }
  EXPECT_FALSE(Renewed(*server, lease.lease, 1, 0).ending);
  set_share(50);
  Run(LeaseTable::kShareEvery, *server);
  Grant(*server, 100);
}

TEST_F(LeaseTest, RefusesIfTheDiskCannotBeWrittenAndSucceedsOnceItCan) {
  auto server = StartServer();
  lease_disk_.fails = true;
  const auto replied = server->Ask(1);
  Run(Milliseconds(2'000), *server);
  EXPECT_EQ(replied->verdict(), LeaseVerdict::kLater);
  EXPECT_NE(replied->reply->message.find("no space on the disk"), std::string::npos);
  lease_disk_.fails = false;
  Run(Milliseconds(1'000), *server);
  Grant(*server, 1);
}

TEST_F(LeaseTest, WritesTheDiskAboutOnceAWindow) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Run(Milliseconds(10'000), *server);
  const int before = lease_disk_.writes;
  for (uint64_t turn = 1; turn <= 90; ++turn) {
    Renewed(*server, lease.lease, turn, turn - 1);
    Run(Milliseconds(20'000), *server);
  }
  EXPECT_LE(lease_disk_.writes - before, 5);  // in half an hour
}

TEST_F(LeaseTest, AStartFreezesARegistryThatHasLostAPromise) {
  const auto backup = tree_.Save();
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Renewed(*server, lease.lease, 1, 0);
  server.reset();
  tree_.Load(backup);
  ClaimOptions options = Options("s");
  options.kept = *ParseKeptBounds(lease_disk_.text);
  auto host = Start(disk_, options);
  Run(Milliseconds(5'000), *host);
  EXPECT_TRUE(Meta().frozen);
  EXPECT_FALSE(host->user().has_claim());
  EXPECT_TRUE(AsksForRestore(host->status())) << host->status().reason;
  // The status and the log show the bound. With it, the ids of the restored cluster start above the
  // lease.
  const WallMs kept = options.kept.highest();
  AsOperator([&](BlockingCoordinator& registry) {
    ASSERT_TRUE(
        RestoreCluster(registry, {.now = clock_.Wall(), .bounds = {{.bound = kept}}}, entropy_)
            .ok());
  });
  Run(Milliseconds(10'000), *host);
  EXPECT_TRUE(host->user().has_claim()) << host->status().reason;
}

// The server's own claim is older than the backup, so it does not show the loss.
TEST_F(LeaseTest, AStartThatResumesItsClaimFreezesARegistryThatHasLostAPromise) {
  auto host = Start(disk_, Options("s"));
  Run(Milliseconds(1'000), *host);
  ASSERT_TRUE(host->user().has_claim());
  host.reset();
  const auto backup = tree_.Save();
  auto server = StartServer();
  Grant(*server, 1);
  server.reset();
  tree_.Load(backup);
  ClaimOptions options = Options("s");
  options.kept = *ParseKeptBounds(lease_disk_.text);
  host = Start(disk_, options);
  Run(Milliseconds(5'000), *host);
  EXPECT_TRUE(Meta().frozen);
  EXPECT_FALSE(host->user().has_claim());
}

TEST_F(LeaseTest, AStartAcceptsARegistryThatHasEveryPromise) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1), other = Grant(*server, 2);
  Renewed(*server, lease.lease, 1, 0);
  server->End(other.lease, 0, other.from);
  Run(Milliseconds(2'000), *server);
  ASSERT_TRUE(RecordOf(other.worker).nonce.zero());
  server.reset();
  ClaimOptions options = Options("s");
  options.kept = *ParseKeptBounds(lease_disk_.text);
  EXPECT_EQ(options.kept.bounds.size(), 2u);
  auto host = Start(disk_, options);
  Run(Milliseconds(1'000), *host);
  EXPECT_FALSE(Meta().frozen);
  EXPECT_TRUE(host->user().has_claim()) << host->status().reason;
}

// --- rule 8: ending claims -----------------------------------------------------------------------

TEST_F(LeaseTest, ALeaseWhoseClusterHasChangedSaysThatItEnds) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Run(Milliseconds(10'000), *server);
  EXPECT_FALSE(Renewed(*server, lease.lease, 1, 0).ending);
  Write1(kMetaPath, FormatMeta(Meta()));
  Run(Milliseconds(60'000), *server);
  ASSERT_FALSE(server->alarms().empty());
  EXPECT_EQ(server->alarms().at(0),
            Cat("lease ", lease.number, " (program): the cluster was restored or changed"));
  const auto renewed = server->Renew(lease.lease, 2, 1);
  Run(Milliseconds(50), *server);
  ASSERT_TRUE(renewed->reply);
  if (renewed->verdict() == LeaseVerdict::kGranted) {
    EXPECT_TRUE(renewed->terms().ending);
  } else {
    EXPECT_EQ(renewed->verdict(), LeaseVerdict::kUnknown);  // the lease has expired
  }
}

// --- rule 9: other servers -----------------------------------------------------------------------

TEST_F(LeaseTest, NamesTheServerOfAnothersLease) {
  auto server = StartServer();
  auto other = StartServer(LeasesOf("o"));
  Run(Milliseconds(10), *other);
  const auto replied = other->Renew(Grant(*server, 1).lease, 1, 0);
  EXPECT_EQ(replied->verdict(), LeaseVerdict::kElsewhere);
  EXPECT_EQ(replied->reply->terms.server, "s:7609");
  EXPECT_EQ(other->Renew("no lease", 1, 0)->verdict(), LeaseVerdict::kBadRequest);
}

// --- rules 10 and 11: limits ---------------------------------------------------------------------

TEST_F(LeaseTest, ClaimsAtMostEightAtOnce) {
  MakeClusterWith(64);
  auto server = StartServer();
  for (uint64_t token = 1; token <= 8; ++token) EXPECT_FALSE(server->Ask(token)->reply);
  const auto refused = server->Ask(9);
  EXPECT_EQ(refused->verdict(), LeaseVerdict::kLater);
  EXPECT_GE(refused->reply->retry_after, Milliseconds(500));
  Run(kAMoment, *server);
  EXPECT_EQ(server->table().List().size(), 8u);
  Grant(*server, 9);
}

// A client that requests leases without limit gets the machine ids of a cluster only slowly.
TEST_F(LeaseTest, GrantsABurstAndThenTwoASecond) {
  MakeClusterWith(256);
  auto server = StartServer();
  for (uint64_t token = 1; token <= 400; ++token) {
    server->Ask(token);
    Run(Milliseconds(25), *server);
  }
  Run(kAMoment, *server);
  const size_t granted = server->table().List().size();
  EXPECT_LE(granted, 20u + 20u);
  EXPECT_GE(granted, 35u);
  Run(Milliseconds(1'000), *server);
  Grant(*server, 1'000);
}

TEST_F(LeaseTest, RequestsForAFullRackDoNotDelayOthers) {
  LeaseTableOptions options = LeasesOf("s");
  options.split = *RackSplit::Make(options.claim.layout, 1);
  MakeClusterWith(8, /*rack_bits=*/1);
  auto server = StartServer(options);
  Run(Milliseconds(10), *server);
  const auto ask = [&](uint64_t token, uint32_t rack) {
    auto replied = server->Call(
        LeaseAsk{TokenOf(token), "program", Milliseconds(60'000), rack, clock_.Wall(), {}});
    Run(Milliseconds(100), *server);
    return replied;
  };
  for (uint64_t token = 1; token <= 4; ++token) Grant(*server, token);
  uint64_t token = 5;
  for (; token < 5 + 2 * LeaseTable::kBurst; ++token) {
    const auto refused = ask(token, 0);
    EXPECT_EQ(refused->verdict(), LeaseVerdict::kLater);
    EXPECT_NE(refused->reply->message.find("4 have a bound ahead"), std::string::npos)
        << refused->reply->message;
  }
  const auto other = ask(++token, 1);
  EXPECT_EQ(other->verdict(), LeaseVerdict::kGranted) << other->reply->message;
}

TEST_F(LeaseTest, ClaimsInAFullRackAgainAfterItsOwnRelease) {
  auto server = StartServer();
  const LeaseGrant first = Grant(*server, 1);
  for (uint64_t token = 2; token <= 4; ++token) Grant(*server, token);
  const auto refused = server->Ask(5);
  Run(kAMoment, *server);
  EXPECT_EQ(refused->verdict(), LeaseVerdict::kLater);
  server->End(first.lease, 0, first.from);
  Run(kAMoment + Milliseconds(1'000), *server);
  EXPECT_EQ(Grant(*server, 5).worker, first.worker);
}

TEST_F(LeaseTest, ClaimsInAFullRackAgainAfterFiveSeconds) {
  SlotRecord others{.nonce = Nonce(1, 1), .bound = clock_.Wall() + kAnHour, .owner = "other"};
  Write1(SlotPath({0, 7}), FormatSlotRecord(others));
  auto server = StartServer();
  for (uint64_t token = 1; token <= 3; ++token) Grant(*server, token);
  const auto refused = server->Ask(4);
  Run(kAMoment, *server);
  EXPECT_EQ(refused->verdict(), LeaseVerdict::kLater);
  others.bound = clock_.Wall();
  Write1(SlotPath({0, 7}), FormatSlotRecord(others));
  Run(LeaseTable::kRackEvery, *server);
  EXPECT_EQ(Grant(*server, 4).worker, 7u);
}

TEST_F(LeaseTest, GrantsAtMostLeasesMax) {
  LeaseTableOptions options = LeasesOf("s");
  options.leases_max = 2;
  auto server = StartServer(options);
  Run(Milliseconds(10), *server);
  Grant(*server, 1);
  Grant(*server, 2);
  EXPECT_EQ(server->Ask(3)->verdict(), LeaseVerdict::kLater);
}

TEST_F(LeaseTest, GrantsEachClientAsManyAsItMayHave) {
  auto server = StartServer();
  const auto ask = [&](uint64_t token, const std::string& client, std::optional<size_t> most) {
    const auto replied = server->Call(LeaseAsk{
        TokenOf(token), "program", Milliseconds(60'000), {}, clock_.Wall(), {client, most}});
    Run(kAMoment, *server);
    return replied;
  };
  const LeaseGrant first = ask(1, "shop", 2)->terms();
  EXPECT_EQ(ask(2, "shop", 2)->verdict(), LeaseVerdict::kGranted);
  const auto refused = ask(3, "shop", 2);
  EXPECT_EQ(refused->verdict(), LeaseVerdict::kLimit);
  EXPECT_GE(refused->reply->retry_after, Milliseconds(500));
  EXPECT_NE(refused->reply->message.find("shop has 2 leases"), std::string::npos);
  EXPECT_NE(refused->reply->message.find("@lease:2"), std::string::npos);
  EXPECT_EQ(server->table().counts().refused[static_cast<size_t>(LeaseVerdict::kLimit)], 1u);
  EXPECT_EQ(server->table().List().at(0).client, "shop");
  // The limit, even a lower one, affects neither the client's own token and renewals nor other
  // clients.
  EXPECT_EQ(ask(1, "shop", 0)->terms().lease, first.lease);
  Renewed(*server, first.lease, 1, 0);
  EXPECT_EQ(ask(4, "shop", {})->verdict(), LeaseVerdict::kGranted);
  EXPECT_EQ(ask(5, "etl", 1)->verdict(), LeaseVerdict::kGranted);
  EXPECT_EQ(ask(6, "none", 0)->verdict(), LeaseVerdict::kLimit);
}

// Otherwise a client that releases unused leases would hold more machine ids than its limit.
TEST_F(LeaseTest, CountsAClientsEndedLeasesUntilTheirMachineIdsAreFree) {
  auto server = StartServer();
  const auto ask = [&](uint64_t token) {
    const auto replied = server->Call(
        LeaseAsk{TokenOf(token), "program", Milliseconds(60'000), {}, clock_.Wall(), {"shop", 1}});
    Run(kAMoment, *server);
    return replied;
  };
  server->End(ask(1)->terms().lease, 0);
  Run(Milliseconds(2'000), *server);
  EXPECT_EQ(ask(2)->verdict(), LeaseVerdict::kLimit);
  Run(Milliseconds(20'000), *server);
  EXPECT_EQ(ask(3)->verdict(), LeaseVerdict::kGranted);
}

// A lease that is released unused keeps its machine id until its end, and counts until then.
TEST_F(LeaseTest, CountsAndShowsEndedLeasesUntilTheirMachineIdsAreFree) {
  LeaseTableOptions options = LeasesOf("s");
  options.leases_max = 1;
  auto server = StartServer(options);
  Run(Milliseconds(10), *server);
  EXPECT_EQ(server->End(Grant(*server, 1).lease, 0)->verdict(), LeaseVerdict::kEnded);
  Run(Milliseconds(2'000), *server);
  EXPECT_EQ(server->Ask(2)->verdict(), LeaseVerdict::kLater);
  EXPECT_EQ(server->table().counts().held, 1u);
  ASSERT_EQ(server->table().List().size(), 1u);
  EXPECT_NE(server->table().List()[0].trouble.find("it has ended"), std::string::npos);
  Run(Milliseconds(20'000), *server);
  EXPECT_TRUE(server->table().List().empty());
  EXPECT_EQ(server->table().counts().held, 0u);
  Grant(*server, 2);
}

// While the disk is stalled, the server keeps only a limited number of repetitions of a renewal.
TEST_F(LeaseTest, LimitsTheWaitingRequestsOfOneLease) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Run(Milliseconds(5'000), *server);
  lease_disk_.stalled = true;
  std::vector<std::shared_ptr<Replied>> all;
  for (size_t i = 0; i < LeaseTable::kWaitingMax + 1; ++i) {
    all.push_back(server->Renew(lease.lease, 1, 0));
  }
  EXPECT_FALSE(all.front()->reply);
  EXPECT_EQ(all.back()->verdict(), LeaseVerdict::kLater);
  lease_disk_.stalled = false;
  Run(Milliseconds(1'000), *server);
  EXPECT_EQ(all.front()->verdict(), LeaseVerdict::kGranted);
}

// The server claims no machine id for a lease whose bound cannot be stored.
TEST_F(LeaseTest, ClaimsNothingWhileTheDiskCannotBeWritten) {
  auto server = StartServer();
  lease_disk_.fails = true;
  server->Ask(1);
  Run(Milliseconds(2'000), *server);
  const auto refused = server->Ask(2);
  EXPECT_EQ(refused->verdict(), LeaseVerdict::kLater);
  EXPECT_NE(refused->reply->message.find("no space on the disk"), std::string::npos);
}

TEST_F(LeaseTest, GrantsNoneWithoutLeasesMaxOrWithLongTicks) {
  LeaseTableOptions options = LeasesOf("s");
  options.leases_max = 0;
  auto server = StartServer(options);
  Run(Milliseconds(10), *server);
  EXPECT_EQ(server->Ask(1)->verdict(), LeaseVerdict::kRefused);
  options.leases_max = 1;
  options.claim.layout = *Layout::Parse("time:30@10s machine:10 sequence:20");
  auto slow = StartServer(options);
  Run(Milliseconds(10), *slow);
  EXPECT_EQ(slow->Ask(1, Milliseconds(60'000))->verdict(), LeaseVerdict::kRefused);
}

TEST_F(LeaseTest, GrantsNoneWithAWindowBelowTwoTicksAndASecond) {
  LeaseTableOptions options = LeasesOf("s");
  options.claim.window = Milliseconds(1'001);
  auto server = StartServer(options);
  Run(Milliseconds(10), *server);
  const auto refused = server->Ask(1);
  EXPECT_EQ(refused->verdict(), LeaseVerdict::kRefused);
  EXPECT_NE(refused->reply->message.find("--claim_window_ms is 1001"), std::string::npos)
      << refused->reply->message;
}

TEST_F(LeaseTest, GrantsNoneWhileTheServerHasNoMachineId) {
  auto server = StartServer();
  server->server.why_not = "it has no machine id yet";
  Run(Milliseconds(10), *server);
  EXPECT_EQ(server->Ask(1)->verdict(), LeaseVerdict::kLater);
}

}  // namespace
}  // namespace firn
