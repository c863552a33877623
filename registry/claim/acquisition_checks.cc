#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/time/civil_time.h"
#include "registry/claim/acquisition.h"
#include "registry/claim/claim_checks.h"
#include "registry/cluster/cluster_settings.h"
#include "registry/seam/node_version.h"

// The checks of an Acquisition before it looks for a slot: the clock, the root node, and what this
// server remembers of the registry.

namespace firn {

// --- 2: the clock --------------------------------------------------------------------------------

Task<Status> Acquisition::CheckClock() {
  const Now asked_at = now_.clocks;
  const std::vector<Write> writes{
      Write::Set(kClockPath, options_.identity.owner, Write::kAnyVersion)};
  Written answer = co_await async_registry_.Multi(writes);
  const Status& status = answer.status;
  if (status.code() == Code::kNotFound) {
    co_return Refuse(HowToCreate("there is no cluster here, or it is incomplete"), kRetryLater);
  }
  if (status.code() == Code::kDenied) {
    co_return Refuse(status.message() + "; restart with the right --registry_auth_file",
                     kRetryLater);
  }
  if (answer.fate != Written::Fate::kDone) {
    co_return Refuse("the registry does not answer: " + status.message(), kRetrySoon);
  }
  const WallMs shown = answer.stats.at(0).modified;
  std::string fault = ClockFault(options_, asked_at, shown, now_.clocks);
  if (!fault.empty()) {
    registry_clock_.Hear(shown, asked_at, now_.clocks);
    co_return Refuse(std::move(fault), kRetryLater);
  }
  if (shown != WallMs()) registry_clock_.Confirm(shown, now_.clocks.boot);
  if (input_.on_clock_checked) now_.id_time = input_.on_clock_checked(now_.clocks.wall);
  co_return Status();
}

// --- 3: meta -------------------------------------------------------------------------------------

Task<Status> Acquisition::ReadRoot() {
  session_ = async_registry_.session();
  const std::vector<std::string> paths{kMetaPath};
  Result<Nodes> nodes = co_await async_registry_.ReadSynced(paths);
  if (nodes.code() == Code::kCorrupt) {
    co_return Refuse(HowToCreate(nodes.status().message()), kRetryLater);
  }
  if (!nodes.ok()) co_return Refuse("the registry does not answer", kRetrySoon);
  const std::optional<Node>& root = nodes->front();
  co_return co_await TakeRoot(root);
}

// Adopts this root node for the claim, or refuses it.
Task<Status> Acquisition::TakeRoot(std::optional<Node> node) {
  if (!node.has_value()) {
    co_return Refuse(HowToCreate("there is no cluster here"), kRetryLater);
  }
  const Result<ClusterMeta> meta = ParseMeta(node->data);
  std::string fault = MetaFault(options_, meta, node->stat.version, input_.uuid);
  if (!fault.empty()) co_return Refuse(std::move(fault), kRetryLater);
  split_ = *RackSplit::Make(options_.layout, meta->rack_bits);
  root_.meta_version = node->stat.version;
  root_.era = meta->era;
  root_.uuid = meta->uuid;
  root_.floor = meta->floor;
  root_.floor_set_at = node->stat.modified;
  const std::optional<Hint>& hint = input_.hint;
  const bool same_era = hint && hint->uuid == meta->uuid && hint->era == meta->era;
  if (same_era && IsOlder(node->stat.version, hint->root_version)) {
    input_.floor = std::max(input_.floor, hint->last);
    const WallMs above = std::max(hint->last, root_.floor + Milliseconds(1));
    std::string why = Cat("its root node is older than the one that ", options_.identity.owner,
                          " read before it was stopped");
    co_return co_await FreezeBehind(above, why);
  }
  if (root_.floor >= input_.floor) {
    const Nonce era = root_.era;
    Result<ClusterSettings> settings = co_await RaiseWindow(&async_registry_, options_.window, era);
    if (!settings.ok()) {
      co_return Refuse(
          "the registry does not record the claim window: " + settings.status().message(),
          kRetrySoon);
    }
    lease_share_ = settings->LeaseShareUnder(*meta);
    co_return Status();
  }
  // The cluster forgot a claim of this server, and no restore has lifted the floor above it.
  std::string why =
      Cat("it lost the claim of ", options_.identity.owner, " until ", FormatRfc3339(input_.floor));
  const WallMs floor = input_.floor;
  co_return co_await FreezeBehind(floor, why);
}

// Compares the registry with the ids that this server issued in its slot before it was stopped.
Task<Status> Acquisition::CheckHintedSlot() {
  const std::optional<Hint>& hint = input_.hint;
  if (!hint || hint->era.zero() || hint->uuid != root_.uuid) co_return Status();
  const bool same_era = hint->era == root_.era;
  if (!same_era && root_.floor >= hint->last) co_return Status();
  const KeptBound kept{.slot = hint->slot,
                       .era = hint->era,
                       .created_zxid = hint->created_zxid,
                       .bound = hint->last,
                       .claim = hint->claim,
                       .version = hint->version};
  Result<std::string> fault = co_await FindKeptFault(&async_registry_, kept, same_era);
  if (!fault.ok()) co_return Refuse("the registry does not answer", kRetrySoon);
  if (fault->empty()) co_return Status();
  std::string why = Cat(*fault, ", but ", options_.identity.owner, " issued its ids until ",
                        FormatRfc3339(hint->last));
  const WallMs last = hint->last;
  input_.floor = std::max(input_.floor, last);
  co_return co_await FreezeBehind(last, why);
}

// Compares the registry with the bounds of the leases that this server granted before it was
// stopped. No other record of them remains if the registry has lost data.
Task<Status> Acquisition::CheckKeptBounds() {
  if (!options_.kept_fault.empty()) co_return Refuse(options_.kept_fault, kRetryLater);
  const KeptBounds kept = input_.kept;
  if (kept.uuid != root_.uuid) co_return Status();
  const Tenure::Terms root = root_;
  // Not ClusterTime: after a restore that is ahead of the ids of other servers.
  const WallMs now = registry_clock_.At(now_.clocks.boot).value_or(now_.clocks.wall);
  const WallMs passed = now - options_.skew_max;
  Result<std::string> fault = co_await FindLostBound(&async_registry_, kept, root, passed);
  if (!fault.ok()) co_return Refuse("the registry does not answer", kRetrySoon);
  if (fault->empty()) co_return Status();
  const WallMs highest = kept.highest();
  std::string why = Cat(options_.identity.owner, " found: ", *fault);
  input_.floor = std::max(input_.floor, highest);
  co_return co_await FreezeBehind(highest, why);
}

// Adds to a slot's past what its present holder, perhaps a copy of this process, cannot know. Like
// all of the past it is only informative, so any failure ends it.
Task<> Acquisition::NameOvertaken() {
  const std::string slot = SlotPath(input_.overtaken_in);
  const std::string path = PastPath(input_.overtaken_in);
  Result<Node> record = co_await async_registry_.Read(slot);
  Result<Node> past = co_await async_registry_.Read(path);
  const bool missing = past.code() == Code::kNotFound;
  if (!record.ok() || (!past.ok() && !missing)) co_return;
  PastHolders holders;
  if (!missing) holders = PastHolders::Parse(past->data).value_or({});
  for (const PastHolder& holder : input_.overtaken) holders.Add(holder);
  const std::vector<Write> writes{Write::Check(slot, record->stat.version), EraCheck(root_.era),
                                  missing
                                      ? Write::Create(path, holders.Text(), Lifetime::kPersistent)
                                      : Write::Set(path, holders.Text(), past->stat.version)};
  Written answer = co_await async_registry_.Multi(writes);
  named_overtaken_ = answer.fate == Written::Fate::kDone;
}

// Freezes a cluster whose data went back, unless its floor is at or above `floor_needed`: then it
// was restored since. Nothing is claimed either way.
Task<Status> Acquisition::FreezeBehind(WallMs floor_needed, std::string why) {
  Tenure::Terms held;
  held.bound = floor_needed;
  Status frozen = co_await FreezeAndInspect(&async_registry_, held, why);
  static_cast<void>(frozen);
  co_return Refuse(AskForRestore("the registry went back in time: " + why), kRetryLater);
}

// A cluster made without the uuid that this process knows would be foreign to it.
std::string Acquisition::HowToCreate(const std::string& missing) const {
  if (!input_.uuid.empty()) return AskForRestore(missing + ": its data were lost");
  return missing + "; run " + PrintCommand(PrintedCommand::kInit) +
         " if it is new; if its data were lost, use the " + PrintCommand(PrintedCommand::kRestore) +
         " command in the other servers' logs";
}

}  // namespace firn
