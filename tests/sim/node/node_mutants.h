#pragma once

#include <array>
#include <string_view>

namespace firn {

// Errors of whole nodes, each as a liar around one: its registry, its disk, whoever joins it or
// reads of it. The product has no switch for any of them.
enum class NodeMutant {
  kNone,
  kNoVersionCheck,      // registry: sets a slot's record whatever version is there
  kLostUnheard,         // registry: who joins the cluster does not hear that the connection is lost
  kBackUnheard,         // registry: nor does the node that it is back
  kDefaultBeforeRead,   // joiner: the tag `default` is there whatever the registry says
  kFormNotKept,         // disk: definitions that were kept have lost their texts
  kFullDiskUntold,      // disk: definitions that could not be kept are told as kept
  kHintForgotten,       // disk: a start does not hear of the cluster that it was in
  kReadyByClaim,        // reader: whoever holds a claim is ready
  kGrantShared,         // disk: all machine ids of a host have one grant
  kCopyTrusted,         // disk: whatever file a grant names is this one
  kGrantNotSynced,      // disk of a static host: a reboot loses what was written last
  kPairUnheard,         // disk of a static host: a grant does not tell the time
  kMountIsAnotherFile,  // disk of a static host: with another device number it is another file
};

struct NodeMutantName {
  NodeMutant mutant;
  std::string_view name;
  int invariant;   // that it breaks: caught by another one is not caught
  bool is_static;  // of hosts whose machine ids are given by hand
};

inline constexpr std::array<NodeMutantName, 13> kNodeMutants = {{
    {NodeMutant::kNoVersionCheck, "no-version-check", 1, false},
    {NodeMutant::kLostUnheard, "lost-unheard", 4, false},
    {NodeMutant::kBackUnheard, "back-unheard", 6, false},
    {NodeMutant::kDefaultBeforeRead, "default-before-read", 2, false},
    {NodeMutant::kFormNotKept, "form-not-kept", 2, false},
    {NodeMutant::kFullDiskUntold, "full-disk-untold", 6, false},
    {NodeMutant::kHintForgotten, "hint-forgotten", 7, false},
    {NodeMutant::kReadyByClaim, "ready-by-claim", 5, false},
    {NodeMutant::kGrantShared, "grant-shared", 1, false},
    {NodeMutant::kCopyTrusted, "copy-trusted", 3, true},
    {NodeMutant::kGrantNotSynced, "grant-not-synced", 1, true},
    {NodeMutant::kPairUnheard, "pair-unheard", 1, true},
    {NodeMutant::kMountIsAnotherFile, "mount-is-another-file", 6, true},
}};

}  // namespace firn
