#include "registry/audit.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "registry/cluster_setup.h"
#include "registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr WallMs kNow{1'750'000'000'000};

// A registry in which something happens right after a certain node was read.
class BusyCoordinator : public Coordinator {
 public:
  explicit BusyCoordinator(Coordinator& inner) : inner_(inner) {}

  void OnceAfterReading(const std::string& path, std::function<void()> happens) {
    path_ = path;
    happens_ = std::move(happens);
  }

  void Read(const std::string& path, ReadDone done, Changed changed) override {
    inner_.Read(path, std::move(done), std::move(changed));
    if (path == path_ && happens_) std::exchange(happens_, {})();
  }
  void List(const std::string& path, ListDone done, Changed changed) override {
    inner_.List(path, std::move(done), std::move(changed));
  }
  void Sync(const std::string& path, SyncDone done) override { inner_.Sync(path, std::move(done)); }
  void Multi(std::vector<Write> writes, WriteDone done) override {
    inner_.Multi(std::move(writes), std::move(done));
  }
  void PrepareRoot(SyncDone done) override { inner_.PrepareRoot(std::move(done)); }
  void OnSession(std::function<void(SessionEvent)> handler) override {
    inner_.OnSession(std::move(handler));
  }
  int64_t session() const override { return inner_.session(); }
  int Dispatch(Milliseconds wait) override { return inner_.Dispatch(wait); }
  void Wake() override { inner_.Wake(); }

 private:
  Coordinator& inner_;
  std::string path_;
  std::function<void()> happens_;
};

class AuditTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(registry_.Connect(Milliseconds(0)).ok());
    ASSERT_TRUE(MakeCluster(registry_, {.workers = 3}, entropy_).ok());
  }

  void Put(const std::string& path, const std::string& data,
           Lifetime lifetime = Lifetime::kPersistent) {
    if (registry_.Read(path).ok()) {
      ASSERT_TRUE(registry_.Multi({Write::Set(path, data, Write::kAnyVersion)}).status.ok());
    } else {
      ASSERT_TRUE(registry_.Multi({Write::Create(path, data, lifetime)}).status.ok()) << path;
    }
  }
  void Hold(Slot slot, Nonce nonce, WallMs bound) {
    Put(SlotPath(slot), FormatSlotRecord({.nonce = nonce, .bound = bound, .owner = "a"}));
  }
  void Live(Slot slot, Nonce nonce) {
    Put(LivePath(slot), FormatLiveMark({"a:1", nonce}), Lifetime::kEphemeral);
  }
  void Announce(const std::string& address, uint32_t machine, WallMs bound, int64_t skew = 0,
                const std::string& application = "a") {
    Provider provider;
    provider.address = address;
    provider.application = application;
    const ProviderReport report{.phase = ProviderPhase::kServing,
                                .machine = MachineId(machine),
                                .bound = bound,
                                .clock_skew_ms = skew};
    Put(ProviderPath(provider), FormatReport(report), Lifetime::kEphemeral);
  }
  static std::string ProviderPath(const Provider& provider) {
    return std::string(kProvidersPath) + "/" + ProviderNodeName(provider);
  }
  void MakeProvidersFolder() {
    Put(std::string(kServicePath), "");
    Put(std::string(kProvidersPath), "");
  }
  Audit Read() { return *ReadAudit(registry_, kNow); }
  // An audit, while something happens right after the node was read.
  Audit ReadWhile(const std::string& path, std::function<void()> happens) {
    BusyCoordinator busy(coordinator_);
    busy.OnceAfterReading(path, std::move(happens));
    BlockingCoordinator registry(busy, clock_);
    EXPECT_TRUE(registry.Connect(Milliseconds(0)).ok());
    return *ReadAudit(registry, kNow);
  }
  void ExpectFault(const std::string& words) {
    const Audit audit = Read();
    for (const std::string& fault : audit.faults) {
      if (fault.find(words) != std::string::npos) return;
    }
    ADD_FAILURE() << "no fault speaks of: " << words;
  }

  VirtualClock clock_{kNow};
  MemoryTree tree_{clock_};
  MemoryCoordinator coordinator_{tree_};
  BlockingCoordinator registry_{coordinator_, clock_};
  SeededEntropy entropy_{1};
};

TEST_F(AuditTest, ANewClusterHasNoFaults) {
  const Audit audit = Read();
  EXPECT_TRUE(audit.faults.empty()) << audit.faults.front();
  EXPECT_EQ(audit.slots.size(), 12u);
  EXPECT_EQ(audit.slots[5].machine, MachineId(9));
  EXPECT_EQ(audit.slots[5].use, SlotUse::kNeverUsed);
}

TEST_F(AuditTest, ShowsHowEachSlotStands) {
  Hold({0, 0}, Nonce(1, 1), kNow + Milliseconds(1));
  Live({0, 0}, Nonce(1, 1));
  Hold({0, 1}, Nonce(1, 2), kNow + Milliseconds(1));
  Hold({0, 2}, Nonce(1, 3), kNow);
  Hold({1, 0}, Nonce(), kNow);
  const Audit audit = Read();
  EXPECT_EQ(audit.slots[0].use, SlotUse::kHeld);
  EXPECT_EQ(audit.slots[1].use, SlotUse::kUnattended);
  EXPECT_EQ(audit.slots[2].use, SlotUse::kPassed);
  EXPECT_EQ(audit.slots[3].use, SlotUse::kReleased);
  EXPECT_TRUE(audit.faults.empty()) << audit.faults.front();
}

TEST_F(AuditTest, FindsEveryInconsistencyInTheTree) {
  Hold({0, 0}, Nonce(1, 1), kNow + Milliseconds(86'400'001));
  ExpectFault("more than a day ahead");
  Hold({0, 0}, Nonce(1, 1), kNow - Milliseconds(1));
  Live({0, 0}, Nonce(1, 2));
  ExpectFault("belongs to another claim");
  ExpectFault("cannot renew");
  Hold({0, 1}, Nonce(1, 1), kNow);
  ExpectFault("same nonce");
  Put(SlotPath({0, 2}), "rubbish");
  ExpectFault("not JSON");
  Put(RackPath(0) + "/x", "");
  ExpectFault("foreign node stands among the slots");
  Put(std::string(kMachinesPath) + "/9", "");
  ExpectFault("among the racks");
  ASSERT_TRUE(registry_.Multi({Write::Erase(kClockPath, Write::kAnyVersion)}).status.ok());
  ExpectFault("clock node");
  const Nonce era = ParseMeta(tree_.Peek(kMetaPath)->data)->era;
  ASSERT_TRUE(registry_.Multi({Write::Erase(EraPath(era), Write::kAnyVersion)}).status.ok());
  ExpectFault("era is missing");
  Put(kMetaPath, "rubbish");
  ExpectFault("root node");
  tree_.Wipe();
  coordinator_.Dispatch(Milliseconds(0));
  ExpectFault("no cluster");
}

TEST_F(AuditTest, ComparesWhatServersReportWithTheTree) {
  MakeProvidersFolder();
  Hold({0, 0}, Nonce(1, 1), kNow + Milliseconds(5));
  Announce("h:1", 0, kNow + Milliseconds(5), 17);
  EXPECT_EQ(Read().slots[0].clock_skew_ms, 17);
  EXPECT_TRUE(Read().faults.empty());
  Announce("h:2", 0, kNow + Milliseconds(6), 1'001);
  ExpectFault("both report machine id 0");
  ExpectFault("went back in time");
  ExpectFault("clock is off");
  Announce("h:3", 1000, kNow, 0);
  ExpectFault("no slot");
  Put(std::string(kProvidersPath) + "/rubbish", "");
  ExpectFault("provider's name");
}

TEST_F(AuditTest, WhatAKilledServerLeftBehindIsNoFault) {
  MakeProvidersFolder();
  Hold({0, 0}, Nonce(1, 1), kNow + Milliseconds(9));
  Announce("h:1", 0, kNow + Milliseconds(5));
  Announce("h:1", 0, kNow + Milliseconds(9), 0, "another node of the same address");
  const Audit audit = Read();
  EXPECT_EQ(audit.providers.size(), 2u);
  EXPECT_TRUE(audit.faults.empty()) << audit.faults.front();
}

TEST_F(AuditTest, ARenewalBetweenItsReadsIsNoFault) {
  MakeProvidersFolder();
  const Slot slot{0, 0};
  Hold(slot, Nonce(1, 1), kNow + Milliseconds(5));
  Announce("h:1", 0, kNow + Milliseconds(5));
  const Audit audit = ReadWhile(SlotPath(slot), [&] {
    Hold(slot, Nonce(1, 1), kNow + Milliseconds(9));
    Announce("h:1", 0, kNow + Milliseconds(9));
  });
  EXPECT_TRUE(audit.faults.empty()) << audit.faults.front();
}

TEST_F(AuditTest, AReleaseBetweenItsReadsIsNoFault) {
  MakeProvidersFolder();
  const Slot slot{0, 0};
  Hold(slot, Nonce(1, 1), kNow + Milliseconds(9));
  Announce("h:1", 0, kNow + Milliseconds(9));
  Provider provider;
  provider.address = "h:1";
  provider.application = "a";
  const Audit audit = ReadWhile(ProviderPath(provider), [&] {
    registry_.Multi({Write::Erase(ProviderPath(provider), Write::kAnyVersion)});
    Hold(slot, Nonce(), kNow + Milliseconds(5));
  });
  EXPECT_TRUE(audit.faults.empty()) << audit.faults.front();
}

TEST_F(AuditTest, AnotherClaimBetweenItsReadsIsNoFault) {
  const Slot slot{0, 0};
  Hold(slot, Nonce(1, 1), kNow + Milliseconds(5));
  Live(slot, Nonce(1, 1));
  const Audit audit = ReadWhile(SlotPath(slot), [&] {
    Hold(slot, Nonce(2, 2), kNow + Milliseconds(9));
    Live(slot, Nonce(2, 2));
  });
  EXPECT_TRUE(audit.faults.empty()) << audit.faults.front();
}

}  // namespace
}  // namespace firn
