#include "registry/claim/claim_checks.h"

#include <chrono>
#include <optional>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/id/rack_split.h"
#include "common/time/civil_time.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

constexpr Milliseconds kLayoutReserve{86'400'000};

}  // namespace

std::string ClockFault(const ClaimOptions& options, Now asked, WallMs registry, Now told) {
  const Layout& layout = options.layout;
  const WallMs wall = told.wall;
  if (wall < layout.epoch() || wall + kLayoutReserve > layout.end()) {
    return Cat("the local clock (", FormatRfc3339(wall), ") is outside the layout's time range");
  }
  // If the clocks agree, the write lies between the two readings, by the boot clock's interval.
  const WallMs earliest = registry - options.skew_max;
  const WallMs latest = registry + options.skew_max;
  const bool agrees = registry == WallMs() || (asked.wall <= latest && wall >= earliest &&
                                               wall <= latest + (told.boot - asked.boot));
  if (agrees) return {};
  return Cat("the local clock is ", DurationText(std::chrono::abs(wall - registry)),
             wall > registry ? " ahead of" : " behind", " the registry's (", FormatRfc3339(wall),
             ", registry ", FormatRfc3339(registry), "); correct the clock");
}

std::string DurationText(Milliseconds length) {
  constexpr int64_t kHour = 3'600'000;
  constexpr int64_t kDay = 24 * kHour;
  const int64_t ms = length.count();
  if (ms >= 3 * kDay) return Cat(ms / kDay, " days");
  if (ms >= 2 * kHour) return Cat(ms / kHour, " h");
  return ms >= 1'000 ? Cat(ms / 1'000, " s") : Cat(ms, " ms");
}

std::string ClockTrouble(const BelievedClock& registry, BootMs now) {
  if (!registry.disagrees()) return {};
  const bool ahead = registry.off() > Milliseconds(0);
  const std::string_view whose = registry.shares_wall() ? "this host's" : "the registry's";
  return Cat(whose, " clock is ", DurationText(std::chrono::abs(registry.off())),
             ahead ? " ahead of" : " behind", " the time that this server relies on (it shows ",
             FormatRfc3339(registry.ShownAt(now)), ") and is not used to set bounds; ",
             registry.shares_wall() ? "correct it, or restart the server if it is right"
                                    : "correct the clock of the registry's leader");
}

void ReportClock(const BelievedClock& registry, Now now, const ClaimHooks& hooks) {
  const WallMs shown = registry.ShownAt(now.boot);
  if (shown != WallMs() && hooks.registry_clock) hooks.registry_clock(shown, now);
  const std::optional<WallMs> believed = registry.At(now.boot);
  if (believed.has_value() && hooks.believed_clock) hooks.believed_clock(*believed, now);
}

std::string MetaFault(const ClaimOptions& options, const Result<ClusterMeta>& meta, int64_t version,
                      const std::string& uuid) {
  if (!meta.ok()) return meta.status().message();
  if (!uuid.empty() && meta->uuid != uuid) {
    return Cat(
        "this state folder belongs to cluster ", uuid, ", but the registry contains cluster ",
        meta->uuid,
        "; set --registry to the former cluster's registry, set another --state_dir, or, if ",
        meta->uuid, " replaced the former by mistake, run the ",
        PrintCommand(PrintedCommand::kRestore), " command that servers of ", uuid, " print");
  }
  if (meta->layout != options.layout.text()) {
    return "the cluster's layout is " + meta->layout + ", not " + options.layout.text();
  }
  const auto split = RackSplit::Make(options.layout, meta->rack_bits);
  if (!split.ok()) return split.status().message();
  if (options.rack >= split->racks() || options.worker.value_or(0) >= split->workers()) {
    return Cat("there is no rack ", options.rack,
               options.worker ? Cat(", worker ", *options.worker) : std::string(),
               " in the cluster: racks are numbered from 0 to ", split->racks() - 1,
               ", workers from 0 to ", split->workers() - 1);
  }
  if (meta->frozen) return AskForRestore("the cluster is frozen: " + meta->reason);
  if (version == kUnguardedVersion) return UnguardedVersionFault("the cluster's root node");
  return {};
}

}  // namespace firn
