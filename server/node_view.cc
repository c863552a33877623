#include "server/node_view.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/log/log.h"
#include "common/sequence/sequencer.h"
#include "common/tag/obfuscated_end.h"
#include "registry/operate/restore_command.h"
#include "server/node/open_node.h"
#include "server/plugins/built_in.h"

namespace firn {
namespace {

constexpr char kOfflineUnread[] = "the offline setting has not been read from the registry yet";

bool NamesRestore(std::string_view text) {
  return text.find(PrintCommand(PrintedCommand::kRestore)) != std::string_view::npos;
}

bool HasLostTags(const IssuingNodeStatus& status) {
  return std::any_of(status.refused->begin(), status.refused->end(), [](const auto& one) {
    return one.second.state == TagState::kLost && NamesRestore(one.second.why);
  });
}

// Returns whether a message to the operator refers to the command in the log and the status.
bool RefersToRestore(const IssuingNodeStatus& status) {
  return AsksForRestore(status.claim) || NamesRestore(status.root_trouble) || HasLostTags(status);
}

// Even a held claim may be useless, if a clock is behind or the layout has ended.
std::string TroubleOf(const IssuingNodeStatus& status) {
  const ClaimStatus& claim = status.claim;
  if (!claim.reason.empty()) {
    // The reason of a lapsing claim may be older than the freeze.
    const bool complete = !status.frozen || claim.reason.find("frozen") != std::string::npos;
    return complete ? claim.reason : "the cluster is frozen; " + claim.reason;
  }
  if (!claim.grant_trouble.empty()) return claim.grant_trouble;
  if (status.why_not_ready) return *status.why_not_ready;
  if (!status.root_trouble.empty()) return status.root_trouble;
  return HasLostTags(status) ? "the registry has lost tags" : claim.clock_trouble;
}

Urgency UrgencyOf(const IssuingNodeStatus& status) {
  if (status.why_not_ready) return Urgency::kRefused;
  if (status.frozen || RefersToRestore(status)) return Urgency::kData;
  // A claim from before a planned restore is replaced in time; no action is needed.
  return status.claim.state == ClaimState::kLapsing ? Urgency::kNote : Urgency::kSoon;
}

front::MachineReport MachineOf(const ClaimStatus& claim) {
  front::MachineReport shown{.claim = std::string(ClaimStateName(claim.state)),
                             .machine = claim.machine,
                             .trouble = claim.reason};
  if (!claim.machine) return shown;
  shown.bound = claim.bound;
  shown.bound_left = claim.left;
  return shown;
}

front::RegistryReport RegistryOf(const IssuingNodeStatus& status) {
  return {.claim = std::string(ClaimStateName(status.claim.state)),
          .trouble = TroubleOf(status),
          .urgency = UrgencyOf(status),
          .connected = status.claim.connected,
          .session_age = status.session_age,
          .renewals = status.claim.renewals.done,
          .renewals_failed = status.claim.renewals.failed,
          .clock_trouble = status.claim.clock_trouble,
          .clock_off = status.claim.registry_clock_off,
          .clock_behind = status.id_clock.skew,
          .clock_steps_forward = status.id_clock.steps_forward,
          .clock_steps_back = status.id_clock.steps_back};
}

}  // namespace

NodeView::NodeView(const ServerOptions& options, const IssuingNode& node,
                   OperatorSetting& operators, const ServerListing& listing, const RootKeeper& root,
                   const Clock& clock)
    : options_(options),
      node_(node),
      operators_(operators),
      listing_(listing),
      root_(root),
      clock_(clock),
      split_(node.split()),
      started_(clock.Wall()) {}

ServerPhase NodeView::phase() const {
  const IssuingNodeStatus status = node_.status();
  return PhaseOf(status, status.why_not_ready);
}

ServerPhase NodeView::announced() const {
  const IssuingNodeStatus status = node_.status();
  return PhaseOf(status, status.why_not_serving);
}

ServerPhase NodeView::PhaseOf(const IssuingNodeStatus& status,
                              const std::optional<std::string>& why_not) const {
  if (draining_) return ServerPhase::kDraining;
  if (why_not) return ServerPhase::kNotReady;
  if (operators_.offline()) return ServerPhase::kOffline;
  return IsAsking(status) ? ServerPhase::kNotReady : ServerPhase::kReady;
}

// A server that was offline before a restart must not be ready before the setting was read.
bool NodeView::IsAsking(const IssuingNodeStatus& status) const {
  return status.claim.connected && !operators_.known();
}

std::string NodeView::why_not_ready() const {
  const IssuingNodeStatus status = node_.status();
  if (status.why_not_ready) return *status.why_not_ready;
  return IsAsking(status) ? kOfflineUnread : "";
}

std::string NodeView::why_no_tag_is_ready() const {
  return IsAsking(node_.status()) ? kOfflineUnread : "";
}

front::ServerReport NodeView::Report() const {
  const IssuingNodeStatus status = node_.status();
  front::ServerReport report;
  report.cluster_uuid = status.claim.uuid;
  report.cluster_name = options_.place.registry;
  report.application = options_.application;
  report.address = options_.advertise.ToString();
  report.phase = PhaseOf(status, status.why_not_ready);
  report.machine = status.claim.machine;
  if (status.claim.machine) {
    report.bound = status.claim.bound;
    report.bound_left = status.claim.left;
  }
  for (const ClaimStatus& claim : status.claims) report.machines.push_back(MachineOf(claim));
  report.clock_skew = status.id_clock.ahead_of_registry;
  report.registry = RegistryOf(status);
  report.registry.exists = !options_.place.registry.starts_with(kStaticRegistry);
  report.frozen = status.frozen || AsksForRestore(status.claim);
  report.overloaded = overloaded_;
  report.sequencer = SequencerKindName(options_.node.snowflake.sequencer.kind);
  if (const std::string command = RepairCommand(status); !command.empty()) {
    std::string& trouble = report.registry.trouble;
    trouble += (NamesRestore(trouble) ? ": " : "; run firn restore: ") + command;
  }
  report.wall = clock_.Wall();
  report.started = started_;
  report.version = ServerVersion();
  report.build = ServerBuild();
  report.root_trouble = status.root_trouble;
  report.refused_tags_count = status.refused->size();
  for (const auto& [tag, refused] : *status.refused) {
    if (report.refused_tags.size() == front::ServerReport::kTagsMax) break;
    report.refused_tags.push_back({.tag = tag,
                                   .state = std::string(TagStateName(refused.state)),
                                   .reason = refused.reason,
                                   .why = refused.why});
  }
  report.tags = TagReports(status);
  return report;
}

std::vector<front::TagReport> NodeView::TagReports(const IssuingNodeStatus& status) const {
  std::vector<front::TagReport> reports;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [name, tag] : tags_) {
      if (reports.size() == front::ServerReport::kTagsMax) break;
      reports.push_back({.tag = name, .strategy = tag.strategy, .as_issued = tag.as_issued});
    }
  }
  for (front::TagReport& shown : reports) {
    const auto high = status.highest->find(shown.tag);
    if (high != status.highest->end() && high->second > 0) shown.high = high->second;
    const auto outdated = status.outdated->find(shown.tag);
    if (outdated != status.outdated->end()) shown.outdated = outdated->second;
    const std::optional<SegmentStatus> segment = node_.segments().status(shown.tag);
    if (!segment) continue;
    shown.supply = segment->supply;
    shown.supply_seconds = segment->supply_seconds;
    if (segment->step > 0) shown.step = segment->step;
    shown.trouble = segment->trouble;
    shown.owner = segment->owner;
    shown.owner_since = segment->owner_since;
    shown.ledger_since = segment->stood_in.since;
    shown.ledger_numbers = segment->stood_in.numbers;
  }
  return reports;
}

uint64_t NodeView::version() const {
  const IssuingNodeStatus status = node_.status();
  uint64_t version = tags_changed_;
  const auto mix = [&version](uint64_t part) {
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
    version = (version ^ part) * kOdd;
    version ^= version >> 32;
  };
  mix(static_cast<uint64_t>(PhaseOf(status, status.why_not_ready)));
  for (const auto& [tag, refused] : *status.refused) mix(std::hash<std::string>()(tag));
  for (const auto& [tag, why] : *status.outdated) mix(std::hash<std::string>()(tag));
  mix(std::hash<std::string>()(status.claim.uuid));
  mix(TroubleOf(status).empty());  // its text may contain seconds
  for (const bool is : {status.claim.connected, status.frozen, overloaded_.load()}) mix(is);
  for (const ClaimStatus& claim : status.claims) {
    mix(static_cast<uint64_t>(claim.state));
    mix(claim.machine ? claim.machine->value() + 1 : 0);
    mix(static_cast<uint64_t>(claim.bound.ms()));
    mix(claim.reason.empty());
  }
  return version;
}

Status NodeView::SetOffline(bool offline) {
  if (draining_) return Unavailable("the server is shutting down");
  operators_.Set(offline);
  LogInfo("offline_requested").With("offline", offline ? 1 : 0)
      << (offline ? "taken offline: clients use other servers" : "online again");
  return {};
}

WallMs NodeView::ids_end() const {
  WallMs end = layout().end();
  const std::shared_lock lock(mutex_);
  for (const auto& [name, tag] : tags_) {
    end = std::min(end, ObfuscatedEnd(tag.definition, layout()).value_or(end));
  }
  return end;
}

void NodeView::OnTag(const TagDefinition& tag) {
  const std::unique_lock lock(mutex_);
  tags_.insert_or_assign(tag.name, TagShown{tag.strategy, ShowsIdsAsIssued(tag), tag});
  ++tags_changed_;
}

void NodeView::OnTagDeleted(const std::string& tag) {
  const std::unique_lock lock(mutex_);
  tags_.erase(tag);
  ++tags_changed_;
}

std::string NodeView::knowledge() const {
  const IssuingNodeStatus status = node_.status();
  const auto root = root_.settings();
  const auto kept = root_.kept();
  // A server that has read no list of tags knows only those of its state folder.
  const bool kept_list = kept->tags_known && kept->root.uuid == status.claim.uuid;
  Backup known{.cluster = options_.place.registry,
               .taken = clock_.Wall(),
               .composed = true,
               .settings_known = root != nullptr && root->uuid == status.claim.uuid,
               .tags_known = status.tags_known ? status.tags_complete : kept_list,
               .checksum = kept->checksum};
  if (known.settings_known) known.root = *root;
  known.root.uuid = status.claim.uuid;
  known.root.layout = layout().text();
  known.root.rack_bits = split_.rack_bits();
  known.root.window = std::max(known.root.window, options_.node.claim.window);
  for (const ClaimStatus& claim : status.claims)
    if (claim.machine) known.bounds.emplace_back(*claim.machine, claim.bound);
  if (leases_ != nullptr) {
    known.reached = {leases_->highest_bound()};
    for (const LeaseShown& lease : leases_->List())
      known.bounds.emplace_back(lease.machine, lease.bound);
  }
  std::map<std::string, TagDefinition> tags = *status.unserved;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [name, tag] : tags_)
      if (!tag.definition.name.empty()) tags.emplace(name, tag.definition);
  }
  for (auto& [name, tag] : tags) {
    const auto high = status.highest->find(name);
    const bool has_numbers = tag.HasLedger() && high != status.highest->end();
    if (has_numbers) tag.high = std::max(tag.high, high->second);
    known.tags.push_back({.tag = std::move(tag)});
  }
  return FormatBackup(AddKept(std::move(known), *kept));
}

bool NodeView::RequiresRestore(const IssuingNodeStatus& status) const {
  return !status.claim.uuid.empty() && root_.loaded() && RefersToRestore(status);
}

std::string NodeView::RepairCommand(const IssuingNodeStatus& status) const {
  if (!RequiresRestore(status)) return {};
  const NodePlace& place = options_.place;
  std::optional<UnsavedSettings> unsaved{
      {std::string(layout().text()), split_.rack_bits(), options_.node.claim.window}};
  if (root_.saved()) unsaved.reset();
  const std::string& host = options_.node.claim.identity.host;
  return ServerRestoreCommand(
      {place.registry, options_.credentials_file, place.state_dir, {}, host}, status.claim.uuid,
      unsaved, root_.unfinished().get());
}

// Why all calls are refused, or calls of tags that are not listed as refused.
std::string NodeView::ReasonOf(const IssuingNodeStatus& status, ServerPhase announced) const {
  if (announced == ServerPhase::kNotReady) {
    return status.why_not_serving.value_or(kOfflineUnread);
  }
  const bool of_tag = status.refused->contains(options_.node.default_tag);
  if (status.why_not_ready && !of_tag) return *status.why_not_ready;
  return status.claim.machine ? "" : status.claim.reason;
}

ProviderReport NodeView::ForProviders() const {
  const IssuingNodeStatus status = node_.status();
  ProviderReport report{.phase = PhaseOf(status, status.why_not_serving),
                        .overloaded = overloaded_};
  report.reason = ReasonOf(status, report.phase);
  report.clock_trouble = status.claim.clock_trouble;
  if (report.reason.empty()) report.grant_trouble = status.claim.grant_trouble;
  for (const auto& [tag, refused] : *status.refused) {
    if (refused.state == TagState::kDisabled) continue;  // its definition shows it
    report.refused.emplace(tag, Cat(TagStateName(refused.state), ": ", refused.why));
  }
  report.outdated = *status.outdated;
  for (auto& [tag, segment] : node_.segments().status()) {
    if (segment.trouble.empty() || status.refused->contains(tag)) continue;
    report.unsupplied.emplace(tag, std::move(segment.trouble));
  }
  report.bound = status.claim.bound;
  if (leases_ != nullptr) report.lease_bound = leases_->highest_bound();
  report.window = options_.node.claim.window;
  for (const ClaimStatus& claim : status.claims) {
    if (!claim.machine) continue;
    if (!report.machine && claim.bound == report.bound) {
      report.machine = claim.machine;
    } else {
      report.more.push_back({*claim.machine, claim.bound});
    }
  }
  report.clock_skew_ms = status.id_clock.skew.count();
  if (const auto ahead = status.id_clock.ahead_of_registry) report.wall_skew_ms = ahead->count();
  if (IsUuid(status.claim.uuid)) report.cluster = status.claim.uuid;
  report.high = *status.highest;
  report.stores = node_.segments().stores();
  report.stand_ins = node_.segments().stand_ins();
  report.strategies = node_.catalogue().StrategyNames();
  report.plugins = node_.catalogue().PluginNames();
  // Without their flags, these two are in the catalogue but refuse every tag.
  if (options_.history.path.empty()) report.plugins.erase("history");
  if (options_.key_dir.empty()) report.plugins.erase("obfuscate");
  return report;
}

void NodeView::AddMetrics(front::MetricsPage& page) const {
  const auto outdated = node_.status().outdated;
  for (const auto& [tag, why] : *outdated) {
    page.Gauge("firn_tag_outdated", "1 for each tag that is served by an earlier definition.", 1,
               {{"tag", tag}});
  }
  for (const auto& [tag, segment] : node_.segments().status()) AddMetrics(tag, segment, page);
}

void NodeView::AddMetrics(const std::string& tag, const SegmentStatus& segment,
                          front::MetricsPage& page) {
  const front::MetricsPage::Labels labels{{"tag", tag}};
  page.Gauge("firn_segment_supply", "Numbers in memory.", static_cast<double>(segment.supply),
             labels);
  page.Gauge("firn_segment_per_second", "Numbers issued per second, averaged over some seconds.",
             segment.per_second, labels);
  if (segment.supply_seconds) {
    page.Gauge("firn_segment_supply_seconds",
               "Time for which the numbers in memory last at that rate, in seconds.",
               static_cast<double>(*segment.supply_seconds), labels);
  }
  page.Gauge("firn_segment_step", "Size of the next range, in numbers.",
             static_cast<double>(segment.step), labels);
  page.Counter("firn_segment_ranges_total", "Ranges taken.", static_cast<uint64_t>(segment.ranges),
               labels);
  page.Counter("firn_segment_failures_total", "Failures to take a range.",
               static_cast<uint64_t>(segment.failures), labels);
  page.Counter("firn_segment_wasted_total", "Numbers taken that will never be issued.",
               static_cast<uint64_t>(segment.wasted), labels);
  page.Gauge("firn_segment_store_away",
             "1 while no ranges arrive from the store, or from the tag's owner.",
             segment.trouble.empty() ? 0 : 1, labels);
  page.Gauge("firn_segment_stands_in",
             "1 while the ledger picks ranges because the store is unreachable.",
             segment.stood_in.since ? 1 : 0, labels);
  page.Counter("firn_segment_stood_in_total", "Numbers that the ledger has picked for the store.",
               static_cast<uint64_t>(segment.stood_in.numbers), labels);
}

}  // namespace firn
