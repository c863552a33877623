#include "client/wire/lease_values.h"

#include <algorithm>
#include <cstring>

#include "common/base/utf8.h"
#include "thrift/gen/firn_types.h"

namespace firn::client {
namespace {

int32_t Milliseconds32(Milliseconds duration) {
  return static_cast<int32_t>(std::clamp<int64_t>(duration.count(), INT32_MIN, INT32_MAX));
}

LeaseFault FaultOf(const wire::LeaseFault::type& sent) {
  // To load an enumeration that has no such value would be undefined behaviour.
  static_assert(sizeof sent == sizeof(int));
  int number;
  std::memcpy(&number, &sent, sizeof number);
  switch (number) {
    case wire::LeaseFault::UNKNOWN_LEASE:
      return LeaseFault::kUnknownLease;
    case wire::LeaseFault::OUTDATED:
      return LeaseFault::kOutdated;
    case wire::LeaseFault::REVOKED:
      return LeaseFault::kRevoked;
    case wire::LeaseFault::ANOTHER_SERVERS:
      return LeaseFault::kAnotherServers;
    case wire::LeaseFault::NO_LEASES:
      return LeaseFault::kNoLeases;
    default:
      return LeaseFault::kOther;
  }
}

}  // namespace

wire::LeaseAsk AskToWire(const LeaseAsk& ask) {
  wire::LeaseAsk out;
  out.__set_token(ask.token);
  out.__set_name(ask.name);
  out.__set_clock_ms(ask.clock.ms());
  if (ask.ahead) out.__set_ahead_ms(Milliseconds32(*ask.ahead));
  if (ask.rack) out.__set_rack(static_cast<int32_t>(*ask.rack));
  return out;
}

wire::LeaseRenewal RenewalToWire(const LeaseAsk& ask) {
  wire::LeaseRenewal out;
  out.__set_lease(ask.lease);
  out.__set_turn(ask.turn);
  out.__set_acknowledged(ask.acknowledged);
  out.__set_clock_ms(ask.clock.ms());
  if (ask.ahead) out.__set_ahead_ms(Milliseconds32(*ask.ahead));
  return out;
}

wire::LeaseEnd EndToWire(const LeaseAsk& ask) {
  wire::LeaseEnd out;
  out.__set_lease(ask.lease);
  out.__set_turn(ask.turn);
  if (ask.used) out.__set_used_tick(ask.used->count());
  return out;
}

LeaseTerms FromWire(const wire::LeaseTerms& terms) {
  return {.lease = terms.lease,
          .number = terms.number,
          .machine = terms.machine,
          .worker = terms.worker,
          .rack = terms.rack,
          .base_bits = terms.base_bits,
          .tick_shift = terms.tick_shift,
          .sequence_shift = terms.sequence_shift,
          .sequence_bits = terms.sequence_bits,
          .sequence_from = terms.sequence_from,
          .sequence_count = terms.sequence_count,
          .tick_ms = terms.tick_ms,
          .epoch = WallMs(terms.epoch_ms),
          .from = Tick(terms.from_tick),
          .until = Tick(terms.until_tick),
          .renew_in = Milliseconds(terms.renew_in_ms),
          .ending = terms.ending,
          .server = terms.server};
}

LeaseRefusal FromWire(const wire::LeaseRefusal& refusal) {
  return {.fault = FaultOf(refusal.fault),
          .message = ToPrintableUtf8(refusal.message),
          .server = ToPrintableUtf8(refusal.server)};
}

}  // namespace firn::client
