#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/audit.h"
#include "tests/support/registry/busy_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

inline constexpr WallMs kNow{1'750'000'000'000};

// A cluster in memory of four racks with three workers each, and changes to it.
class AuditTest : public testing::Test {
 public:
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
  void Erase(const std::string& path) {
    const auto erased = registry_.Multi({Write::Erase(path, Write::kAnyVersion)});
    ASSERT_TRUE(erased.status.ok()) << erased.status;
  }
  void EraseSlots(uint32_t rack) {
    for (uint32_t worker = 0; worker < 3; ++worker) Erase(SlotPath({rack, worker}));
  }
  void EraseSlotsOfWorker(uint32_t worker) {
    for (uint32_t rack = 0; rack < 4; ++rack) Erase(SlotPath({rack, worker}));
  }
  void EraseRack(uint32_t rack) {
    EraseSlots(rack);
    Erase(RackPath(rack));
  }
  void EraseAllRacks() {
    for (uint32_t rack = 0; rack < 4; ++rack) EraseRack(rack);
    Erase(kMachinesPath);
  }
  void LengthenThreeRacks() {
    for (uint32_t rack = 0; rack < 3; ++rack) PutRecord({rack, 3}, {});
  }
  void LoseData() {
    tree_.Wipe();
    coordinator_.Dispatch(Milliseconds(0));
  }

  ClusterMeta Meta() { return *ParseMeta(tree_.Peek(kMetaPath)->data); }
  void SetMeta(const std::function<void(ClusterMeta&)>& change) {
    ClusterMeta meta = Meta();
    change(meta);
    Put(kMetaPath, FormatMeta(meta));
  }
  void LiftFloor(WallMs floor) {
    SetMeta([&](ClusterMeta& meta) { meta.floor = floor; });
  }
  void PutRecord(Slot slot, const SlotRecord& record) {
    Put(SlotPath(slot), FormatSlotRecord(record));
  }
  // Makes the slot held by a lease, so without a live node.
  void Hold(Slot slot, Nonce nonce, WallMs bound) {
    PutRecord(slot,
              {.nonce = nonce, .bound = bound, .owner = "a", .lease = SlotLease{"shop", "a:1"}});
  }
  void Live(Slot slot, Nonce nonce) {
    Put(LivePath(slot), FormatLiveMark({"a:1", nonce}), Lifetime::kEphemeral);
  }
  void Announce(const std::string& address, uint32_t machine, WallMs bound, int64_t skew = 0,
                const std::string& application = "a") {
    Provider provider;
    provider.address = address;
    provider.application = application;
    const ProviderReport report{.phase = ServerPhase::kReady,
                                .machine = MachineId(machine),
                                .bound = bound,
                                .clock_skew_ms = skew};
    Put(ProviderPath(provider), FormatReport(report), Lifetime::kEphemeral);
  }
  void AnnounceAs(const std::string& address, const std::string& report,
                  Lifetime lifetime = Lifetime::kEphemeral) {
    Provider provider;
    provider.address = address;
    Put(ProviderPath(provider), report, lifetime);
  }
  void AnnounceHigh(const std::string& tag, int64_t high) {
    AnnounceAs("h:1", FormatReport({.high = {{tag, high}}}));
  }
  void Configure(const std::string& name, const std::string& data) {
    Put(std::string(kConfiguratorsPath), "");
    Put(std::string(kConfiguratorsPath) + "/" + name, data);
  }
  void MakeTag(const std::string& name, int64_t high, int64_t returned = 0) {
    TagNode node;
    node.tag.name = name;
    node.tag.strategy = "segment";
    node.tag.high = high;
    node.returned = returned;
    Put(std::string(kTagsPath), "");
    Put(TagPath(name), *WriteTagNode(node));
  }
  static std::string ProviderPath(const Provider& provider) {
    return std::string(kProvidersPath) + "/" + ProviderNodeName(provider);
  }
  void MakeProvidersFolder() {
    Put(std::string(kServicePath), "");
    Put(std::string(kProvidersPath), "");
  }
  Audit Read() { return *ReadAudit(registry_, kNow); }
  // Returns an audit during which `happens` runs directly after the node was read.
  Audit ReadWhile(const std::string& path, std::function<void()> happens) {
    BusyCoordinator busy(coordinator_);
    busy.OnceAfterReading(path, std::move(happens));
    BlockingCoordinator registry(busy, clock_);
    EXPECT_TRUE(registry.Connect(Milliseconds(0)).ok());
    return *ReadAudit(registry, kNow);
  }
  VirtualClock clock_{kNow};
  MemoryTree tree_{clock_};
  MemoryCoordinator coordinator_{tree_};
  BlockingCoordinator registry_{coordinator_, clock_};
  SeededEntropy entropy_{1};
};

}  // namespace firn
