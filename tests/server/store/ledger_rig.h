#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/id/layout.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/cluster/tag_store.h"
#include "server/store/ledger.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

inline TagDefinition LedgerTag(const std::string& name = "order") {
  return {.name = name, .strategy = "segment"};
}

// A cluster in memory whose tags have ledgers, with an operator's view and actions.
class LedgerCluster {
 public:
  LedgerCluster() {
    EXPECT_TRUE(operator_.Connect(Milliseconds(1000)).ok());
    meta_.uuid = "6f9619ff-8b86-4d11-b42d-00c04fc964ff";
    meta_.era = Nonce(7, 7);
    meta_.layout = "firn";
    Do({Write::Create(kMetaPath, FormatMeta(meta_), Lifetime::kPersistent),
        Write::Create(EraPath(meta_.era), "", Lifetime::kPersistent)});
    Create("order");
  }

  void Create(const std::string& name, int64_t start = 1) {
    TagDefinition tag{.name = name, .strategy = "segment"};
    tag.start = start;
    const Status made = store_.Create(tag);
    EXPECT_TRUE(made.ok()) << made;
  }

  // Sets the ledger as another server does, without any rule.
  void Move(const std::string& name, int64_t high) {
    Edit(name, [high](TagNode& node) { node.tag.high = high; });
  }
  void Edit(const std::string& name, const std::function<void(TagNode&)>& edit) {
    StoredTag stored = *store_.Read(name);
    edit(stored.node);
    Do({Write::Set(TagPath(name), *WriteTagNode(stored.node), stored.stat.version)});
  }
  void Erase(const std::string& name) { Do({Write::Erase(TagPath(name), Write::kAnyVersion)}); }

  // Gives the root another version and thaws it.
  void Thaw() { Do({Write::Set(kMetaPath, FormatMeta(meta_), Write::kAnyVersion)}); }
  // Serves undefined tags as well; returns the first id that may be issued under any name.
  int64_t ServeUndefined(WallMs since) {
    meta_.default_strategy = "snowflake";
    meta_.ids_since = since;
    Thaw();
    const Layout layout = Layout::Firn();
    return layout.PackUnchecked(0, layout.TickAt(since), 0);
  }
  // A short form of `firn restore`: its data begin another era.
  void Restore() {
    const std::string ended = EraPath(meta_.era);
    meta_.era = Nonce(7, ++restores_);
    Do({Write::Set(kMetaPath, FormatMeta(meta_), Write::kAnyVersion),
        Write::Erase(ended, Write::kAnyVersion),
        Write::Create(EraPath(meta_.era), "", Lifetime::kPersistent)});
  }

  // The begin of one; Thaw ends it.
  void BeginRestore() {
    meta_.frozen = true;
    Restore();
    meta_.frozen = false;
  }

  TagNode NodeOf(const std::string& name) { return store_.Read(name)->node; }
  int64_t High(const std::string& name) { return NodeOf(name).tag.high; }
  Nonce era() const { return meta_.era; }
  bool frozen() { return ParseMeta(tree_.Peek(kMetaPath)->data)->frozen; }

  void Do(std::vector<Write> writes) {
    const WriteOutcome outcome = operator_.Multi(std::move(writes));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }

  VirtualClock& clock() { return clock_; }
  MemoryTree& tree() { return tree_; }
  TagStore& store() { return store_; }

 private:
  VirtualClock clock_{WallMs(1'700'000'000'000)};
  MemoryTree tree_{clock_};
  MemoryCoordinator memory_{tree_};
  BlockingCoordinator operator_{memory_, clock_};
  ClusterMeta meta_;
  uint64_t restores_ = 100;
  TagStore store_{operator_};
};

// A server's ledger in such a cluster, with a connection that a test may break.
class LedgerHost {
 public:
  explicit LedgerHost(LedgerCluster& cluster) : clock_(cluster.clock()) {
    auto inner = std::make_unique<MemoryCoordinator>(cluster.tree());
    registry_ = std::make_unique<FaultyCoordinator>(std::move(inner), clock_);
    ledger_ = std::make_unique<Ledger>(
        *registry_,
        LedgerHooks{
            .stop = [this](const std::string& tag, const std::string&) { stopped.push_back(tag); },
            .redefined = [this](const std::string& tag) { redefined.push_back(tag); }});
    Round();
  }

  void Round() {
    registry_->Dispatch(Milliseconds(0));
    ledger_->Tick(clock_.Boot());
  }
  // Lets time pass until `done`; returns false if that does not happen.
  bool Until(const std::function<bool()>& done) {
    for (int i = 0; i < 1000 && !done(); ++i) {
      Round();
      clock_.Advance(Milliseconds(10));
    }
    return done();
  }

  Result<Range> Extend(int64_t size, const std::string& tag = "order") {
    return Extend(size, LedgerTag(tag));
  }
  Result<Range> Extend(int64_t size, const TagDefinition& tag) {
    std::optional<Result<Range>> told;
    ledger_->Extend(tag, size, [&](Result<Range> range) { told = std::move(range); });
    if (!Until([&] { return told.has_value(); })) return Internal("no answer");
    return *told;
  }
  Result<int64_t> Begin(const TagDefinition& tag) {
    std::optional<Result<int64_t>> told;
    ledger_->Begin(tag, [&](Result<int64_t> begin) { told = std::move(begin); });
    if (!Until([&] { return told.has_value(); })) return Internal("no answer");
    return *told;
  }
  Status Cover(Range range, const std::string& tag = "order") {
    return Cover(range, LedgerTag(tag));
  }
  Status Cover(Range range, const TagDefinition& tag) {
    std::optional<Status> told;
    ledger_->Cover(tag, range, [&](Status status) { told = std::move(status); });
    return Until([&] { return told.has_value(); }) ? *told : Internal("no answer");
  }
  Status GiveBack(Range tail, const std::string& tag = "order") {
    std::optional<Status> told;
    ledger_->GiveBack(tag, tail, [&](Status status) { told = std::move(status); });
    return Until([&] { return told.has_value(); }) ? *told : Internal("no answer");
  }

  // The highest values that the ledger has reported so far.
  std::map<std::string, int64_t> Highest() {
    for (const auto& [tag, high] : ledger_->TakeNews()) highest_[tag] = high;
    return highest_;
  }

  Ledger& ledger() { return *ledger_; }
  FaultyCoordinator& registry() { return *registry_; }

  std::vector<std::string> stopped;
  std::vector<std::string> redefined;

 private:
  VirtualClock& clock_;
  std::unique_ptr<FaultyCoordinator> registry_;
  std::unique_ptr<Ledger> ledger_;
  std::map<std::string, int64_t> highest_;
};

}  // namespace firn
