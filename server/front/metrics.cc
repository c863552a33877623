#include "server/front/metrics.h"

#include <map>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace firn::front {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

constexpr double kMsPerDay = 24.0 * 3600 * 1000;

ClientMetric WithLabels(MetricsPage::Labels labels) {
  ClientMetric metric;
  for (auto& [name, value] : labels) metric.label.push_back({name, std::move(value)});
  return metric;
}

}  // namespace

struct MetricsPage::Families {
  std::map<std::string, prometheus::MetricFamily> by_name;

  prometheus::MetricFamily& Of(const std::string& name, const std::string& help, MetricType type) {
    prometheus::MetricFamily& family = by_name[name];
    if (family.name.empty()) {
      family.name = name;
      family.help = help;
      family.type = type;
    }
    return family;
  }
};

MetricsPage::MetricsPage() : families_(std::make_unique<Families>()) {}
MetricsPage::~MetricsPage() = default;

void MetricsPage::Counter(const std::string& name, const std::string& help, uint64_t value,
                          Labels labels) {
  ClientMetric metric = WithLabels(std::move(labels));
  metric.counter.value = static_cast<double>(value);
  families_->Of(name, help, MetricType::Counter).metric.push_back(std::move(metric));
}

void MetricsPage::Gauge(const std::string& name, const std::string& help, double value,
                        Labels labels) {
  ClientMetric metric = WithLabels(std::move(labels));
  metric.gauge.value = value;
  families_->Of(name, help, MetricType::Gauge).metric.push_back(std::move(metric));
}

std::string MetricsPage::Text() const {
  std::vector<prometheus::MetricFamily> all;
  for (const auto& [name, family] : families_->by_name) all.push_back(family);
  return prometheus::TextSerializer().Serialize(all);
}

void Describe(const Totals& totals, const std::string& door, MetricsPage& page) {
  const MetricsPage::Labels labels{{"door", door}};
  page.Gauge("firn_connections", "Open connections.", static_cast<double>(totals.open()), labels);
  page.Counter("firn_connections_accepted_total", "Connections that came in.", totals.accepted,
               labels);
  page.Counter("firn_accept_failures_total", "Times without a descriptor for a connection.",
               totals.accept_failed, labels);
  page.Counter("firn_requests_total", "Requests that were answered.", totals.requests, labels);
  page.Counter("firn_requests_parked_total", "Requests that had to wait for ids.", totals.parked,
               labels);
  page.Counter("firn_output_paused_total", "Times that reading stopped at unread answers.",
               totals.output_paused, labels);
  page.Counter("firn_turns_yielded_total", "Turns that ended at their limit of requests.",
               totals.yielded, labels);
  page.Counter("firn_received_bytes_total", "Bytes in.", totals.bytes_in, labels);
  page.Counter("firn_sent_bytes_total", "Bytes out.", totals.bytes_out, labels);
  for (size_t i = 0; i < kCloseCauses; ++i) {
    const std::string cause(CloseCauseName(static_cast<CloseCause>(i)));
    page.Counter("firn_connections_closed_total", "Connections that ended, by cause.",
                 totals.closed[i], {{"door", door}, {"cause", cause}});
  }
}

void Describe(const DeskCounters::Sums& sums, MetricsPage& page) {
  page.Counter("firn_calls_total", "Calls for ids, answered either way.", sums.calls);
  for (int i = 0; i < kReasons; ++i) {
    const std::string reason(ReasonName(static_cast<Reason>(i)));
    page.Counter("firn_refusals_total", "Calls that were refused, by reason.",
                 sums.refused[static_cast<size_t>(i)], {{"reason", reason}});
  }
  for (const auto& [tag, ids] : sums.issued) {
    page.Counter("firn_ids_total", "Ids that were issued, by tag.", ids, {{"tag", tag}});
  }
}

void Describe(const ServerView& view, MetricsPage& page) {
  const ServerReport report = view.Report();
  page.Gauge("firn_ready", "1 when clients should come.",
             report.state == ServerState::kReady ? 1 : 0);
  for (const auto state : {ServerState::kNotReady, ServerState::kReady, ServerState::kOffline,
                           ServerState::kDraining}) {
    page.Gauge("firn_state", "1 for the state that the server is in.",
               report.state == state ? 1 : 0, {{"state", std::string(ServerStateName(state))}});
  }
  if (report.machine) {
    page.Gauge("firn_machine_id", "The machine id that is held.", report.machine->value());
  }
  if (report.bound) {
    page.Gauge("firn_bound_milliseconds", "Until the bound, unless it is renewed.",
               static_cast<double>((*report.bound - report.wall).count()));
  }
  if (report.clock_skew) {
    page.Gauge("firn_clock_skew_milliseconds", "Ahead of the registry's clock.",
               static_cast<double>(report.clock_skew->count()));
  }
  page.Gauge("firn_layout_days_left", "Until the layout's time field has run out.",
             static_cast<double>((view.layout().end() - report.wall).count()) / kMsPerDay);
}

}  // namespace firn::front
