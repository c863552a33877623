// Faults in a world of whole nodes.

#include <cstdint>
#include <memory>

#include "tests/sim/node/node_world.h"
#include "tests/sim/sim_sizes.h"

namespace firn {
namespace {

// Time for which a disk is unavailable before it returns in an earlier state. It is longer than the
// lead of ids over the clock.
constexpr int64_t kDiskAwayMs = 5'000;

}  // namespace

void NodeWorld::Strike() {
  NodeHost& host = AnyHost();
  const int64_t session = host.session();
  switch (dice_.Below(9)) {
    case 0:
      host.Kill();
      break;
    case 1:
      host.DieSoon();
      break;
    case 2:
      return host.Stop();
    case 3:
      Boot(host);
      break;
    case 4:
      host.paused_until = clock_.Boot() + UpTo(OneIn(3) ? 200'000 : 20'000);
      break;
    case 5:
      return StrikeClock(host);
    case 6:
      return StrikeDisk(host);
    default:
      return shared_.is_static ? StrikeStatic(host) : StrikeRegistry(host);
  }
  if (OneIn(2)) shared_.ExpireLater(session);
}

// A machine's clock may be wrong after a boot until NTP has set it: for some seconds, or
// permanently.
void NodeWorld::Boot(NodeHost& host) {
  if (host.went_back()) return;  // after another boot, only the wall clock would be known
  host.Reboot();
  if (OneIn(3) && !shared_.strict && !shared_.is_directory) {
    const BootMs right_at = OneIn(4) ? BootMs(INT64_MAX) : clock_.Boot() + UpTo(20'000);
    host.clock().SetOff(DrawOff(dice_), right_at);
    host.NoteUnevenClock();
  } else {
    host.clock().SetRight();
  }
}

void NodeWorld::StrikeClock(NodeHost& host) {
  host.NoteUnevenClock();
  switch (dice_.Below(4)) {
    case 0:
      return host.clock().StepWall(UpTo(5'000));
    case 1:
      return host.clock().StepWall(-UpTo(5'000));
    case 2:
      if (shared_.is_directory) return;  // no independent clock would show that it is wrong
      // Under the policy strict, a host that has followed the clock would wait for as long.
      return host.clock().StepWall(OneIn(3) && !shared_.strict ? UpTo(4'000'000)
                                                               : -UpTo(4'000'000));
    default:
      return host.clock().SetPace(static_cast<int64_t>(dice_.Below(2'000)) - 1'000);
  }
}

void NodeWorld::StrikeDisk(NodeHost& host) {
  NodeDisk& disk = host.AnyDisk();
  disk.writes_fail = !disk.writes_fail && OneIn(2);
  disk.removal_fails = disk.writes_fail && OneIn(2);
  if (shared_.is_static || host.up()) return;
  if (OneIn(4)) disk.tags.clear();
  if (OneIn(2)) disk.hint.reset();
  if (OneIn(3)) disk.PutInPlace(AnyHost().AnyDisk(), OneIn(2));
}

void NodeWorld::StrikeRegistry(NodeHost& host) {
  // A directory's clock is the host's.
  if (!shared_.is_directory && OneIn(6)) return StrikeRegistryClock();
  if (outage_ || OneIn(4)) return SetOutage(!outage_);
  const bool restores = put_back_ || put_back_at_ != 0;  // needs a whole registry
  const bool late = steps_ > static_cast<uint64_t>(wanted_steps_) / 2;
  if (!shared_.is_directory && !lost_ && !restores && late && OneIn(4)) return LoseRegistry();
  if (OneIn(2)) return tree_.Expire(host.session());
  host.Disconnect();
  if (OneIn(2)) shared_.ExpireLater(host.session());
}

void NodeWorld::StrikeRegistryClock() {
  switch (dice_.Below(5)) {
    case 0:
      return registry_clock_.StepWall(UpTo(10'000) - Milliseconds(5'000));
    case 1:
      return registry_clock_.SetPace(static_cast<int64_t>(dice_.Below(2'000)) - 1'000);
    case 2:
      return registry_clock_.SetRight();
    default: {
      const Milliseconds far = kADay * (OneIn(2) ? 2 : 300);
      registry_clock_.SetOff(OneIn(2) ? far : -far, clock_.Boot() + UpTo(4'000'000));
      return shared_.Trace("the registry's clock is far off");
    }
  }
}

void NodeWorld::SetOutage(bool outage) {
  outage_ = outage;
  shared_.Trace(outage ? "the registry goes away" : "the registry is back");
  for (const auto& host : hosts_) outage ? host->Disconnect() : host->Reconnect();
}

// Empties the registry permanently, as before an operator restores the cluster. Not used with a
// directory, in which the servers would create another cluster.
void NodeWorld::LoseRegistry() {
  shared_.Trace("the registry is empty");
  lost_ = true;
  tree_.Wipe();
}

void NodeWorld::StrikeStatic(NodeHost& host) {
  if (host.retired()) return;
  switch (dice_.Below(4)) {
    case 0:
      return Copy(host);
    case 1:
      // If only a backup is left, the machine id is lost.
      if (!OneIn(4)) return;
      host.Kill();
      shared_.Trace("a backup is put back");
      return host.PutBackup(dice_.Below(8), OneIn(2));
    case 2:
      host.Kill();
      return host.disk().Remount();
    default:
      // The pair of clocks in a grant of any age reconstructs an id clock that ran evenly. It
      // cannot reconstruct an id clock that has followed steps of the wall clock, for which there
      // is no guarantee.
      if (host.uneven()) return;
      host.Kill();
      shared_.Trace("a disk is back as it was");
      host.BringBack(1 + dice_.Below(7));
      if (OneIn(2)) host.clock().StepWall(-UpTo(600'000));
      host.paused_until = clock_.Boot() + Milliseconds(kDiskAwayMs) + UpTo(20'000);
  }
}

// Copies the host's folder to another machine. If the host remains, the copy must be refused;
// otherwise the copy replaces the host.
void NodeWorld::Copy(NodeHost& host) {
  if (host.is_copy() || host.went_back() || hosts_.size() > 8) return;
  const bool moves = OneIn(2);
  shared_.Trace(moves ? "a host moves" : "a host is copied");
  hosts_.push_back(
      std::make_unique<NodeHost>(shared_, static_cast<int>(hosts_.size()), host.machine()));
  NodeHost& copy = *hosts_.back();
  if (moves) host.Retire();
  copy.CopyFrom(host, OneIn(2), OneIn(2));
  if (!copy.is_copy()) return moves ? void() : copy.Retire();  // its disk was empty
  if (moves) copy.Adopt();
}

}  // namespace firn
