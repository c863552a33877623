#include "server/node/known_root.h"

#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"

namespace firn {
namespace {

std::string TheRestoreCommand() {
  return "the " + PrintCommand(PrintedCommand::kRestore) +
         " command that this server's log and /v1/status show";
}

}  // namespace

std::string WithRestoreAdvice(const std::string& message) {
  return message + "; run " + TheRestoreCommand();
}

void KnownRoot::Note(const std::optional<Node>& node) {
  if (!node) return Is(RootState::kMissing, WithRestoreAdvice("the registry has no root node"));
  Result<ClusterMeta> read = ParseMeta(node->data);
  if (!read.ok()) {
    return Is(RootState::kUnreadable, WithRestoreAdvice("the cluster's root node is unreadable: " +
                                                        read.status().message()));
  }
  if (!uuid_.empty() && read->uuid != uuid_) {
    return Is(RootState::kForeign,
              Cat("the registry holds another cluster, ", read->uuid, ", not ", uuid_,
                  "; set --registry to the latter's registry, set another --state_dir, or, if ",
                  read->uuid, " replaced it by mistake, run ", TheRestoreCommand()));
  }
  if (!history_.Note(read->era, node->stat.version)) {
    return Is(
        RootState::kOlder,
        WithRestoreAdvice("the cluster's root node is older than one that this server has read"));
  }
  uuid_ = read->uuid;
  meta_ = *std::move(read);
  if (!meta_->frozen) return Is(RootState::kWhole, {});
  Is(RootState::kFrozen, AskForRestore("the cluster is frozen: " + meta_->reason));
}

void KnownRoot::Is(RootState state, std::string why_not) {
  state_ = state;
  why_not_ = std::move(why_not);
}

}  // namespace firn
