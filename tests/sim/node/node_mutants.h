#pragma once

#include "tests/sim/sim_program.h"

namespace firn {

// Errors of whole nodes, each injected around a node: in its registry, its disk, its joiner, or a
// reader of its status. The product contains no switch for any of them.
enum class NodeMutant {
  kNone,
  kNoVersionCheck,      // registry: sets a slot's record without checking its version
  kLostUnheard,         // registry: a joiner is not notified that the connection is lost
  kBackUnheard,         // registry: the node is not notified that the connection is back
  kDefaultBeforeRead,   // joiner: assumes the tag `default`, without reading the registry
  kFormNotKept,         // disk: cached definitions have lost their text forms
  kFullDiskUntold,      // disk: reports definitions as cached that could not be cached
  kHintForgotten,       // disk: a start does not know its previous cluster
  kReadyByClaim,        // reader: a node that holds a claim counts as ready
  kGrantShared,         // disk: all machine ids of a host have one grant
  kCopyTrusted,         // disk: accepts any file that a grant names
  kGrantNotSynced,      // disk of a static host: a reboot loses the last writes
  kPairUnheard,         // disk of a static host: a grant does not tell the time
  kPutBackIgnored,      // disk: a start does not know the registry's state before it
  kLostRootStopsAll,    // reader: refuses every tag while the registry has no root node
  kMountIsAnotherFile,  // disk of a static host: another device number means another file
};

inline constexpr MutantRow<NodeMutant> kNodeMutants[] = {
    {NodeMutant::kNoVersionCheck, "no-version-check", "invariant 1:"},
    {NodeMutant::kLostUnheard, "lost-unheard", "invariant 4:"},
    {NodeMutant::kBackUnheard, "back-unheard", "invariant 6:"},
    {NodeMutant::kDefaultBeforeRead, "default-before-read", "invariant 2:"},
    {NodeMutant::kFormNotKept, "form-not-kept", "invariant 2:"},
    {NodeMutant::kFullDiskUntold, "full-disk-untold", "invariant 6:"},
    {NodeMutant::kHintForgotten, "hint-forgotten", "invariant 7:"},
    {NodeMutant::kReadyByClaim, "ready-by-claim", "invariant 5:"},
    {NodeMutant::kLostRootStopsAll, "lost-root-stops-all", "invariant 10:"},
    {NodeMutant::kGrantShared, "grant-shared", "invariant 1:"},
    {NodeMutant::kPutBackIgnored, "put-back-ignored", "invariant 1:"},
    {NodeMutant::kCopyTrusted, "copy-trusted", "invariant 3:"},
    {NodeMutant::kGrantNotSynced, "grant-not-synced", "invariant 1:"},
    {NodeMutant::kPairUnheard, "pair-unheard", "invariant 1:"},
    {NodeMutant::kMountIsAnotherFile, "mount-is-another-file", "invariant 6:"},
};

}  // namespace firn
