#include "registry/servers/provider_publisher.h"

#include <utility>

#include "common/base/cat.h"
#include "registry/seam/node_version.h"

namespace firn {

ProviderPublisher::ProviderPublisher(Coordinator& coordinator, Entropy& entropy,
                                     const Provider& provider)
    : coordinator_(coordinator),
      entropy_(entropy),
      path_(Cat(kProvidersPath, "/", ProviderNodeName(provider))),
      wanted_(FormatReport(report_)) {}

void ProviderPublisher::Report(const ProviderReport& report) {
  if (report == report_) return;
  report_ = report;
  wanted_ = FormatReport(report_);
}

void ProviderPublisher::Withdraw(std::function<void(Status)> done) {
  withdrawn_ = std::move(done);
  if (coordinator_.session() == 0) {
    gone_ = true;
    published_ = false;
    withdrawn_(Unavailable("no session to delete the provider node in"));
  } else if (!busy_) {
    Erase();
  }  // else: when the answer on its way has come
}

void ProviderPublisher::Tick(BootMs now) {
  now_ = now;
  if (coordinator_.session() != session_) {
    session_ = coordinator_.session();
    published_ = false;
    look_ = true;
  }
  if (session_ == 0 || busy_ || gone_) return;
  if (withdrawn_) return Erase();
  if (now - last_look_ >= kRecheckInterval) look_ = true;
  if (look_ && now >= not_before_) return Look();
  if (look_ || !WriteIsDue()) return;
  std::vector<Write> writes;
  if (PhaseStands()) {
    AddSet(writes, path_, wanted_, held_version_);
  } else {
    writes = Replacement(held_version_);
  }
  Send(std::move(writes));
}

std::vector<Write> ProviderPublisher::Replacement(int64_t version) const {
  return {Write::Erase(path_, version), Write::Create(path_, wanted_, Lifetime::kEphemeral)};
}

bool ProviderPublisher::PhaseStands() const {
  return held_phase_ && AnnouncedPhase(*held_phase_) == AnnouncedPhase(report_.phase);
}

bool ProviderPublisher::WriteIsDue() const {
  if (wanted_ == held_) return false;
  return !PhaseStands() || now_ - last_write_ >= kReportInterval;
}

void ProviderPublisher::Look() {
  busy_ = true;
  look_ = false;
  last_look_ = now_;
  coordinator_.Read(path_, guard_.Bind([this](const Result<Node>& node) { OnLooked(node); }),
                    guard_.Bind([this] { look_ = true; }));
}

void ProviderPublisher::OnLooked(const Result<Node>& node) {
  busy_ = false;
  if (withdrawn_) return Erase();
  const bool ours = node.ok() && node->stat.ephemeral_owner == session_;
  if (ours) {
    held_ = node->data;
    held_version_ = node->stat.version;
    // What was sent last may not be what stands there.
    const Result<ProviderReport> report = ParseReport(held_);
    held_phase_ = report.ok() ? std::optional(report->phase) : std::nullopt;
    published_ = true;
    make_ = false;
    return;
  }
  published_ = false;
  const bool absent = node.code() == Code::kNotFound;
  const bool damaged = node.code() == Code::kCorrupt;
  if ((node.ok() || absent || damaged) && !std::exchange(make_, true)) return LookAgainSoon();
  if (node.ok() || damaged) {
    Send(Replacement(damaged ? Write::kAnyVersion : node->stat.version));
  } else if (absent) {
    Send({Write::Create(path_, wanted_, Lifetime::kEphemeral)});
  } else {
    LookAgainSoon();
  }
}

void ProviderPublisher::Send(std::vector<Write> writes) {
  busy_ = true;
  last_write_ = now_;
  held_ = wanted_;
  held_phase_ = report_.phase;
  coordinator_.Multi(std::move(writes),
                     guard_.Bind([this](const WriteOutcome& outcome) { OnWritten(outcome); }));
}

void ProviderPublisher::OnWritten(const WriteOutcome& outcome) {
  busy_ = false;
  published_ = outcome.status.ok();
  if (published_) {
    held_version_ = outcome.stats.back().version;
    make_ = false;
  }
  if (withdrawn_) return Erase();
  if (published_) return;
  // A creation below a missing parent says not found; so does a set of a node that has gone, which
  // costs one needless look at the parents.
  if (outcome.status.code() == Code::kNotFound) return MakeParents();
  LookAgainSoon();
}

void ProviderPublisher::MakeParents() {
  busy_ = true;
  const auto make = [this](std::string_view path, auto next) {
    coordinator_.Multi({Write::Create(std::string(path), "", Lifetime::kPersistent)},
                       guard_.Bind([next](const WriteOutcome&) mutable { next(); }));
  };
  // Whether each was made or existed already shows at the next look.
  make(kServicePath, [this, make] {
    make(kProvidersPath, [this] {
      busy_ = false;
      LookAgainSoon();
    });
  });
}

void ProviderPublisher::Erase() {
  busy_ = true;
  coordinator_.Multi(
      {Write::Erase(path_, Write::kAnyVersion)}, guard_.Bind([this](const WriteOutcome& outcome) {
        busy_ = false;
        gone_ = true;
        published_ = false;
        const bool erased = outcome.status.ok() || outcome.status.code() == Code::kNotFound;
        withdrawn_(erased ? Status() : outcome.status);
      }));
}

void ProviderPublisher::LookAgainSoon() {
  look_ = true;
  const auto pause_ms = static_cast<int64_t>(entropy_.Below(kRetryMax.count()));
  not_before_ = now_ + Milliseconds(pause_ms);
}

}  // namespace firn
