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
#include "server/node/tag_owners.h"

namespace firn {

struct IssuingNodeOptions {
  ClaimOptions claim{};
  std::optional<RackSplit> split{};  // the cluster's; empty: the layout's own
  bool guessed = false;              // layout and split are guesses, not read from the registry
  int64_t session = 0;               // the coordinator's session in JoinCluster; 0: none
  std::string cluster_uuid{};        // if known before the registry answers
  // A machine id that the operator assigned. Then there is no registry, and the layout is the only
  // claim option that is used.
  std::optional<StaticKeeperOptions> given{};
  IdClockOptions id_clock{};
  SnowflakeOptions snowflake{};
  bool virtual_time = false;  // the clock is simulated: read it at each call, see TickSource
  // Tag of calls that do not name one. Without a registry, it is a plain snowflake tag.
  std::string default_tag = "default";
  // Without a registry: strategy of all other tags; empty: they are unknown.
  std::string default_strategy{};
  Extensions extensions{};
  OwnersSetup owners{};
};

// Objects that a node owns.
struct IssuingNodeParts {
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<StateFolder> folder;  // locked
  // Cached tag definitions. If null, a start without the registry serves no tags.
  std::unique_ptr<TagMemory> kept{};
  std::vector<SiblingClaim> siblings{};  // further machine ids, with their locked folders
};

// Callbacks of a running node, all optional. They run on the control thread, except `waiting`, and
// except a call of `session` inside Start.
struct IssuingNodeHooks {
  std::function<void(Now)> tick{};  // after the node's own work
  // Called for each event of the registry's session, and at the start if there is a session
  // already.
  std::function<void(const SessionEvent&)> session{};
  // Called for each registry tag that begins to be served, and for each deleted one.
  std::function<void(const TagDefinition&)> tag_served{};
  std::function<void(const std::string& tag)> tag_deleted{};
  SegmentTags::News waiting{};  // any thread; waiting calls of a tag may succeed now
};

// State of a node at one moment.
struct IssuingNodeStatus {
  ClaimStatus claim;                  // all machine ids combined, see Together
  std::vector<ClaimStatus> claims{};  // of each machine id
  IdClockReport id_clock;
  Milliseconds session_age{0};  // 0 without a session
  // The guessed layout was wrong, and no machine id has been held. The owner must replace this node
  // by one with the registry's settings.
  bool misguessed = false;
  bool frozen = false;         // the cluster is frozen: no claims, no new ranges
  bool tags_known = false;     // read from the registry or from the cache
  bool tags_complete = false;  // these are all of the cluster's tags
  // Why the registry's tags are ignored (TagFollower, rule 5a); empty if they are used.
  std::string root_trouble{};
  // Why a call without a tag would be refused; empty if it would be served. Equals why_not_serving
  // while the default tag is disabled. STATES.md lists all reasons; Readiness defines when a reason
  // counts.
  std::optional<std::string> why_not_ready = "it has just started";
  // Why this server cannot issue an id of any tag, so that clients should use other servers; empty
  // if it can.
  std::optional<std::string> why_not_serving = "it has just started";
  // Tags whose calls are refused; never null.
  std::shared_ptr<const RefusedTags> refused = std::make_shared<RefusedTags>();
  // Tags that are served by an earlier definition, with the reason; never null.
  std::shared_ptr<const OutdatedTags> outdated = std::make_shared<OutdatedTags>();
  // The highest ledger that this node has seen of each tag; never null.
  std::shared_ptr<const TagFollower::Ledgers> highest = std::make_shared<TagFollower::Ledgers>();
  // The last known definitions of tags that are lost or refused; never null.
  std::shared_ptr<const TagFollower::Definitions> unserved =
      std::make_shared<TagFollower::Definitions>();
};

// The part of a process that issues ids: claims in the registry, the id clock, the snowflake
// sequences under the claims, the tags that the registry defines, and the issuer for callers.
// firn-server and firn::Embedded both use it. It has no network interface.
//
//     coordinator, state folder                            made by the caller
//        control loop: machine ids (keeper, bridge) -----+
//        kept tags --- tag follower --- catalogue -------+--> issuer --> ids
//                      ledger --- ranges --> segments ---+
//
// Construct, fill catalogue(), Start; then Stop and destroy, all on one thread. In between, any
// thread may use issuer() and status().
class IssuingNode {
 public:
  // `clock` and `entropy` must outlive this. The node holds one machine id, and one more per
  // sibling.
  IssuingNode(const IssuingNodeOptions& options, IssuingNodeParts parts, const Clock& clock,
              Entropy& entropy);
  ~IssuingNode();  // stops
  IssuingNode(const IssuingNode&) = delete;
  IssuingNode& operator=(const IssuingNode&) = delete;

  // For strategies and plugins in addition to the built-in ones. Fill before Start.
  Catalogue& catalogue() { return catalogue_; }
  const Catalogue& catalogue() const { return catalogue_; }

  // For stores in addition to `registry`. Fill before Start.
  SegmentTags& segments() { return segments_; }
  const SegmentTags& segments() const { return segments_; }

  // Starts the node, which tries to claim a machine id until it is stopped. kInvalid for
  // contradictory options. All objects that the hooks use must outlive Stop.
  Status Start(IssuingNodeHooks hooks = {});

  // Like Start, but without a control thread: the caller is the control thread and calls
  // loop().Round() repeatedly. For simulations, which control the time.
  Status StartByHand();

  // Waits until a machine id is held and the tags are known, at most for `patience`. Returns the
  // reason if that fails.
  Status WaitUntilServing(Milliseconds patience) const;

  // Hands the tags that this server owns over to other servers, and takes numbers from them
  // afterwards. For the beginning of a drain.
  void HandOver();
  // The owners of tags with buffer = owner.
  TagOwners& owners() { return owners_; }
  const TagOwners& owners() const { return owners_; }

  // Refuses new calls with DRAINING, closes all strategies, and gives the machine id and unused
  // ranges back. Waits for the registry's answer, at most for the claim's release_wait. After
  // StartByHand it does not wait; the caller runs rounds until has_stopped(). Idempotent.
  void Stop();
  bool has_stopped() const;

  Issuer& issuer() { return issuer_; }
  const Issuer& issuer() const { return issuer_; }
  const Layout& layout() const { return options_.claim.layout; }
  RackSplit split() const { return options_.split.value_or(RackSplit::Default(layout())); }
  // The claims' options, completed by the cluster's settings.
  const ClaimOptions& claim_options() const { return options_.claim; }
  WallMs id_time() const { return id_clock_.Last(); }
  // Returns whether the node holds a machine id and the registry has confirmed its claims since the
  // last reconnection (Keeper::checked). Control thread only.
  bool claim_checked() const { return machine_ids_.checked(); }
  ControlLoop& loop() { return loop_; }
  IssuingNodeStatus status() const;  // its claim's `uuid` is set once the cluster is known

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
  std::optional<Refusal> WhyNotStarted(const IssuingNodeStatus& seen) const;
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
  MachineIds machine_ids_;  // used on the loop's thread, like all members below except status_
  const std::unique_ptr<TagMemory> kept_;  // null: no cached tags
  TagOwners owners_;
  SegmentTags segments_;
  TagFollower follower_;
  LayoutEndWatch layout_end_;
  IssuingNodeHooks hooks_;
  int64_t session_ = 0;  // at the last tick; began at session_since_
  BootMs session_since_;
  Readiness ready_, serving_;
  std::optional<MetaWatch> guess_watch_;  // until a machine id is held
  bool misguessed_ = false;

  std::atomic<bool> stopping_ = false;
  std::atomic<bool> ledgers_kept_ = false;  // saved in kept_ after the stop

  mutable std::mutex status_mutex_;
  IssuingNodeStatus status_;  // under status_mutex_; from the last tick
  bool stopped_ = false;
};

}  // namespace firn
