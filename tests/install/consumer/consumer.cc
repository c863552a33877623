#include <cstdio>

#include "common/id/layout.h"
#include "thrift/gen/IdService.h"

// Unpacks an id and copies its fields into the wire's own type.
int main() {
  const firn::Layout& layout = firn::Layout::Firn();
  const firn::Result<int64_t> id =
      layout.Pack({.tick = firn::Tick(1000), .machine = firn::MachineId(5), .sequence = 7});
  if (!id.ok()) return 1;
  const firn::Result<firn::IdFields> fields = layout.Unpack(*id);
  if (!fields.ok()) return 1;

  firn::wire::IdFields message;
  message.__set_id(*id);
  message.__set_ticks(fields->tick.count());
  message.__set_machine(static_cast<int32_t>(fields->machine.value()));
  message.__set_sequence(static_cast<int64_t>(fields->sequence));
  std::printf("tick %lld machine %d sequence %lld\n", static_cast<long long>(message.ticks),
              message.machine, static_cast<long long>(message.sequence));
  return 0;
}
