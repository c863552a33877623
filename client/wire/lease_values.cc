#include "client/wire/lease_values.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "common/base/cat.h"
#include "common/base/utf8.h"
#include "thrift/gen/firn_types.h"

namespace firn::client {
namespace {

int32_t Milliseconds32(Milliseconds duration) {
  return static_cast<int32_t>(std::clamp<int64_t>(duration.count(), INT32_MIN, INT32_MAX));
}

using Kind = LeaseOutcome::Kind;

Kind KindOf(const wire::LeaseFault::type& sent) {
  // To load an enumeration that has no such value would be undefined behaviour.
  static_assert(sizeof sent == sizeof(int));
  int number;
  std::memcpy(&number, &sent, sizeof number);
  switch (number) {
    case wire::LeaseFault::UNKNOWN_LEASE:
      return Kind::kUnknown;
    case wire::LeaseFault::OUTDATED:
      return Kind::kOutdated;
    case wire::LeaseFault::REVOKED:
      return Kind::kGone;
    case wire::LeaseFault::ANOTHER_SERVERS:
      return Kind::kElsewhere;
    default:  // NO_LEASES, or a fault of a later version of the contract
      return Kind::kNotExtended;
  }
}

// Returns a fault if the terms do not describe ids of the layout.
std::optional<std::string> FaultOf(const wire::LeaseTerms& terms, const Layout* layout) {
  if (layout == nullptr) return "a lease of a layout that this version does not know";
  const bool same = terms.tick_shift == layout->time().shift &&
                    terms.sequence_shift == layout->sequence().shift &&
                    terms.sequence_bits == layout->sequence().width &&
                    terms.tick_ms == layout->tick_ms() && WallMs(terms.epoch_ms) == layout->epoch();
  if (!same) return Cat("a lease of another layout than the cluster's, ", layout->text());
  if (terms.machine < 0) return "a lease of a negative machine id";
  return std::nullopt;
}

// Returns the end of the interval, unless these terms overflow.
std::optional<WallMs> EndOf(const wire::LeaseTerms& terms) {
  int64_t since_epoch = 0, end = 0;
  if (__builtin_mul_overflow(terms.until_tick, int64_t{terms.tick_ms}, &since_epoch) ||
      __builtin_add_overflow(terms.epoch_ms, since_epoch, &end)) {
    return std::nullopt;
  }
  return WallMs(end);
}

}  // namespace

wire::LeaseAsk AskToWire(const LeaseRequest& request) {
  wire::LeaseAsk out;
  out.__set_token(request.token);
  out.__set_name(request.name);
  out.__set_clock_ms(request.clock.ms());
  if (request.ahead.count() > 0) out.__set_ahead_ms(Milliseconds32(request.ahead));
  if (request.rack) out.__set_rack(static_cast<int32_t>(*request.rack));
  return out;
}

wire::LeaseRenewal RenewalToWire(const LeaseRequest& request) {
  wire::LeaseRenewal out;
  out.__set_lease(request.lease);
  out.__set_turn(request.turn);
  out.__set_acknowledged(request.acknowledged);
  out.__set_clock_ms(request.clock.ms());
  if (request.ahead.count() > 0) out.__set_ahead_ms(Milliseconds32(request.ahead));
  return out;
}

wire::LeaseEnd EndToWire(const LeaseRequest& request) {
  wire::LeaseEnd out;
  out.__set_lease(request.lease);
  out.__set_turn(request.turn);
  if (request.used) out.__set_used_tick(request.used->count());
  return out;
}

LeaseOutcome FromWire(const wire::LeaseTerms& terms, const Layout* layout) {
  LeaseOutcome outcome{
      .kind = Kind::kTerms,
      .terms = {.lease = terms.lease, .server = terms.server, .from = Tick(terms.from_tick)}};
  if (auto fault = FaultOf(terms, layout)) {
    outcome.kind = Kind::kUnusable;
    outcome.end = EndOf(terms);
    outcome.status = Invalid(*std::move(fault));
    return outcome;
  }
  outcome.terms.layout = *layout;
  outcome.terms.machine = MachineId(static_cast<uint32_t>(terms.machine));
  outcome.terms.base_bits = static_cast<uint64_t>(terms.base_bits);
  outcome.terms.sequence_from = static_cast<uint64_t>(terms.sequence_from);
  outcome.terms.sequence_count = static_cast<uint64_t>(terms.sequence_count);
  outcome.terms.until = Tick(terms.until_tick);
  outcome.terms.renew_in = Milliseconds(terms.renew_in_ms);
  outcome.terms.ending = terms.ending;
  return outcome;
}

LeaseOutcome FromWire(const wire::LeaseRefusal& refusal) {
  return {.kind = KindOf(refusal.fault),
          .terms = {.server = ToPrintableUtf8(refusal.server)},
          .status = Unavailable(ToPrintableUtf8(refusal.message))};
}

}  // namespace firn::client
