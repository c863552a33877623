#include "server/front/thrift/wire_values.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "common/base/cat.h"

namespace firn::front {
namespace {

wire::Reason::type ToWire(Reason reason) {
  switch (reason) {
    case Reason::kBadRequest:
      return wire::Reason::BAD_REQUEST;
    case Reason::kUnknownTag:
      return wire::Reason::UNKNOWN_TAG;
    case Reason::kNotReady:
      return wire::Reason::NOT_READY;
    case Reason::kClock:
      return wire::Reason::CLOCK;
    case Reason::kOverloaded:
      return wire::Reason::OVERLOADED;
    case Reason::kExhausted:
      return wire::Reason::EXHAUSTED;
    case Reason::kDraining:
      return wire::Reason::DRAINING;
    case Reason::kRejected:
      return wire::Reason::REJECTED;
    case Reason::kStoreDown:
      return wire::Reason::STORE_DOWN;
    case Reason::kInternal:
      return wire::Reason::INTERNAL;
  }
  return wire::Reason::INTERNAL;
}

wire::ServerState::type ToWire(ServerPhase phase) {
  switch (phase) {
    case ServerPhase::kNotReady:
      return wire::ServerState::NOT_READY;
    case ServerPhase::kReady:
      return wire::ServerState::READY;
    case ServerPhase::kOffline:
      return wire::ServerState::OFFLINE;
    case ServerPhase::kDraining:
      return wire::ServerState::DRAINING;
  }
  return wire::ServerState::NOT_READY;
}

void SetConstFields(const IdFields& fields, wire::IdFields& out) {
  if (fields.version) out.__set_version(static_cast<int32_t>(*fields.version));
  if (fields.type) out.__set_type(static_cast<int32_t>(*fields.type));
  if (fields.method) out.__set_method(static_cast<int32_t>(*fields.method));
}

wire::TagStatus ToWire(const TagReport& report, const std::map<std::string, uint64_t>& issued) {
  wire::TagStatus out;
  out.__set_tag(report.tag);
  out.__set_strategy(report.strategy);
  if (report.high) out.__set_high(*report.high);
  if (report.supply) out.__set_supply(*report.supply);
  out.__set_as_issued(report.as_issued);
  const auto count = issued.find(report.tag);
  out.__set_issued(count == issued.end() ? 0 : static_cast<int64_t>(count->second));
  return out;
}

// Converts the wire's signed numbers to unsigned ones.
class Numbers {
 public:
  std::optional<uint64_t> Take(const char* name, bool is_set, int64_t value) {
    if (!is_set) return std::nullopt;
    if (value < 0) faults_ += Cat(faults_.empty() ? "" : ", ", name, " is negative");
    return static_cast<uint64_t>(value);
  }
  Status status() const { return faults_.empty() ? Status() : Invalid(faults_); }

 private:
  std::string faults_;
};

}  // namespace

wire::Refusal ToWire(const Refusal& refusal) {
  wire::Refusal out;
  out.__set_reason(ToWire(refusal.reason));
  out.__set_message(refusal.message);
  out.__set_retry_after_ms(refusal.retry_after_ms);
  out.__set_another_server_may_help(refusal.another_server_may_help);
  return out;
}

wire::IdFields ToWire(const Explanation& explanation) {
  wire::IdFields out;
  out.__set_id(explanation.id);
  out.__set_time_ms(explanation.time.ms());
  out.__set_time_text(explanation.utc);
  out.__set_ticks(explanation.fields.tick.count());
  out.__set_machine(static_cast<int32_t>(explanation.fields.machine.value()));
  out.__set_worker(static_cast<int32_t>(explanation.worker));
  out.__set_rack(static_cast<int32_t>(explanation.rack));
  out.__set_sequence(static_cast<int64_t>(explanation.fields.sequence));
  out.__set_layout(explanation.layout);
  SetConstFields(explanation.fields, out);
  return out;
}

void ToWire(const Runs& runs, std::vector<wire::IdRun>& out) {
  constexpr int64_t kCountMax = std::numeric_limits<int32_t>::max();
  for (IdRun run : runs.runs()) {
    while (run.count > 0) {
      wire::IdRun part;
      part.__set_first(run.first);
      part.__set_count(static_cast<int32_t>(std::min(run.count, kCountMax)));
      part.__set_stride(run.stride);
      run = {run.At(part.count), run.count - part.count, run.stride};
      out.push_back(part);
    }
  }
}

wire::ServerEntry ToWire(const ListedServer& server) {
  wire::ServerEntry out;
  out.__set_address(server.address);
  out.__set_rack(static_cast<int32_t>(server.rack));
  out.__set_weight(server.weight);
  out.__set_online(server.online);
  out.__set_state(ToWire(server.phase));
  out.__set_tls(server.tls);
  return out;
}

wire::ServerStatus ToWire(const ServerReport& report, const Layout& layout, RackSplit split,
                          const std::map<std::string, uint64_t>& issued) {
  wire::ServerStatus out;
  out.__set_cluster_uuid(report.cluster_uuid);
  out.__set_cluster_name(report.cluster_name);
  out.__set_application(report.application);
  out.__set_address(report.address);
  out.__set_layout(std::string(layout.text()));
  out.__set_rack_bits(split.rack_bits());
  out.__set_state(ToWire(report.phase));
  if (report.machine) out.__set_machine(static_cast<int32_t>(report.machine->value()));
  for (const MachineReport& one : report.machines) {
    if (one.machine) out.machines.push_back(static_cast<int32_t>(one.machine->value()));
  }
  if (report.bound) out.__set_bound_ms(report.bound->ms());
  out.__set_wall_ms(report.wall.ms());
  if (report.clock_skew) out.__set_clock_skew_ms(report.clock_skew->count());
  out.__set_layout_ends_ms(layout.end().ms());
  out.__set_started_ms(report.started.ms());
  std::vector<wire::TagStatus> tags;
  for (const TagReport& tag : report.tags) tags.push_back(ToWire(tag, issued));
  out.__set_tags(tags);
  out.__set_version(report.version);
  out.__set_build(report.build);
  return out;
}

wire::LeaseTerms ToWire(const LeaseGrant& terms) {
  const Layout& layout = terms.layout;
  wire::LeaseTerms out;
  out.__set_lease(terms.lease);
  out.__set_number(static_cast<int64_t>(terms.number));
  out.__set_machine(static_cast<int32_t>(terms.machine.value()));
  out.__set_worker(static_cast<int32_t>(terms.worker));
  out.__set_rack(static_cast<int32_t>(terms.rack));
  out.__set_base_bits(static_cast<int64_t>(terms.base_bits));
  out.__set_tick_shift(layout.time().shift);
  out.__set_sequence_shift(layout.sequence().shift);
  out.__set_sequence_bits(layout.sequence().width);
  out.__set_sequence_from(static_cast<int64_t>(terms.sequence_from));
  out.__set_sequence_count(static_cast<int64_t>(terms.sequence_count));
  out.__set_tick_ms(static_cast<int32_t>(layout.tick_ms()));
  out.__set_epoch_ms(layout.epoch().ms());
  out.__set_from_tick(terms.from.count());
  out.__set_until_tick(terms.until.count());
  out.__set_renew_in_ms(static_cast<int32_t>(terms.renew_in.count()));
  out.__set_ending(terms.ending);
  out.__set_server(terms.server);
  return out;
}

wire::LeaseRefusal ToWire(const LeaseRefusal& refusal) {
  wire::LeaseRefusal out;
  out.__set_fault(static_cast<wire::LeaseFault::type>(refusal.fault));
  out.__set_message(refusal.message);
  if (!refusal.server.empty()) out.__set_server(refusal.server);
  return out;
}

Result<LeaseCall> FromWire(const wire::LeaseAsk& ask) {
  if (!ask.__isset.clock_ms) return Invalid("clock_ms is missing");
  LeaseAsk out{.token = ask.token, .name = ask.name, .clock = WallMs(ask.clock_ms)};
  if (ask.__isset.ahead_ms) out.ahead = Milliseconds(ask.ahead_ms);
  // A negative rack becomes one that exists in no layout.
  if (ask.__isset.rack) out.rack = static_cast<uint32_t>(ask.rack);
  return LeaseCall(std::move(out));
}

Result<LeaseCall> FromWire(const wire::LeaseRenewal& renewal) {
  if (!renewal.__isset.clock_ms) return Invalid("clock_ms is missing");
  LeaseRenewal out{.lease = renewal.lease,
                   .turn = renewal.turn,
                   .acknowledged = renewal.acknowledged,
                   .clock = WallMs(renewal.clock_ms)};
  if (renewal.__isset.ahead_ms) out.ahead = Milliseconds(renewal.ahead_ms);
  return LeaseCall(std::move(out));
}

Result<LeaseCall> FromWire(const wire::LeaseEnd& end) {
  LeaseEnd out{.lease = end.lease, .turn = end.turn};
  if (end.__isset.used_tick) out.used = Tick(end.used_tick);
  return LeaseCall(std::move(out));
}

Result<ComposeRequest> FromWire(const wire::ComposeRequest& request) {
  const auto& set = request.__isset;
  Numbers numbers;
  ComposeRequest out;
  if (set.ticks) out.tick = request.ticks;
  if (set.time_ms) out.time = WallMs(request.time_ms);
  out.machine = numbers.Take("machine", set.machine, request.machine);
  out.worker = numbers.Take("worker", set.worker, request.worker);
  out.rack = numbers.Take("rack", set.rack, request.rack);
  out.sequence = numbers.Take("sequence", set.sequence, request.sequence);
  out.version = numbers.Take("version", set.version, request.version);
  out.type = numbers.Take("type", set.type, request.type);
  out.method = numbers.Take("method", set.method, request.method);
  FIRN_TRY(numbers.status());
  return out;
}

Refusal BadRequest(const Status& status) {
  return {Reason::kBadRequest, status.message(), 0, false};
}

}  // namespace firn::front
