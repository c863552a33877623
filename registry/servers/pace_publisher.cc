#include "registry/servers/pace_publisher.h"

#include <utility>

#include "registry/seam/requests.h"

namespace firn {

PacePublisher::PacePublisher(Coordinator& coordinator, Entropy& entropy, std::string_view address,
                             Measure measure)
    : coordinator_(coordinator),
      entropy_(entropy),
      path_(PacePath(address)),
      measure_(std::move(measure)) {}

void PacePublisher::Tick(BootMs now) {
  now_ = now;
  if (coordinator_.session() == 0) return;
  if (!looking_ && now >= look_at_) FindViewer();
  if (wanted_ && !telling_ && now >= tell_at_) Tell();
}

// If the registry does not answer, its last answer remains valid.
void PacePublisher::FindViewer() {
  looking_ = true;
  look_at_ = now_ + kRecheckInterval;
  coordinator_.Read(std::string(kPacesWantedPath),  //
                    guard_.Bind([this](const Result<Node>& sign) {
                      looking_ = false;
                      if (sign.ok() || sign.code() == Code::kNotFound) return OnSign(sign.ok());
                      look_at_ = now_ + kEvery;
                    }),
                    guard_.Bind([this] { look_at_ = now_; }));
}

void PacePublisher::OnSign(bool stands) {
  if (std::exchange(wanted_, stands) || !stands) return;
  measure_(now_);
  const auto spread = static_cast<uint64_t>((kEvery - kFirstAfter).count());
  tell_at_ = now_ + kFirstAfter + Milliseconds(static_cast<int64_t>(entropy_.Below(spread)));
}

// Overwrites a node of an earlier session, which disappears with that session; the next write
// re-creates it.
void PacePublisher::Tell() {
  tell_at_ = now_ + kEvery;
  telling_ = true;
  text_ = FormatPace(measure_(now_));
  coordinator_.Multi({Write::Set(path_, text_, Write::kAnyVersion)},
                     guard_.Bind([this](const WriteOutcome& outcome) {
                       telling_ = false;
                       if (outcome.status.code() == Code::kNotFound) Make();
                     }));
}

void PacePublisher::Make() {
  telling_ = true;
  EnsureParents(coordinator_, path_, guard_.Bind([this](const Status& status) {
    telling_ = status.ok();
    if (!status.ok()) return;
    coordinator_.Multi({Write::Create(path_, text_, Lifetime::kEphemeral)},
                       guard_.Bind([this](const WriteOutcome&) { telling_ = false; }));
  }));
}

}  // namespace firn
