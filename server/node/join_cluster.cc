#include "server/node/join_cluster.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/log/log.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/operate/restore_command.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/state/file_system.h"
#include "registry/state/hint.h"
#include "server/node/kept_root.h"

namespace firn {
namespace {

// How long a start waits for a session. A node whose folder remembers a cluster may start without a
// session.
constexpr Milliseconds kConnectPatience{2'000};
constexpr Milliseconds kConnectPatienceRemembered = ClaimOptions{}.offline_start_after;

constexpr Milliseconds kAnswerPatience{5'000};
// Creating a directory writes a file for each slot, to a disk that may be busy.
constexpr Milliseconds kMakePatience{60'000};

// Number of machine ids per rack in a new directory. All machine ids would be a thousand files,
// each synced, for the few programs of one host. `firn init` can create any number.
constexpr uint32_t kLocalWorkers = 16;

constexpr std::string_view kDir = "dir://";

bool IsDirectory(const ClusterPlace& place) { return place.registry.starts_with(kDir); }

// Warns about a directory in memory: a reboot empties it, and a new cluster in it may issue the ids
// of the lost one.
void ReportMemory(const ClusterPlace& place) {
  const std::string path =
      place.registry.substr(kDir.size(), place.registry.find('?') - kDir.size());
  if (!IsInMemoryAt(path).value_or(false)) return;
  LogWarning("registry_in_memory").With("registry", place.registry)
      << place.registry
      << ": this registry is in memory (tmpfs), so a reboot loses it, and ids may be issued "
         "twice afterwards; move it to a disk";
}

Result<std::unique_ptr<Coordinator>> Open(const ClusterPlace& place, Milliseconds time_limit,
                                          const Clock& clock, Entropy& entropy) {
  auto opened = place.open(
      place.registry,
      {.auth = place.credentials, .session_time = place.session_timeout, .time_limit = time_limit},
      clock, entropy);
  if (!opened.ok()) return opened.status().WithContext(place.registry);
  return opened;
}

// Returns the folder's last claim. A damaged hint is ignored, as it is when a machine id is
// claimed. A hint of another format is an error, because the folder belongs to another version.
Result<std::optional<Hint>> Remembered(StateFolder& folder) {
  const Result<std::string> text = folder.ReadHint();
  if (!text.ok()) return std::optional<Hint>();
  Result<Hint> hint = ParseHint(*text);
  if (hint.code() == Code::kInvalid) return hint.status();
  return hint.ok() ? std::optional(*std::move(hint)) : std::nullopt;
}

// Uses a separate coordinator, whose timeout is long enough for the slow creation.
Status MakeLocalCluster(const ClusterPlace& place, const Clock& clock, Entropy& entropy) {
  FIRN_ASSIGN(const auto coordinator, Open(place, kMakePatience, clock, entropy));
  BlockingCoordinator registry(*coordinator, clock);
  FIRN_TRY(registry.Connect(kConnectPatience));
  FIRN_TRY(registry.PrepareRoot());
  const Layout layout = place.layout.value_or(Layout::Firn());
  const RackSplit split = RackSplit::Default(layout);
  const ClusterPlan plan{
      .layout = layout,
      .rack_bits = split.rack_bits(),
      .workers = std::min(std::max(kLocalWorkers, place.workers_min), split.workers()),
      .default_strategy = place.default_strategy};
  const Status made = MakeCluster(registry, plan, entropy);
  // kConflict: another program has created the cluster first.
  return made.code() == Code::kConflict ? Status() : made;
}

// Returns the root node of the cluster; kNotFound if there is none, kUnavailable without an answer.
Result<ClusterMeta> AwaitCluster(BlockingCoordinator& registry, Milliseconds patience) {
  FIRN_TRY(registry.Connect(patience));
  FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(registry));
  return meta.meta;
}

bool IsHalfMade(const Result<ClusterMeta>& meta) { return meta.ok() && meta->frozen; }

std::string RestoreCommandOf(const ClusterPlace& place, const Hint& remembered) {
  std::optional<UnsavedSettings> unsaved;
  if (!ReadKeptRoot(place.kept_stem, remembered.uuid).ok()) {
    unsaved = {.layout = remembered.layout, .window = place.claim_window};
  }
  return ServerRestoreCommand(
      {.registry = place.registry, .from = std::filesystem::path(place.kept_stem).parent_path()},
      remembered.uuid, unsaved);
}

Status RefuseLost(const ClusterPlace& place, const Hint& remembered) {
  return Conflict("there is no cluster at " + place.registry + ", but the state folder remembers " +
                  "cluster " + remembered.uuid + ": if its data are lost, run\n  " +
                  RestoreCommandOf(place, remembered));
}

// Adopts the cluster's layout, or refuses a different requested one.
Status TakeOver(const ClusterPlace& place, const ClusterMeta& meta,
                const std::optional<Hint>& remembered, JoinedCluster& joined) {
  // Another cluster may have replaced the remembered one by mistake. The node stays in the
  // remembered one and prints the command that restores it; the claim refuses the other cluster.
  if (remembered && remembered->uuid != meta.uuid) return {};
  if (remembered && remembered->layout != meta.layout) {
    return Invalid("cluster " + meta.uuid + " has come back with the layout " + meta.layout +
                   ", but had " + remembered->layout +
                   ": its ids could repeat earlier ones; delete the registry's data, and run\n  " +
                   RestoreCommandOf(place, *remembered));
  }
  if (place.layout && place.layout->text() != meta.layout) {
    return Invalid("the cluster's layout is " + meta.layout + ", not " +
                   std::string(place.layout->text()));
  }
  if (!place.default_strategy.empty() && place.default_strategy != meta.default_strategy) {
    LogWarning("flag_ignored").With("flag", "default_strategy")
        << "the default strategy " << place.default_strategy
        << " is ignored: the strategy of undefined tags is fixed when a cluster is created";
  }
  FIRN_ASSIGN(joined.layout, Layout::Parse(meta.layout));
  FIRN_ASSIGN(joined.split, RackSplit::Make(joined.layout, meta.rack_bits));
  joined.uuid = meta.uuid;
  joined.known = true;
  return {};
}

Layout BestGuess(const ClusterPlace& place, const std::optional<Hint>& remembered) {
  if (place.layout) return *place.layout;
  return remembered ? Layout::Parse(remembered->layout).value_or(Layout::Firn()) : Layout::Firn();
}

// Returns the split of the machine id that the folder remembers; the layout's own split if the
// folder remembers none.
RackSplit SplitGuess(const Layout& layout, const std::optional<Hint>& remembered) {
  const RackSplit usual = RackSplit::Default(layout);
  if (!remembered) return usual;
  const auto fits = [&remembered](const RackSplit& split) {
    const auto machine = split.Join(remembered->slot.worker, remembered->slot.rack);
    return machine.ok() && machine->value() == remembered->machine;
  };
  if (fits(usual)) return usual;
  for (int bits = 0; bits <= layout.machine().width; ++bits) {
    const auto split = RackSplit::Make(layout, bits);
    if (split.ok() && fits(*split)) return *split;
  }
  return usual;
}

}  // namespace

Result<JoinedCluster> JoinCluster(const ClusterPlace& place, StateFolder& folder,
                                  const Clock& clock, Entropy& entropy) {
  FIRN_ASSIGN(const std::optional<Hint> remembered, Remembered(folder));
  const Milliseconds patience = remembered ? kConnectPatienceRemembered : kConnectPatience;
  FIRN_ASSIGN(auto coordinator, Open(place, kAnswerPatience, clock, entropy));
  BlockingCoordinator registry(*coordinator, clock);
  auto meta = AwaitCluster(registry, patience);
  if (IsDirectory(place) && (meta.code() == Code::kNotFound || IsHalfMade(meta))) {
    if (remembered && !meta.ok()) return RefuseLost(place, *remembered);
    if (!remembered) {
      FIRN_TRY(MakeLocalCluster(place, clock, entropy));
      meta = AwaitCluster(registry, patience);
    }
  }
  if (IsDirectory(place)) ReportMemory(place);
  const Layout guess = BestGuess(place, remembered);
  JoinedCluster joined{std::move(coordinator), guess, SplitGuess(guess, remembered),
                       remembered ? remembered->uuid : std::string()};
  joined.session = registry.connected_in();
  if (meta.ok()) {
    FIRN_TRY(TakeOver(place, *meta, remembered, joined));
  } else if (meta.code() == Code::kDenied || meta.code() == Code::kInvalid) {
    return meta.status().WithContext(place.registry);
  } else {
    LogWarning("registry_unreachable").With("registry", place.registry)
        << place.registry << ": " << meta.status().message() << "; starting without it";
  }
  return joined;
}

}  // namespace firn
