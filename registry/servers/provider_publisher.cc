#include "registry/servers/provider_publisher.h"

#include <utility>

#include "common/base/cat.h"
#include "registry/seam/node_version.h"

namespace firn {

ProviderPublisher::ProviderPublisher(Coordinator& coordinator, Entropy& entropy,
                                     const Provider& provider)
    : entropy_(entropy),
      path_(Cat(kProvidersPath, "/", ProviderNodeName(provider))),
      wanted_(FormatReport(report_)),
      async_registry_(coordinator) {}

void ProviderPublisher::Report(const ProviderReport& report) {
  if (report == report_) return;
  report_ = report;
  wanted_ = FormatReport(report_);
}

void ProviderPublisher::Withdraw(std::function<void(Status)> done) {
  withdrawing_ = true;
  withdrawn_ = std::move(done);
  if (async_registry_.session() == 0) {
    task_ = {};
    published_ = false;
    gone_ = Unavailable("the provider node cannot be deleted without a session");
  } else if (!task_.busy()) {
    Begin(Erase());
  }  // else: when the current conversation has ended
  ReportWithdrawn();
}

void ProviderPublisher::Tick(BootMs now) {
  async_registry_.Tick(now);
  if (async_registry_.session() != session_) {
    session_ = async_registry_.session();
    published_ = false;
    look_ = true;
  }
  const bool may_ask = session_ != 0 || withdrawing_;
  if (may_ask && !task_.busy() && !gone_) Begin(DoDueWork());
  ReportWithdrawn();
}

void ProviderPublisher::Begin(Task<> task) {
  task_ = std::move(task);
  async_registry_.Start(task_);
}

void ProviderPublisher::ReportWithdrawn() {
  if (gone_ && withdrawn_) std::exchange(withdrawn_, {})(*gone_);
}

Task<> ProviderPublisher::DoDueWork() {
  if (withdrawing_) co_return co_await Erase();
  const BootMs now = async_registry_.now();
  if (now - last_look_ >= kRecheckInterval) look_ = true;
  if (look_ && now >= not_before_) co_return co_await ReadNode();
  if (look_ || !WriteIsDue()) co_return;
  std::vector<Write> writes;
  if (PhaseIsStored()) {
    AddSet(writes, path_, wanted_, held_version_);
  } else {
    writes = Replacement(held_version_);
  }
  co_await Send(writes);
}

std::vector<Write> ProviderPublisher::Replacement(int64_t version) const {
  return {Write::Erase(path_, version), Write::Create(path_, wanted_, Lifetime::kEphemeral)};
}

bool ProviderPublisher::PhaseIsStored() const {
  return held_phase_ && AnnouncedPhase(*held_phase_) == AnnouncedPhase(report_.phase);
}

bool ProviderPublisher::WriteIsDue() const {
  if (wanted_ == held_) return false;
  return !PhaseIsStored() || async_registry_.now() - last_write_ >= kReportInterval;
}

Task<> ProviderPublisher::ReadNode() {
  look_ = false;
  last_look_ = async_registry_.now();
  const Coordinator::Changed changed = guard_.Bind([this] { look_ = true; });
  Result<Node> node = co_await async_registry_.Read(path_, changed);
  if (withdrawing_) co_return;
  if (node.ok() && node->stat.ephemeral_owner == session_) {
    held_ = node->data;
    held_version_ = node->stat.version;
    // The node may not contain the report sent last.
    const Result<ProviderReport> report = ParseReport(held_);
    held_phase_ = report.ok() ? std::optional(report->phase) : std::nullopt;
    published_ = true;
    make_ = false;
    co_return;
  }
  published_ = false;
  const bool absent = node.code() == Code::kNotFound;
  const bool damaged = node.code() == Code::kCorrupt;
  const bool told = node.ok() || absent || damaged;
  if (!told || !std::exchange(make_, true)) co_return ReadAgainSoon();
  std::vector<Write> writes = Replacement(node.ok() ? node->stat.version : Write::kAnyVersion);
  if (absent) writes.erase(writes.begin());
  co_await Send(writes);
}

Task<> ProviderPublisher::Send(std::vector<Write> writes) {
  last_write_ = async_registry_.now();
  held_ = wanted_;
  held_phase_ = report_.phase;
  Written written = co_await async_registry_.Multi(writes);
  published_ = written.fate == Written::Fate::kDone;
  if (published_) {
    held_version_ = written.stats.back().version;
    make_ = false;
    co_return;
  }
  // Creating a node below a missing parent returns not found. So does setting a node that has
  // disappeared, which only costs one needless check of the parents.
  if (written.status.code() == Code::kNotFound && !withdrawing_) co_await MakeParents();
  ReadAgainSoon();
}

Task<> ProviderPublisher::MakeParents() {
  for (const std::string_view path : {kServicePath, kProvidersPath}) {
    const std::vector<Write> writes{Write::Create(std::string(path), "", Lifetime::kPersistent)};
    // The next read shows whether it was created.
    co_await async_registry_.Multi(writes);
  }
}

Task<> ProviderPublisher::Erase() {
  const std::vector<Write> writes{Write::Erase(path_, Write::kAnyVersion)};
  Written written = co_await async_registry_.Multi(writes);
  published_ = false;
  const bool erased =
      written.fate == Written::Fate::kDone || written.status.code() == Code::kNotFound;
  gone_ = erased ? Status() : written.status;
}

void ProviderPublisher::ReadAgainSoon() {
  look_ = true;
  const auto pause_ms = static_cast<int64_t>(entropy_.Below(kRetryMax.count()));
  not_before_ = async_registry_.now() + Milliseconds(pause_ms);
}

}  // namespace firn
