#pragma once

#include <optional>
#include <string>
#include <utility>

#include "registry/cluster/records.h"
#include "registry/cluster/root_history.h"
#include "registry/seam/coordinator.h"

namespace firn {

// The state of a cluster's root node. It determines whether the tags in the same tree can be used.
enum class RootState {
  kUnread,      // no answer yet
  kWhole,       // the tags can be used
  kFrozen,      // data were lost, and an operator must restore them
  kMissing,     // the registry has no root node
  kUnreadable,  // its text does not parse
  kOlder,       // older than a state read before: the registry lost data
  kForeign,     // it belongs to another cluster
};

// Appends the advice to run the restore command that the server prints.
std::string WithRestoreAdvice(const std::string& message);

// The root node that this process has read, and the state of the last reading. Control thread.
class KnownRoot {
 public:
  // `uuid`: the cluster's, if known.
  explicit KnownRoot(std::string uuid) : uuid_(std::move(uuid)) {}

  // Records a reading that was made after a sync.
  void Note(const std::optional<Node>& node);

  RootState state() const { return state_; }
  // Why the tags in the tree are ignored, with the remedy; empty if they are used.
  const std::string& why_not() const { return why_not_; }
  const std::string& uuid() const { return uuid_; }
  // The last whole or frozen root node.
  const std::optional<ClusterMeta>& meta() const { return meta_; }

  // Returns whether the registry has lost the nodes of the cluster, or never contained them.
  bool lost() const { return state_ >= RootState::kMissing; }
  bool whole() const { return state_ == RootState::kWhole; }

 private:
  void Is(RootState state, std::string why_not);

  std::string uuid_;
  std::optional<ClusterMeta> meta_{};
  RootHistory history_{};
  RootState state_ = RootState::kUnread;
  std::string why_not_{};
};

}  // namespace firn
