#include "tests/client/lease/fake_leases.h"

#include "common/id/layout.h"
#include "common/time/clock.h"

namespace firn {

void FakeLeases::Refuse() const {
  if (answer == Answer::kTerms) return;
  if (answer == Answer::kClaiming) {
    wire::Refusal claiming;
    claiming.reason = wire::Reason::NOT_READY;
    claiming.message = "as the test says";
    claiming.retry_after_ms = 700;
    claiming.another_server_may_help = false;
    throw claiming;
  }
  wire::LeaseRefusal refusal;
  refusal.fault = static_cast<wire::LeaseFault::type>(static_cast<int>(answer));
  refusal.message = "as the test says";
  if (!server.empty()) refusal.__set_server(server);
  throw refusal;
}

void FakeLeases::Promise(const std::string& lease, wire::LeaseTerms& out) const {
  Refuse();
  const Layout layout = Layout::Firn();
  const Tick now = layout.TickAt(SystemClock().Wall());
  out.lease = lease;
  out.machine = machine;
  out.base_bits = static_cast<int64_t>(
      layout.BaseBits(MachineId(static_cast<uint32_t>(machine)), /*method=*/0));
  out.tick_shift = layout.time().shift;
  out.sequence_shift = layout.sequence().shift;
  out.sequence_bits = layout.sequence().width;
  out.sequence_count = static_cast<int64_t>(layout.ids_per_tick());
  out.tick_ms = static_cast<int32_t>(layout.tick_ms());
  out.epoch_ms = layout.epoch().ms();
  out.from_tick = now.count();
  out.until_tick = now.count() + 60'000;
  out.renew_in_ms = 20'000;
  out.server = named;
}

}  // namespace firn
