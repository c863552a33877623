#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/tag/tag_definition.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/cluster/tag_node.h"
#include "registry/seam/coordinator.h"
#include "server/issue/dated/registry_time.h"
#include "server/issue/segment/range_source.h"
#include "server/issue/segment/range_store.h"
#include "server/issue/segment/ranged_strategy.h"
#include "server/node/tag_owners.h"
#include "server/store/control_thread.h"
#include "server/store/ledger.h"

namespace firn {

// The segment and dated tags of one node: their range sources and strategies. A tag keeps its
// strategy, with the numbers in memory, through edits that do not change form (FormOf), store,
// buffer or zone. A strategy serves only one form: as soon as this node or its ledger reads the tag
// in another form, the strategy is abandoned.
//
// Add*, On*: before the control loop starts. Make, Saw, Tick: control thread. status(): any thread.
// StopAll: the thread that owns the node.
class SegmentTags {
 public:
  // All references must outlive this; `control` runs tasks on the control thread. The store
  // `registry` is always present.
  SegmentTags(Coordinator& registry, PostToControl control, const Clock& clock, Entropy& entropy);
  ~SegmentTags();

  // Adds a store. Tags whose `store` is its name get their ranges from it, covered by their
  // ledgers. kConflict if the name is in use.
  Status AddStore(std::unique_ptr<RangeStore> store);

  // Like AddStore for a source that handles the ledger itself.
  Status AddSource(std::string name, std::unique_ptr<RangeSource> source);

  // Sets the source of dated tags, which do not name a store. Initially it is a source in the
  // registry.
  void SetDatedSource(std::unique_ptr<RangeSource> source) { dated_ = std::move(source); }

  // Without this call, tags with buffer = owner are refused. `owners` must outlive this.
  void SetOwners(TagOwners& owners) { owners_ = &owners; }

  // The registry's clock, for a source of dated tags.
  RegistryTime& registry_time() { return registry_time_; }

  // The ledgers, for sources that are added.
  Ledger& ledger() { return ledger_; }
  const PostToControl& control() const { return control_; }

  // `news` is called, on any thread, when waiting calls of a tag may succeed.
  using News = std::function<void(const std::string& tag)>;
  void OnNews(News news) { news_ = std::move(news); }

  // `redefined` is called, on the control thread, for a tag whose node has another form than its
  // strategy. The strategy has been closed, and the definition must be re-read.
  void OnRedefined(std::function<void(const std::string& tag)> redefined) {
    redefined_ = std::move(redefined);
  }

  // Returns the tag's strategy. kNotFound: this node does not have the tag's store; kInvalid: the
  // store cannot serve such a tag.
  Result<std::shared_ptr<Strategy>> Make(const TagDefinition& tag);

  // Records a reading of a tag's node; nullopt: the node is missing.
  void Saw(const std::string& tag, const std::optional<TagNode>& node);

  // Records the node from before this server was stopped last (Ledger::Remember).
  void Remember(const std::string& tag, const TagNode& node) { ledger_.Remember(tag, node); }

  // Does the work that is due. Visits busy tags at every call and all other tags once a second, so
  // that thousands of idle tags cost little.
  void Tick(BootMs now);
  static constexpr Milliseconds kVisitAllEvery{1'000};

  // Closes all strategies, also later ones, and begins to give unused numbers back.
  void Stop();
  // After Stop: returns true once nothing is in flight.
  bool settled() const;
  // Calls Stop, and waits until settled(), at most for `patience`. The control loop must be
  // running.
  void StopAll(Milliseconds patience);

  std::map<std::string, SegmentStatus> status() const;
  // Returns the status of one tag; nullopt if it is not served here. Unlike status(), this delays
  // the control thread for one tag only.
  std::optional<SegmentStatus> status(const std::string& tag) const;

  // Returns the stores, and whether each permits tags without a buffer. Call once all stores are
  // added.
  std::map<std::string, bool> stores() const;
  // Returns the stores for which ledgers may stand in.
  std::set<std::string> stand_ins() const;

 private:
  struct Served {
    bool Fits(const TagDefinition& tag) const {
      return strategy && store == tag.store && buffer == tag.buffer && zone == tag.zone &&
             form == FormOf(tag);
    }

    std::string form;
    std::string store;
    TagBuffer buffer = TagBuffer::kDouble;
    std::string zone;
    RangeSource* source = nullptr;
    std::shared_ptr<RangedStrategy> strategy;  // null: it was abandoned
    // Earlier strategies that have not settled. Numbers that they still get or cannot give back are
    // wasted.
    std::vector<std::shared_ptr<RangedStrategy>> ending;
    bool deleted = false;
    int64_t wasted = 0;               // total of earlier strategies that have settled
    std::string trouble{};            // the last logged error
    std::optional<BootMs> told_at{};  // time of the last log line
  };

  // Tags that were stirred since the last tick (RangedParts). A separate object, because sources
  // may outlive the other members.
  struct StirredTags {
    std::mutex mutex;  // locked after all other mutexes
    std::vector<std::string> tags;
  };

  Status CheckStandIn(const TagDefinition& tag) const;
  Result<RangeSource*> SourceOf(const TagDefinition& tag) const;
  Result<std::shared_ptr<RangedStrategy>> MakeStrategy(const TagDefinition& tag,
                                                       RangeSource& source);
  Result<std::shared_ptr<RangedStrategy>> MakeOrdered(const TagDefinition& tag,
                                                      const RangedParts& parts);
  void Drop(const std::string& tag, const std::string& why);
  // Abandons the tag's strategy. Returns true if it was not abandoned before.
  bool Abandon(const std::string& tag);
  int64_t WastedBySources(const std::string& tag) const;
  std::optional<SegmentStatus> StatusOf(const std::string& tag, const Served& served) const;
  void VisitLocked(const std::string& tag, Served& served, BootMs now);
  static void ForgetEnded(Served& served);
  void LogTroublesLocked(BootMs now);

  const PostToControl control_;
  const Clock& clock_;
  Entropy& entropy_;
  TagOwners* owners_ = nullptr;
  News news_;
  std::function<void(const std::string& tag)> redefined_;
  RegistryTime registry_time_;
  Ledger ledger_;  // on the control thread
  std::map<std::string, std::unique_ptr<RangeSource>>
      sources_;  // by name; destroyed before the ledger
  std::unique_ptr<RangeSource> dated_;

  mutable std::mutex mutex_;              // guards the members below
  std::map<std::string, Served> served_;  // by tag
  std::set<std::string> busy_;            // visited at the next tick
  BootMs visit_all_at_;
  BootMs look_at_;  // next check for troubles to log
  bool stopped_ = false;

  const std::shared_ptr<StirredTags> stirred_ = std::make_shared<StirredTags>();
};

}  // namespace firn
