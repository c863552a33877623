#pragma once

#include <array>
#include <string_view>

namespace firn {

// Errors of whole nodes, each injected around a node: in its registry, its disk, its joiner, or a
// reader of its status. The product has no switch for any of them.
enum class NodeMutant {
  kNone,
  kNoVersionCheck,      // registry: sets a slot's record whatever version is there
  kLostUnheard,         // registry: a joiner is not notified that the connection is lost
  kBackUnheard,         // registry: the node is not notified that it is back
  kDefaultBeforeRead,   // joiner: the tag `default` exists whatever the registry says
  kFormNotKept,         // disk: cached definitions have lost their text forms
  kFullDiskUntold,      // disk: definitions that could not be cached are reported as cached
  kHintForgotten,       // disk: a start does not know the cluster that it was in
  kReadyByClaim,        // reader: a node that holds a claim is ready
  kGrantShared,         // disk: all machine ids of a host have one grant
  kCopyTrusted,         // disk: any file that a grant names is accepted
  kGrantNotSynced,      // disk of a static host: a reboot loses the last writes
  kPairUnheard,         // disk of a static host: a grant does not tell the time
  kPutBackIgnored,      // disk: a start does not know what the registry showed before it
  kLostRootStopsAll,    // reader: every tag is refused while the registry has no root node
  kMountIsAnotherFile,  // disk of a static host: another device number means another file
};

struct NodeMutantName {
  NodeMutant mutant;
  std::string_view name;
  int invariant;   // that it breaks: a violation of another one does not count
  bool is_static;  // for hosts with static machine ids
};

inline constexpr std::array<NodeMutantName, 15> kNodeMutants = {{
    {NodeMutant::kNoVersionCheck, "no-version-check", 1, false},
    {NodeMutant::kLostUnheard, "lost-unheard", 4, false},
    {NodeMutant::kBackUnheard, "back-unheard", 6, false},
    {NodeMutant::kDefaultBeforeRead, "default-before-read", 2, false},
    {NodeMutant::kFormNotKept, "form-not-kept", 2, false},
    {NodeMutant::kFullDiskUntold, "full-disk-untold", 6, false},
    {NodeMutant::kHintForgotten, "hint-forgotten", 7, false},
    {NodeMutant::kReadyByClaim, "ready-by-claim", 5, false},
    {NodeMutant::kLostRootStopsAll, "lost-root-stops-all", 10, false},
    {NodeMutant::kGrantShared, "grant-shared", 1, false},
    {NodeMutant::kPutBackIgnored, "put-back-ignored", 1, false},
    {NodeMutant::kCopyTrusted, "copy-trusted", 3, true},
    {NodeMutant::kGrantNotSynced, "grant-not-synced", 1, true},
    {NodeMutant::kPairUnheard, "pair-unheard", 1, true},
    {NodeMutant::kMountIsAnotherFile, "mount-is-another-file", 6, true},
}};

}  // namespace firn
