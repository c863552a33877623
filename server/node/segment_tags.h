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
#include "server/store/control_thread.h"
#include "server/store/ledger.h"

namespace firn {

// The segment and dated tags of one node: where each one's ranges come from, and the strategy that
// gives their numbers. One strategy for each tag name, for as long as its form (FormOf), store,
// buffer and zone stay the same: a definition that changes otherwise keeps the numbers that are in
// memory. A strategy serves one form for life: as soon as anybody here, the ledger included, reads
// a node of another one, it is abandoned.
//
// Add*, On*: before the control loop starts. Make, Saw, Tick: on the control thread. status():
// any thread. StopAll: the thread that owns the node.
class SegmentTags {
 public:
  // All must outlive it; `control` runs tasks on the control thread. The store `registry` is there
  // from the start.
  SegmentTags(Coordinator& registry, PostToControl control, const Clock& clock, Entropy& entropy);
  ~SegmentTags();

  // Tags whose `store` is the store's name get their ranges from it, under their ledgers.
  // kConflict when the name is taken.
  Status AddStore(std::unique_ptr<RangeStore> store);

  // The same for a source that sees to the ledger itself.
  Status AddSource(std::string name, std::unique_ptr<RangeSource> source);

  // The same for dated tags, which have no store of a name; from the start it is the registry.
  void SetDatedSource(std::unique_ptr<RangeSource> source) { dated_ = std::move(source); }

  // The registry's own clock, for such a source.
  RegistryTime& registry_time() { return registry_time_; }

  // For such sources.
  Ledger& ledger() { return ledger_; }
  const PostToControl& control() const { return control_; }

  // `news` is called, on any thread, when waiting calls of a tag may succeed.
  using News = std::function<void(const std::string& tag)>;
  void OnNews(News news) { news_ = std::move(news); }

  // `redefined` is called, on the control thread, for a tag whose definition must be read again,
  // since its strategy has closed: the ledger or a reading has found it in another form.
  void OnRedefined(std::function<void(const std::string& tag)> redefined) {
    redefined_ = std::move(redefined);
  }

  // The tag's strategy. kNotFound: there is no store of that name here; kInvalid: the store cannot
  // serve such a tag.
  Result<std::shared_ptr<Strategy>> Make(const TagDefinition& tag);

  // A reading of a tag's node; nothing: it has gone.
  void Saw(const std::string& tag, const std::optional<TagNode>& node);

  // The node as it was when this server was stopped.
  void Remember(const std::string& tag, const TagNode& node) { ledger_.Remember(tag, node); }

  // Does the work that is due. Visits tags with work at every call, and all others once a second:
  // thousands of idle tags cost little.
  void Tick(BootMs now);
  static constexpr Milliseconds kVisitAllEvery{1'000};

  // Closes all strategies, those that are made later too, and begins to give back what can be.
  void Stop();
  // After Stop: nothing is on its way any more.
  bool settled() const;
  // Stops and waits for that, at most `patience`. While the control loop runs.
  void StopAll(Milliseconds patience);

  std::map<std::string, SegmentStatus> status() const;
  // Of one tag; nothing: it is not served here. The control thread waits for one tag's status at
  // most, where that of all is not needed.
  std::optional<SegmentStatus> status(const std::string& tag) const;

  // The stores there are, and whether each permits tags without a buffer. Once all are added.
  std::map<std::string, bool> stores() const;
  // Returns the stores for which the ledger may stand in.
  std::set<std::string> stand_ins() const;

 private:
  struct Served {
    bool Fits(const TagDefinition& tag) const {
      return strategy && !abandoned && store == tag.store && buffer == tag.buffer &&
             zone == tag.zone && form == FormOf(tag);
    }

    std::string form;
    std::string store;
    TagBuffer buffer = TagBuffer::kDouble;
    std::string zone;
    RangeSource* source = nullptr;
    std::shared_ptr<RangedStrategy> strategy;
    // Before this one; what they still get, or cannot give back, is waste.
    std::vector<std::shared_ptr<RangedStrategy>> ending;
    bool abandoned = false;
    bool deleted = false;
    int64_t wasted = 0;               // by those before
    std::string trouble{};            // as logged last
    std::optional<BootMs> told_at{};  // when that was
  };

  // Tags whose sources have answered since the last tick. Sources may outlive the rest.
  struct AnsweredTags {
    std::mutex mutex;  // taken last
    std::vector<std::string> tags;
  };

  Status CheckStandIn(const TagDefinition& tag) const;
  Result<RangeSource*> SourceOf(const TagDefinition& tag) const;
  Result<std::shared_ptr<RangedStrategy>> MakeStrategy(const TagDefinition& tag,
                                                       RangeSource& source);
  void Drop(const std::string& tag, const std::string& why);
  // Returns whether the tag had a strategy that was not abandoned before.
  bool Abandon(const std::string& tag);
  int64_t WastedBySources(const std::string& tag) const;
  std::optional<SegmentStatus> StatusOf(const std::string& tag, const Served& served) const;
  void VisitLocked(const std::string& tag, Served& served, BootMs now);
  static void ForgetEnded(Served& served);
  void LogTroublesLocked(BootMs now);

  const PostToControl control_;
  const Clock& clock_;
  Entropy& entropy_;
  News news_;
  std::function<void(const std::string& tag)> redefined_;
  RegistryTime registry_time_;
  Ledger ledger_;                                                // on the control thread
  std::map<std::string, std::unique_ptr<RangeSource>> sources_;  // by name; go before the ledger
  std::unique_ptr<RangeSource> dated_;

  mutable std::mutex mutex_;              // guards all below
  std::map<std::string, Served> served_;  // by tag
  std::set<std::string> busy_;            // tags that are visited at the next tick
  BootMs visit_all_at_;
  BootMs look_at_;  // for troubles to log
  bool stopped_ = false;

  const std::shared_ptr<AnsweredTags> stirred_ = std::make_shared<AnsweredTags>();
};

}  // namespace firn
