#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/time/entropy.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/slot.h"
#include "registry/operate/root_settings.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/servers/provider.h"

namespace firn {

// A bound that a server reports, and whose it is, where it says so.
struct ReportedBound {
  WallMs bound;
  std::optional<MachineId> machine{};

  friend bool operator==(const ReportedBound&, const ReportedBound&) = default;
};

// What is known besides the tree itself when a registry lost data, or went back in time.
struct RestoreFacts {
  WallMs now;                    // of the operator's machine
  Milliseconds window{600'000};  // the largest --claim_window of any server
  // The largest clock skew known, of id clocks too: after an earlier restore they run ahead of the
  // wall clock by as much as the floor did. A holder may still learn of a bound that nobody has
  // reported; it lies at most a window ahead of that holder's id clock.
  Milliseconds skew_max{10'000};
  Milliseconds clock_skew_max{10'000};  // by which `now` may differ from the registry's clock
  std::vector<ReportedBound> bounds{};  // that running servers report
  std::vector<MachineId> retired{};     // to be taken out of use, by the operator's word
  std::vector<ReservedIds> reserved{};  // for other systems; records are created for them
  std::string uuid{};                   // of the cluster, for a tree that has no root node any more
  Layout layout = Layout::Firn();       // likewise
  int rack_bits = 2;                    // likewise
  std::string default_strategy{};       // likewise
  // Since when ids are issued, as ClusterMeta has it, where the tree does not say so; an earlier
  // moment than the tree's replaces that.
  WallMs ids_since{};
  bool NewIdsSince(const ClusterMeta& known) const {
    return ids_since != WallMs() && (known.ids_since == WallMs() || ids_since < known.ids_since);
  }
  // Of each rack; unless given as many as the tree still has, or all where it has none.
  std::optional<uint32_t> workers{};
  // The cluster that is here instead of that of `uuid` was never used, and may go.
  bool replaces_unused = false;
  // Puts the tags right while nobody can take anything: called under the frozen root node, once all
  // else is done. What it refuses ends the restoring, and the cluster stays frozen.
  std::function<Status(const MetaAsRead& frozen)> tags{};
};

// Adds what a server says of itself, in its node or asked by hand: its bound, and its skew unless
// that is absurd, for a node is data of strangers.
void AddReport(const ProviderReport& report, RestoreFacts& facts);

// What was done.
struct RestoreReport {
  std::string uuid;
  WallMs floor;
  bool root_made = false;  // by this call, or by one before it that did not come to its end
  uint32_t workers = 0;    // slots that each rack has now, up to the highest
  // Their bounds were absurd, or reported so, or their records unreadable.
  std::vector<Slot> retired{};
  // Now reserved, although a server of this cluster has claimed them.
  std::vector<Slot> reserved_late{};
  std::vector<ReportedBound> ignored{};  // that were absurd: more than a day ahead
  std::vector<std::string> mended{};     // paths of damaged nodes that were made anew or taken away
};

// Lifts the cluster's floor above everything that anybody may have used or may still hold: 3
// windows above the highest of now with the largest skew added, the floor so far, every sane bound
// in the tree and every one reported. Not above now alone: after an earlier restore all claims run
// ahead of every clock, and a holder that nobody reaches may have renewed since. The skew is added
// to now alone: it counts id clocks, so added to the floor, too, it would double with each restore
// how far the cluster is ahead. Retires slots whose record is poison, makes missing ones, and lets
// claims begin again, under a new version of the root node.
//
//  1. Frozen in an era of its own: whoever read the root node before can write nothing more.
//  2. Damaged nodes are mended. What there is goes into the floor, and the floor into the root
//  node.
//  3. Only then missing records are made, as long as nobody else changes the root node.
//  4. The tags, as `facts.tags` says; then, in a cluster that is made anew, the tag `default`, as
//  MakeCluster makes it. One that was defined otherwise is for `facts.tags` to make: servers that
//  remember it refuse it in this form. Of a cluster that was there it is not guessed.
//  5. Unfrozen.
//
// A root node that cannot be read is made anew like a lost one, by the uuid and layout of the
// facts; so is that of another cluster, if the facts say that it was never used.
//
// A bound that is reported to lie more than a day ahead is no measure for the floor, but whoever
// reports it may have issued up to there: its slot is retired, too.
//
// kInvalid when `now` and the registry's own clock are too far apart: the floor stands on them. It
// stands on the later one.
//
// Interrupted or refused, it leaves the cluster frozen and may be called again (each call lifts the
// floor once more). Blocks.
Result<RestoreReport> RestoreCluster(BlockingCoordinator& registry, const RestoreFacts& facts,
                                     Entropy& entropy);

}  // namespace firn
