#include "server/front/desk/metrics.h"

#include <limits>
#include <map>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "common/base/utf8.h"
#include "common/id/urgency.h"

namespace firn::front {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

// Prometheus asks for base units.
double SecondsOf(Milliseconds time) { return static_cast<double>(time.count()) / 1000; }

ClientMetric WithLabels(MetricsPage::Labels labels) {
  ClientMetric metric;
  for (auto& [name, value] : labels) {
    // Prometheus refuses the whole page if one label is not UTF-8.
    if (!IsPrintableUtf8(value)) value = ToPrintableUtf8(value);
    metric.label.push_back({name, std::move(value)});
  }
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

void MetricsPage::Histogram(const std::string& name, const std::string& help,
                            const LatencyCounts::Sums& sums, Labels labels) {
  ClientMetric metric = WithLabels(std::move(labels));
  constexpr double kUsPerSecond = 1e6;
  uint64_t below = 0;
  for (size_t i = 0; i < sums.buckets.size(); ++i) {
    below += sums.buckets[i];
    const bool last = i + 1 == sums.buckets.size();
    const double bound = last ? std::numeric_limits<double>::infinity()
                              : static_cast<double>(uint64_t{1} << i) / kUsPerSecond;
    metric.histogram.bucket.push_back({below, bound});
  }
  metric.histogram.sample_count = below;
  metric.histogram.sample_sum = static_cast<double>(sums.total_us) / kUsPerSecond;
  families_->Of(name, help, MetricType::Histogram).metric.push_back(std::move(metric));
}

std::string MetricsPage::Text() const {
  std::vector<prometheus::MetricFamily> all;
  for (const auto& [name, family] : families_->by_name) all.push_back(family);
  return prometheus::TextSerializer().Serialize(all);
}

void Describe(const Totals& totals, const std::string& door, std::optional<TlsExpiry> expiry,
              WallMs now, MetricsPage& page) {
  const MetricsPage::Labels labels{{"door", door}};
  const auto seconds_to = [now](WallMs end) { return SecondsOf(end - now); };
  if (expiry) {
    page.Gauge("firn_tls_certificate_expiry_seconds",
               "Time until the server's TLS certificate expires; negative once it has.",
               seconds_to(expiry->certificate), labels);
  }
  if (expiry && expiry->client_ca) {
    page.Gauge("firn_tls_client_ca_expiry_seconds",
               "Time until the first client CA certificate expires; negative once it has.",
               seconds_to(*expiry->client_ca), labels);
  }
  page.Gauge("firn_connections", "Open connections.", static_cast<double>(totals.open()), labels);
  page.Counter("firn_connections_accepted_total", "Connections accepted.", totals.accepted, labels);
  page.Counter("firn_accept_failures_total",
               "Connections not accepted for lack of file descriptors.", totals.accept_failed,
               labels);
  page.Counter("firn_requests_total", "Requests answered.", totals.requests, labels);
  page.Counter("firn_requests_parked_total", "Requests that had to wait for ids.", totals.parked,
               labels);
  page.Counter("firn_output_paused_total",
               "Times that the server stopped reading because a peer did not read its answers.",
               totals.output_paused, labels);
  page.Counter("firn_turns_yielded_total",
               "Turns of a connection that ended at the limit of requests.", totals.yielded,
               labels);
  page.Counter("firn_received_bytes_total", "Bytes received.", totals.bytes_in, labels);
  page.Counter("firn_sent_bytes_total", "Bytes sent.", totals.bytes_out, labels);
  page.Gauge("firn_connection_buffer_bytes", "Memory of the buffers of open connections.",
             static_cast<double>(totals.buffer_bytes), labels);
  const char* const latency = "firn_request_seconds";
  const char* const help = "Time from reading a request to writing its answer.";
  const auto with = [&](ProtocolKind kind) {
    return MetricsPage::Labels{{"door", door}, {"protocol", std::string(ProtocolName(kind))}};
  };
  totals.latency.ForEach([&](ProtocolKind kind, const LatencyCounts::Sums& sums) {
    // Rarely used protocols have series only once they are used.
    const bool common = kind == ProtocolKind::kThrift || kind == ProtocolKind::kHttp;
    if (!common && totals.recognised[kind] == 0) return;
    page.Histogram(latency, help, sums, with(kind));
    page.Gauge("firn_protocol_connections", "Open connections, by their protocol.",
               static_cast<double>(totals.open(kind)), with(kind));
  });
  for (size_t i = 0; i < kCloseCauses; ++i) {
    const std::string cause(CloseCauseName(static_cast<CloseCause>(i)));
    page.Counter("firn_connections_closed_total", "Connections closed, by cause.", totals.closed[i],
                 {{"door", door}, {"cause", cause}});
  }
}

namespace {

void DescribeProtocol(const std::string& protocol, const DeskCounters::OfProtocol& one,
                      MetricsPage& page) {
  page.Counter("firn_protocol_calls_total", "Calls for ids, served or refused, by protocol.",
               one.calls, {{"protocol", protocol}});
  for (int i = 0; i < kReasons; ++i) {
    const std::string reason(ReasonName(static_cast<Reason>(i)));
    page.Counter("firn_protocol_refusals_total", "Calls refused, by protocol and reason.",
                 one.refused[static_cast<size_t>(i)], {{"protocol", protocol}, {"reason", reason}});
  }
}

}  // namespace

void Describe(const DeskCounters::Sums& sums, MetricsPage& page) {
  page.Counter("firn_calls_total", "Calls for ids, served or refused.", sums.calls);
  for (int i = 0; i < kReasons; ++i) {
    const std::string reason(ReasonName(static_cast<Reason>(i)));
    page.Counter("firn_refusals_total", "Calls refused, by reason.",
                 sums.refused[static_cast<size_t>(i)], {{"reason", reason}});
  }
  sums.protocols.ForEach([&](ProtocolKind kind, const DeskCounters::OfProtocol& one) {
    if (one.served) DescribeProtocol(std::string(ProtocolName(kind)), one, page);
  });
  for (const auto& [tag, ids] : sums.issued) {
    page.Counter("firn_ids_total", "Ids issued, by tag.", ids, {{"tag", tag}});
  }
}

namespace {

void Describe(const RegistryReport& report, MetricsPage& page) {
  page.Gauge("firn_wall_clock_behind_seconds",
             "Time by which the wall clock is behind the time in new ids.",
             SecondsOf(report.clock_behind));
  const char* const steps = "Steps of the wall clock.";
  page.Counter("firn_clock_steps_total", steps, report.clock_steps_forward,
               {{"direction", "forward"}});
  page.Counter("firn_clock_steps_total", steps, report.clock_steps_back, {{"direction", "back"}});
  if (report.exists) {
    page.Gauge("firn_registry_connected", "1 while there is a session with the registry.",
               report.connected ? 1 : 0);
    page.Gauge("firn_registry_session_seconds", "Age of the session; 0 while there is none.",
               SecondsOf(report.session_age));
  }
  page.Gauge("firn_claim_state", "1 for the state of the machine id.", 1,
             {{"state", report.claim}});
  for (const Urgency urgency :
       {Urgency::kData, Urgency::kRefused, Urgency::kSoon, Urgency::kNote}) {
    const bool shown = !report.trouble.empty() && report.urgency == urgency;
    page.Gauge("firn_trouble", "1 while the status shows a trouble of this urgency.", shown ? 1 : 0,
               {{"urgency", std::string(UrgencyName(urgency))}});
  }
  page.Gauge("firn_registry_clock_off_seconds",
             "Registry's clock minus the time that this server relies on; 0 while they agree.",
             SecondsOf(report.clock_off));
  const char* const renewals = "Attempts to raise the bound.";
  page.Counter("firn_renewals_total", renewals, report.renewals, {{"outcome", "done"}});
  page.Counter("firn_renewals_total", renewals, report.renewals_failed, {{"outcome", "failed"}});
}

// A single machine id has no label; several are labelled with their numbers.
void DescribeMachines(const std::vector<MachineReport>& machines, MetricsPage& page) {
  uint64_t held = 0;
  for (size_t i = 0; i < machines.size(); ++i) {
    if (!machines[i].machine) continue;
    ++held;
    MetricsPage::Labels labels;
    if (machines.size() > 1) labels = {{"claim", std::to_string(i + 1)}};
    page.Gauge("firn_machine_id", "A machine id that the server holds.",
               machines[i].machine->value(), labels);
  }
  page.Gauge("firn_machine_ids_held", "Machine ids that the server holds.",
             static_cast<double>(held));
  page.Gauge("firn_machine_ids_wanted", "Machine ids that the server should hold (--machine_ids).",
             static_cast<double>(machines.size()));
}

// Tags that an operator has disabled are left out, so that they do not use up the limit.
void DescribeRefused(const ServerReport& report, MetricsPage& page) {
  constexpr size_t kSeriesMax = 100;
  size_t series = 0;
  for (const RefusedTagReport& tag : report.refused_tags) {
    if (tag.state == "disabled" || series++ >= kSeriesMax) continue;
    page.Gauge("firn_tag_refused", "1 for each tag whose calls are refused, with the cause.", 1,
               {{"tag", tag.tag}, {"state", tag.state}});
  }
  page.Gauge("firn_tags_refused", "Tags whose calls are refused, disabled ones included.",
             static_cast<double>(report.refused_tags_count));
}

}  // namespace

void Describe(const LeaseCounts& counts, MetricsPage& page) {
  page.Gauge("firn_leases",
             "Machine ids that this server has leased to programs, until each is released.",
             static_cast<double>(counts.held));
  const auto add = [&](const char* event, uint64_t times) {
    page.Counter("firn_leases_total", "Leases of machine ids, by what became of them.", times,
                 {{"event", event}});
  };
  add("granted", counts.granted);
  add("renewed", counts.renewed);
  add("ended", counts.ended);
  add("expired", counts.expired);
  add("copied", counts.copies);
  add("lost", counts.lost);
  for (size_t i = 0; i < kLeaseVerdicts; ++i) {
    const auto verdict = static_cast<LeaseVerdict>(i);
    if (verdict == LeaseVerdict::kGranted || verdict == LeaseVerdict::kEnded) continue;
    page.Counter("firn_leases_refused_total", "Refused requests for leases, by reason.",
                 counts.refused[i], {{"reason", std::string(LeaseVerdictName(verdict))}});
  }
  for (const LeaseRoom& room : counts.rooms) {
    const MetricsPage::Labels labels{{"rack", std::to_string(room.rack)}};
    page.Gauge("firn_lease_machine_ids",
               "Usable machine ids of a rack's share for leases, as read within three minutes.",
               static_cast<double>(room.usable), labels);
    page.Gauge("firn_lease_machine_ids_free",
               "Free machine ids of a rack's share for leases, as read within three minutes.",
               static_cast<double>(room.free), labels);
  }
}

void Describe(const ServerView& view, MetricsPage& page) {
  const ServerReport report = view.Report();
  page.Gauge("firn_ready", "1 while calls that name no tag are served.",
             report.phase == ServerPhase::kReady ? 1 : 0);
  for (const auto phase : {ServerPhase::kNotReady, ServerPhase::kReady, ServerPhase::kOffline,
                           ServerPhase::kDraining}) {
    page.Gauge("firn_state", "1 for the state that the server is in.",
               report.phase == phase ? 1 : 0, {{"state", std::string(PhaseName(phase))}});
  }
  DescribeMachines(report.machines, page);
  if (report.bound_left) {
    page.Gauge("firn_bound_seconds", "Time until the bound, unless the claim is renewed.",
               SecondsOf(*report.bound_left));
  }
  if (report.clock_skew) {
    page.Gauge("firn_clock_skew_seconds", "Local clock minus the registry's clock.",
               SecondsOf(*report.clock_skew));
  }
  Describe(report.registry, page);
  DescribeRefused(report, page);
  page.Gauge("firn_cluster_frozen", "1 while the cluster waits for firn restore.",
             report.frozen ? 1 : 0);
  page.Gauge("firn_layout_remaining_seconds",
             "Time until the layout's time field ends, or ids outgrow an obfuscated tag's width.",
             SecondsOf(view.ids_end() - report.wall));
}

}  // namespace firn::front
