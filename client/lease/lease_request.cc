#include "client/lease/lease_request.h"

#include "common/base/cat.h"

namespace firn {

Status CheckTerms(const LeaseGrant& terms) {
  const Layout& layout = terms.layout;
  if (terms.lease.empty()) return Invalid("a lease without a name");
  if (!layout.machine().Holds(terms.machine.value())) {
    return Invalid(
        Cat("machine id ", terms.machine.value(), " does not fit into layout ", layout.text()));
  }
  if (layout.machine().In(terms.base_bits) != terms.machine.value()) {
    return Invalid(Cat("base bits of another machine id than ", terms.machine.value()));
  }
  if ((terms.base_bits & (layout.time().mask() | layout.sequence().mask())) != 0) {
    return Invalid("base bits in the time or sequence field");
  }
  if (terms.sequence_from != 0 || terms.sequence_count != layout.ids_per_tick()) {
    return Invalid("a lease of a part of the sequence, which this version does not support");
  }
  if (terms.from < Tick(0) || terms.until <= terms.from || terms.until > layout.last_tick() + 1) {
    return Invalid(Cat("ticks from ", terms.from.count(), " to ", terms.until.count(),
                       ", which layout ", layout.text(), " does not have"));
  }
  return {};
}

}  // namespace firn
