#include "registry/servers/pace_publisher.h"

#include <utility>

#include "registry/seam/requests.h"

namespace firn {

PacePublisher::PacePublisher(Coordinator& coordinator, std::string_view address)
    : coordinator_(coordinator), path_(PacePath(address)) {}

bool PacePublisher::IsDue(BootMs now) {
  if (!std::exchange(begun_, true)) due_ = now + kEvery;
  return now >= due_ && !busy_ && coordinator_.session() != 0;
}

// A node that a session before this one has left is written over, and goes with that session: the
// write after that makes it anew.
void PacePublisher::Tell(const ServerPace& pace, BootMs now) {
  due_ = now + kEvery;
  busy_ = true;
  text_ = FormatPace(pace);
  coordinator_.Multi({Write::Set(path_, text_, Write::kAnyVersion)},
                     guard_.Bind([this](const WriteOutcome& outcome) {
                       busy_ = false;
                       if (outcome.status.code() == Code::kNotFound) Make();
                     }));
}

void PacePublisher::Make() {
  busy_ = true;
  EnsureParents(coordinator_, path_, guard_.Bind([this](const Status& status) {
    busy_ = status.ok();
    if (!status.ok()) return;
    coordinator_.Multi({Write::Create(path_, text_, Lifetime::kEphemeral)},
                       guard_.Bind([this](const WriteOutcome&) { busy_ = false; }));
  }));
}

}  // namespace firn
