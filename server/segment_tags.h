#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/entropy.h"
#include "common/tag_definition.h"
#include "registry/control_loop.h"
#include "registry/tag_node.h"
#include "server/issue/range_source.h"
#include "server/issue/range_store.h"
#include "server/issue/ranged_strategy.h"
#include "server/store/control_thread.h"
#include "server/store/ledger.h"

namespace firn {

// The segment tags of one node: where each one's ranges come from, and the strategy that gives
// their numbers. One strategy for each tag name, for as long as its store and buffer stay the same:
// a definition that changes otherwise keeps the numbers that are in memory.
//
// Add*, OnNews: before the control loop starts. Make, Saw, Tick: on the control thread. status():
// any thread. StopAll: the thread that owns the node.
class SegmentTags {
 public:
  // All must outlive it. `registry` is there from the start, as a source.
  SegmentTags(ControlLoop& loop, const Clock& clock, Entropy& entropy);
  ~SegmentTags();

  // Tags whose `store` is the store's name get their ranges from it, under their ledgers.
  // kConflict when the name is taken.
  Status AddStore(std::unique_ptr<RangeStore> store);

  // The same for a source that sees to the ledger itself.
  Status AddSource(std::string name, std::unique_ptr<RangeSource> source);

  // For such sources.
  Ledger& ledger() { return ledger_; }
  PostToControl control();

  // `news` is told, on any thread, when calls that wait may have more luck.
  void OnNews(std::function<void()> news) { news_ = std::move(news); }

  // The tag's strategy. kNotFound: there is no store of that name here; kInvalid: the store cannot
  // serve such a tag.
  Result<std::shared_ptr<Strategy>> Make(const TagDefinition& tag);

  // A reading of a tag's node; nothing: it has gone.
  void Saw(const std::string& tag, const std::optional<TagNode>& node);

  void Tick(BootMs now);

  // Closes all strategies and gives back what can be given back; waits at most `patience`. While
  // the control loop runs.
  void StopAll(Milliseconds patience);

  std::map<std::string, SegmentStatus> status() const;

 private:
  struct Served {
    std::string store;
    TagBuffer buffer = TagBuffer::kDouble;
    std::shared_ptr<RangedStrategy> strategy;
    std::string trouble{};            // as logged last
    std::optional<BootMs> told_at{};  // when that was
  };

  Result<std::shared_ptr<RangedStrategy>> MakeStrategy(const TagDefinition& tag);
  void TellTroublesLocked(BootMs now);
  bool Settled() const;

  ControlLoop& loop_;
  const Clock& clock_;
  Entropy& entropy_;
  std::function<void()> news_;
  Ledger ledger_;                                                // on the control thread
  std::map<std::string, std::unique_ptr<RangeSource>> sources_;  // by name; go before the ledger

  mutable std::mutex mutex_;              // guards all below
  std::map<std::string, Served> served_;  // by tag
  BootMs look_at_;                        // for troubles to log
};

}  // namespace firn
