#include "server/node_view.h"

#include <utility>

#include <glog/logging.h>

#include "common/time_zone.h"
#include "server/plugins/built_in.h"

namespace firn {
namespace {

Result<std::optional<TextTemplate>> TextOf(const TagDefinition& tag) {
  if (tag.text.empty()) return std::optional<TextTemplate>();
  FIRN_ASSIGN(TimeZone zone, TimeZone::Load(tag.zone));
  FIRN_ASSIGN(TextTemplate text, TextTemplate::Parse(tag.text, std::move(zone)));
  return std::optional<TextTemplate>(std::move(text));
}

front::RegistryReport RegistryOf(const IssuingNodeStatus& status) {
  return {.claim = std::string(ClaimStateName(status.claim.state)),
          .trouble = status.claim.reason,
          .connected = status.claim.connected,
          .session_age = status.session_age,
          .renewals = status.claim.renewals.done,
          .renewals_failed = status.claim.renewals.failed,
          .clock_behind = status.id_clock.skew,
          .clock_steps_forward = status.id_clock.steps_forward,
          .clock_steps_back = status.id_clock.steps_back};
}

}  // namespace

NodeView::NodeView(const ServerOptions& options, const IssuingNode& node, OperatorWord& operators,
                   const Clock& clock)
    : options_(options),
      node_(node),
      operators_(operators),
      clock_(clock),
      split_(node.split()),
      started_(clock.Wall()) {
  if (!options.node.default_tag.empty()) {
    // A definition that is not read yet may say that its ids are changed.
    constexpr bool kAsIssued = false;
    tags_[options.node.default_tag] = {"snowflake", kAsIssued, std::nullopt};
  }
}

front::ServerState NodeView::state() const {
  if (draining_) return front::ServerState::kDraining;
  const ClaimStatus claim = node_.status().claim;
  const bool holds = claim.state == ClaimState::kHolding || claim.state == ClaimState::kLapsing;
  const bool issues = holds && claim.left > Milliseconds(0);  // else the bound is reached
  if (!issues) return front::ServerState::kNotReady;
  if (operators_.offline()) return front::ServerState::kOffline;
  // Whoever was offline before a restart shall not be ready for a moment after it.
  const bool asking = claim.connected && !operators_.known();
  return asking ? front::ServerState::kNotReady : front::ServerState::kReady;
}

front::ServerReport NodeView::Report() const {
  const IssuingNodeStatus status = node_.status();
  front::ServerReport report;
  report.cluster_uuid = status.claim.uuid;
  report.cluster_name = options_.place.registry;
  report.application = options_.application;
  report.address = options_.advertise.ToString();
  report.state = state();
  report.machine = status.claim.machine;
  if (status.claim.machine) {
    report.bound = status.claim.bound;
    report.bound_left = status.claim.left;
  }
  report.clock_skew = status.ahead_of_registry;
  report.registry = RegistryOf(status);
  report.wall = clock_.Wall();
  report.started = started_;
  report.version = ServerVersion();
  report.build = ServerBuild();
  const std::map<std::string, SegmentStatus> segments = node_.segments().status();
  const std::shared_lock lock(mutex_);
  for (const auto& [name, tag] : tags_) {
    if (report.tags.size() == front::ServerReport::kTagsMax) break;
    front::TagReport& shown = report.tags.emplace_back();
    shown.tag = name;
    shown.strategy = tag.strategy;
    shown.as_issued = tag.as_issued;
    const auto high = status.highest->find(name);
    if (high != status.highest->end() && high->second > 0) shown.high = high->second;
    const auto segment = segments.find(name);
    if (segment == segments.end()) continue;
    shown.supply = segment->second.supply;
    shown.supply_seconds = segment->second.supply_seconds;
    if (segment->second.step > 0) shown.step = segment->second.step;
    shown.trouble = segment->second.trouble;
  }
  return report;
}

void NodeView::AppendText(std::string_view tag, int64_t id, std::string& out) const {
  const std::shared_lock lock(mutex_);
  const auto found = tags_.find(tag);
  if (found == tags_.end() || !found->second.text) {
    out += std::to_string(id);
  } else {
    found->second.text->AppendTo(out, id, clock_.Wall());
  }
}

Status NodeView::Say(bool offline) {
  if (draining_) return Unavailable("the server is on its way out");
  operators_.Say(offline);
  LOG(INFO) << (offline ? "taken offline: clients are told to go elsewhere" : "online again");
  return {};
}

void NodeView::OnTag(const TagDefinition& tag) {
  auto text = TextOf(tag);
  LOG_IF(ERROR, !text.ok()) << "tag " << tag.name << ": its texts are decimal: " << text.status();
  TagShown made{tag.strategy, ShowsIdsAsIssued(tag), text.ok() ? *std::move(text) : std::nullopt};
  const std::unique_lock lock(mutex_);
  tags_.insert_or_assign(tag.name, std::move(made));
}

ProviderPhase NodeView::phase() const {
  switch (state()) {
    case front::ServerState::kReady:
      return ProviderPhase::kServing;
    case front::ServerState::kOffline:
    case front::ServerState::kDraining:
      return ProviderPhase::kDraining;
    case front::ServerState::kNotReady:
      break;
  }
  return ProviderPhase::kNotReady;
}

ProviderReport NodeView::ForProviders() const {
  const IssuingNodeStatus status = node_.status();
  ProviderReport report;
  report.phase = phase();
  report.machine = status.claim.machine;
  report.bound = status.claim.bound;
  report.clock_skew_ms = status.id_clock.skew.count();
  report.high = *status.highest;
  return report;
}

void NodeView::AddMetrics(front::MetricsPage& page) const {
  for (const auto& [tag, segment] : node_.segments().status()) AddMetrics(tag, segment, page);
}

void NodeView::AddMetrics(const std::string& tag, const SegmentStatus& segment,
                          front::MetricsPage& page) {
  const front::MetricsPage::Labels labels{{"tag", tag}};
  page.Gauge("firn_segment_supply", "Numbers in memory.", static_cast<double>(segment.supply),
             labels);
  page.Gauge("firn_segment_per_second", "Numbers given out, over some seconds.", segment.per_second,
             labels);
  if (segment.supply_seconds) {
    page.Gauge("firn_segment_supply_seconds", "How long the numbers in memory last at that pace.",
               static_cast<double>(*segment.supply_seconds), labels);
  }
  page.Gauge("firn_segment_step", "How many numbers are asked for next.",
             static_cast<double>(segment.step), labels);
  page.Counter("firn_segment_ranges_total", "Ranges taken.", static_cast<uint64_t>(segment.ranges),
               labels);
  page.Counter("firn_segment_failures_total", "Failures to take a range.",
               static_cast<uint64_t>(segment.failures), labels);
  page.Counter("firn_segment_wasted_total", "Numbers taken and never to be given out.",
               static_cast<uint64_t>(segment.wasted), labels);
  page.Gauge("firn_segment_store_away", "1 while no more ranges come.",
             segment.trouble.empty() ? 0 : 1, labels);
}

}  // namespace firn
