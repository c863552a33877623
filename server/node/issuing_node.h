#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/id/id_clock.h"
#include "common/id/rack_split.h"
#include "common/sequence/tick_source.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/keeper.h"
#include "registry/claim/static_keeper.h"
#include "registry/cluster/meta_watch.h"
#include "registry/seam/control_loop.h"
#include "registry/seam/coordinator.h"
#include "registry/state/state_folder.h"
#include "server/issue/catalogue.h"
#include "server/issue/issuer.h"
#include "server/issue/snowflake/layout_end.h"
#include "server/issue/snowflake/snowflake.h"
#include "server/node/extensions.h"
#include "server/node/kept_tags.h"
#include "server/node/machine_ids.h"
#include "server/node/own_parts.h"
#include "server/node/readiness.h"
#include "server/node/segment_tags.h"
#include "server/node/served_tags.h"
#include "server/node/tag_follower.h"

namespace firn {

struct IssuingNodeOptions {
  ClaimOptions claim{};
  std::optional<RackSplit> split{};  // of the cluster; empty: the layout's own
  bool guessed = false;              // layout and split: the registry was away and has to be asked
  int64_t session = 0;  // that the coordinator, used before, told its connection in; 0: it lost it
  std::string cluster_uuid{};  // what the node calls its cluster until it has asked it
  // A machine id that the operator has given by hand: then there is no registry, and of the claim's
  // options only the layout counts.
  std::optional<StaticKeeperOptions> given{};
  IdClockOptions id_clock{};
  SnowflakeOptions snowflake{};
  bool virtual_time = false;  // the clock is not real: no tick of it is used twice, see TickSource
  // Tag of calls that name none. A node without a registry serves it as a plain snowflake tag.
  std::string default_tag = "default";
  // Of a node without a registry: the strategy of all other tags; empty: they are unknown.
  std::string default_strategy{};
  Extensions extensions{};
};

// What a node is built of.
struct IssuingNodeParts {
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<StateFolder> folder;  // locked
  // Without one, a start that does not reach its registry serves no tags.
  std::unique_ptr<TagMemory> kept{};
  std::vector<SiblingClaim> siblings{};  // further machine ids, with their locked folders
};

// What a node calls while it runs, if it is set: on the control thread, except `waiting`, and
// `session` inside Start.
struct IssuingNodeHooks {
  std::function<void(Now)> tick{};  // after the node's own work
  // For each event of the registry's session; at the start if there is a session already.
  std::function<void(const SessionEvent&)> session{};
  // For each tag of the registry that begins to be served, and for each that was deleted.
  std::function<void(const TagDefinition&)> tag_served{};
  std::function<void(const std::string& tag)> tag_deleted{};
  SegmentTags::News waiting{};  // on any thread: waiting calls of a tag may succeed
};

// How a node is, at one moment.
struct IssuingNodeStatus {
  ClaimStatus claim;                  // of all its machine ids together
  std::vector<ClaimStatus> claims{};  // of each
  IdClockReport id_clock;
  std::optional<Milliseconds> ahead_of_registry{};  // our wall clock, when the registry last told
  Milliseconds session_age{0};                      // 0 while there is none
  // The guess was wrong, and no machine id was ever held: another node has to take this one's
  // place, made of what the registry says by now.
  bool misguessed = false;
  bool frozen = false;      // the cluster is: no server claims, and segment tags take no ranges
  bool tags_known = false;  // read from the registry, or from the cached definitions
  // Why the registry's tags do not count (TagFollower, rule 5a); empty: they do.
  std::string root_trouble{};
  // Why a call that names no tag would be refused. While the default tag is disabled:
  // why_not_serving. STATES.md lists all reasons; Readiness says when one counts.
  std::optional<std::string> why_not_ready = "it has just started";
  // Why clients should use other servers: no id of any tag can be issued.
  std::optional<std::string> why_not_serving = "it has just started";
  // Tags whose calls are refused; never null.
  std::shared_ptr<const RefusedTags> refused = std::make_shared<RefusedTags>();
  // Tags that are served by an earlier definition, and why; never null.
  std::shared_ptr<const OutdatedTags> outdated = std::make_shared<OutdatedTags>();
  // Ledger of each tag, as far as this node has seen; never null.
  std::shared_ptr<const TagFollower::Ledgers> highest = std::make_shared<TagFollower::Ledgers>();
  // Tags that the registry has lost, as they were known last; never null.
  std::shared_ptr<const TagFollower::Definitions> lost =
      std::make_shared<TagFollower::Definitions>();
};

// Everything that issues ids in one process, joined: claims kept in the registry, the id clock, the
// snowflake sequences under them, the tags that the registry defines, and the issuer that
// callers ask. What firn-server and firn::embedded have in common; it knows no front door.
//
//     coordinator, state folder                            made by the caller
//        control loop: machine ids (keeper, bridge) -----+
//        kept tags --- tag follower --- catalogue -------+--> issuer --> ids
//                      ledger --- ranges --> segments ---+
//
// Order of life: construct, fill catalogue(), Start; Stop, destroy. One thread does that; issuer()
// and status() are for any thread in between.
class IssuingNode {
 public:
  // `clock` and `entropy` must outlive it. It holds one machine id, and one for each sibling.
  IssuingNode(const IssuingNodeOptions& options, IssuingNodeParts parts, const Clock& clock,
              Entropy& entropy);
  ~IssuingNode();  // stops
  IssuingNode(const IssuingNode&) = delete;
  IssuingNode& operator=(const IssuingNode&) = delete;

  // Plugins and strategies beside the built-in ones go in here, before Start.
  Catalogue& catalogue() { return catalogue_; }
  const Catalogue& catalogue() const { return catalogue_; }

  // Stores beside `registry` go in here, before Start.
  SegmentTags& segments() { return segments_; }
  const SegmentTags& segments() const { return segments_; }

  // kInvalid for options that make no sense. From then on it looks for a machine id, for ever.
  // Whatever the hooks use must outlive Stop.
  Status Start(IssuingNodeHooks hooks = {});

  // The same without a control thread: the caller's is it, and calls loop().Round() again and
  // again. For simulations, whose time passes only when they say so.
  Status StartByHand();

  // Waits until a machine id is held and the tags are known, at most `patience`; otherwise says why
  // it is not so yet.
  Status WaitUntilServing(Milliseconds patience) const;

  // Refuses new calls with DRAINING, closes what issues, gives the machine id and unused
  // ranges back. Waits for the registry's answer at most as long as the claim's options say; driven
  // by hand it does not wait: rounds follow until has_stopped(). Idempotent.
  void Stop();
  bool has_stopped() const;

  Issuer& issuer() { return issuer_; }
  const Issuer& issuer() const { return issuer_; }
  const Layout& layout() const { return options_.claim.layout; }
  RackSplit split() const { return options_.split.value_or(RackSplit::Default(layout())); }
  // Its claims' options, with what the cluster has determined.
  const ClaimOptions& claim_options() const { return options_.claim; }
  WallMs id_time() const { return id_clock_.Last(); }
  // Whether it holds a machine id, and the registry showed its claims since the last reconnection
  // (Keeper::checked). Only on the control thread.
  bool claim_checked() const { return machine_ids_.checked(); }
  ControlLoop& loop() { return loop_; }
  IssuingNodeStatus status() const;  // its claim's `uuid` is never empty once the cluster is known

 private:
  std::unique_ptr<Keeper> MakeKeeper(size_t number, ClaimUser& user);
  Status Prepare(IssuingNodeHooks hooks);
  Status FillCatalogue();
  Status Extend();
  PostToControl ToControl();
  Status ServeWithoutRegistry();
  void Tick(Now now);
  void CheckGuess(BootMs now);
  void Show(const KeeperTime& time);
  std::optional<Refusal> WhyNotServing(const IssuingNodeStatus& seen) const;
  std::optional<Refusal> WhyNotReady(const IssuingNodeStatus& seen) const;

  const IssuingNodeOptions options_;
  const Clock& clock_;
  Entropy& entropy_;
  const std::unique_ptr<StateFolder> folder_;
  const std::vector<SiblingClaim> siblings_;

  IdClock id_clock_;
  TickSource tick_source_;
  const std::shared_ptr<RejectionHandler> rejections_;
  OwnStrategies own_strategies_;
  Catalogue catalogue_;
  Issuer issuer_;

  ControlLoop loop_;
  MachineIds machine_ids_;                 // on the loop's thread, as all below but status_
  const std::unique_ptr<TagMemory> kept_;  // or null
  SegmentTags segments_;
  TagFollower follower_;
  LayoutEndWatch layout_end_;
  IssuingNodeHooks hooks_;
  std::optional<Milliseconds> ahead_of_registry_;
  int64_t session_ = 0;  // as of the last tick, and since when
  BootMs session_since_;
  Readiness ready_, serving_;
  std::optional<MetaWatch> guess_watch_;  // until a machine id is held
  bool misguessed_ = false;

  std::atomic<bool> stopping_ = false;
  std::atomic<bool> ledgers_kept_ = false;  // in the memory, after the stop

  mutable std::mutex status_mutex_;
  IssuingNodeStatus status_;  // under status_mutex_; as of the last tick
  bool stopped_ = false;
};

}  // namespace firn
