#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

constexpr Milliseconds kTwoRenewals{70'000};

// A machine whose memory was copied while its server ran. The copied grant is valid, and the copied
// process continues from the same state as the original.
class ClaimTwinTest : public ClaimKeeperTest {
 protected:
  std::unique_ptr<ClaimHost> Copy() {
    copy_ = disk_;
    return Start(copy_, Options());
  }
  static std::string Alarm(const ClaimHost& host) {
    for (const ClaimEvent& event : host.events()) {
      if (event.kind == ClaimEvent::Kind::kAlarm) return event.text;
    }
    return {};
  }

  MemoryDisk copy_;
};

TEST_F(ClaimTwinTest, DetectsACopyOfARunningProcessAtTheNextRenewal) {
  auto host = Start();
  Run(Milliseconds(10'000), *host);
  const MachineId machine = *host->status().machine;
  auto twin = Copy();
  twin->link().Disconnect();
  Run(kAMoment, {host.get(), twin.get()});
  ASSERT_EQ(twin->status().nonce, host->status().nonce);
  twin->link().Reconnect();
  Run(kTwoRenewals, {host.get(), twin.get()});

  EXPECT_NE(host->Told(ClaimEvent::Kind::kLost), twin->Told(ClaimEvent::Kind::kLost))
      << "one of the two continues";
  ClaimHost& stopped = host->Told(ClaimEvent::Kind::kLost) ? *host : *twin;
  EXPECT_NE(Alarm(stopped).find("rack 0 worker "), std::string::npos) << Alarm(stopped);
  EXPECT_NE(Alarm(stopped).find("copy"), std::string::npos) << Alarm(stopped);
  EXPECT_NE(*host->status().machine, *twin->status().machine);
  EXPECT_TRUE(*host->status().machine == machine || *twin->status().machine == machine);
  EXPECT_TRUE(Serves(*host));
  EXPECT_TRUE(Serves(*twin)) << "under another machine id";
}

// The hypervisor shows the machine's generation, which is a part of the boot id.
TEST_F(ClaimTwinTest, AMachineThatSeesThatItIsACopyLeavesItsClaimToTheOriginal) {
  auto host = Start();
  Run(Milliseconds(10'000), *host);
  const uint32_t worker = host->status().slot->worker;
  const SlotRecord before = RecordOf(worker);
  disk_.identity.boot_id += ".1";
  Run(kAMoment, *host);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kLost));
  EXPECT_NE(Alarm(*host).find("left to the original"), std::string::npos) << Alarm(*host);
  EXPECT_EQ(host->status().copies, 1);
  EXPECT_NE(host->status().slot->worker, worker);
  EXPECT_EQ(RecordOf(worker), before);
  EXPECT_TRUE(Serves(*host));

  host.reset();
  disk_.identity.boot_id += "2";
  host = Start();
  host->link().Disconnect();
  Run(Milliseconds(600), *host);
  EXPECT_FALSE(host->Told(ClaimEvent::Kind::kOffline)) << "the grant is of another generation";
}

TEST_F(ClaimTwinTest, DoesNotInheritAGrantThatACopyHasUsed) {
  auto host = Start();
  Run(Milliseconds(10'000), *host);
  copy_ = disk_;
  Run(kTwoRenewals, *host);
  auto twin = Start(copy_, Options());
  Run(kAMoment, {host.get(), twin.get()});
  EXPECT_FALSE(twin->Told(ClaimEvent::Kind::kInherited));
  EXPECT_NE(Alarm(*twin).find("copy"), std::string::npos) << Alarm(*twin);
  EXPECT_NE(*twin->status().machine, *host->status().machine);
  EXPECT_FALSE(host->Told(ClaimEvent::Kind::kLost));
}

TEST_F(ClaimTwinTest, DetectsCopiesThatShareAPendingWordOneVersionLater) {
  auto host = Start();
  Run(Milliseconds(10'000), *host);
  // Its memory is copied while its renewal is unanswered.
  host->link().Script(Verb::kMulti, {Fate::Kind::kDone, {}, Milliseconds(2'000)});
  for (int i = 0; i < 10'000 && host->keeper().tenure()->terms().pending_word.zero(); ++i) {
    Run(Milliseconds(5), *host);
  }
  ASSERT_FALSE(host->keeper().tenure()->terms().pending_word.zero());
  auto twin = Copy();
  twin->link().Disconnect();
  Run(kAMoment, {host.get(), twin.get()});
  twin->link().Reconnect();
  Run(2 * kTwoRenewals, {host.get(), twin.get()});
  EXPECT_NE(host->Told(ClaimEvent::Kind::kLost), twin->Told(ClaimEvent::Kind::kLost));
  EXPECT_NE(*host->status().machine, *twin->status().machine);
}

TEST_F(ClaimTwinTest, ADeadProcessesLateRenewalBelongsToItsSuccessor) {
  for (const bool offline : {false, true}) {
    MakeClusterWith(4);
    disk_ = {};
    auto host = Start();
    Run(Milliseconds(10'000), *host);
    const ClaimStatus before = host->status();
    host->link().Script(Verb::kMulti, {Fate::Kind::kAnswerLost, {}, Milliseconds(60'000)});
    for (int i = 0; i < 10'000 && RecordOf(before.slot->worker).bound == before.bound; ++i) {
      Run(Milliseconds(5), *host);
    }
    ASSERT_GT(RecordOf(before.slot->worker).bound, before.bound);
    host.reset();
    host = Start();
    if (offline) host->link().Disconnect();
    Run(kAMoment, *host);
    EXPECT_TRUE(host->Told(offline ? ClaimEvent::Kind::kOffline : ClaimEvent::Kind::kInherited));
    if (offline) host->link().Reconnect();
    Run(kTwoRenewals, *host);
    EXPECT_FALSE(host->Told(ClaimEvent::Kind::kLost));
    EXPECT_FALSE(host->Told(ClaimEvent::Kind::kAlarm)) << Alarm(*host);
    EXPECT_EQ(*host->status().machine, *before.machine);
  }
}

TEST_F(ClaimTwinTest, TheWordIsInTheGrantFileBeforeItIsSent) {
  auto host = Start();
  Run(Milliseconds(10'000), *host);
  disk_.grant_writes_fail = true;
  disk_.grant_removal_fails = true;
  const SlotRecord before = RecordOf(host->status().slot->worker);
  Run(kTwoRenewals, *host);
  EXPECT_EQ(RecordOf(host->status().slot->worker), before);
  EXPECT_NE(host->status().reason.find("grant"), std::string::npos) << host->status().reason;
  disk_.grant_writes_fail = false;
  Run(kTwoRenewals, *host);
  EXPECT_GT(RecordOf(host->status().slot->worker).bound, before.bound);
}

TEST_F(ClaimTwinTest, AForeignClaimOfAHeldSlotRaisesAnAlarm) {
  auto host = Start();
  Run(Milliseconds(10'000), *host);
  ASSERT_TRUE(Serves(*host));
  const Slot slot = *host->status().slot;
  SlotRecord foreign = RecordOf(slot.worker);
  foreign.nonce = Nonce(6, 6);
  foreign.owner = "another";
  foreign.since = clock_.Wall() - Milliseconds(1'000);
  Write1(SlotPath(slot), FormatSlotRecord(foreign));
  Run(kTwoRenewals, *host);
  EXPECT_NE(Alarm(*host).find(SlotText(slot)), std::string::npos) << Alarm(*host);
  EXPECT_NE(Alarm(*host).find("another"), std::string::npos) << Alarm(*host);
  EXPECT_NE(Alarm(*host).find(FormatRfc3339(foreign.since)), std::string::npos) << Alarm(*host);
}

TEST_F(ClaimTwinTest, AForeignClaimAfterTheBoundRaisesNoAlarm) {
  MakeClusterWith(1);
  auto host = Start();
  Run(Milliseconds(10'000), *host);
  host->link().Disconnect();
  Run(host->status().left + Milliseconds(61'000), *host);
  MemoryDisk other;
  auto next = Start(other, Options("b"));
  Run(Milliseconds(6'000), {host.get(), next.get()});
  ASSERT_TRUE(Serves(*next)) << next->status().reason;
  host->link().Reconnect();
  Run(kAMoment, {host.get(), next.get()});
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kLost));
  EXPECT_FALSE(host->Told(ClaimEvent::Kind::kAlarm)) << Alarm(*host);
}

}  // namespace
}  // namespace firn
