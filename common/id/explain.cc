#include "common/id/explain.h"

#include "common/base/cat.h"
#include "common/base/faults.h"
#include "common/time/civil_time.h"

namespace firn {
namespace {

// Returns the result's value, or adds its failure to the faults and returns `otherwise`.
template <typename T>
T ValueOr(Result<T> result, T otherwise, Faults& faults) {
  if (!result.ok()) faults.Add(result.status().message());
  return result.value_or(otherwise);
}

Result<Tick> TickFrom(const ComposeRequest& request, const Layout& layout, Tick otherwise) {
  if (request.tick && request.time)
    return Invalid("the time is given twice, as a tick and as a date; give one of them");
  if (request.time) return TickOfTime(layout, *request.time);
  // Pack checks whether it fits the field.
  return request.tick ? Tick(*request.tick) : otherwise;
}

Result<MachineId> MachineFrom(const ComposeRequest& request, const Layout& layout, RackSplit split,
                              MachineId otherwise) {
  if (!request.machine) {
    return split.Join(request.worker.value_or(split.WorkerOf(otherwise)),
                      request.rack.value_or(split.RackOf(otherwise)));
  }
  if (request.worker || request.rack) {
    return Invalid(
        "the machine is given twice, as a machine id and as a worker or rack; give one of them");
  }
  if (!layout.machine().Holds(*request.machine)) {
    return Invalid(Cat("machine ", *request.machine, " is not in 0..", layout.machine().max()));
  }
  return MachineId(static_cast<uint32_t>(*request.machine));
}

}  // namespace

Result<Explanation> Explain(int64_t id, const Layout& layout, RackSplit split) {
  FIRN_ASSIGN(const IdFields fields, layout.Unpack(id));
  const WallMs time = layout.StartOf(fields.tick);
  return Explanation{id,
                     layout.text(),
                     fields,
                     time,
                     FormatRfc3339(time),
                     split.WorkerOf(fields.machine),
                     split.RackOf(fields.machine)};
}

Result<int64_t> Compose(const ComposeRequest& request, const Layout& layout, RackSplit split,
                        const IdFields& defaults) {
  Faults faults;
  IdFields fields = defaults;
  fields.tick = ValueOr(TickFrom(request, layout, defaults.tick), Tick(0), faults);
  fields.machine =
      ValueOr(MachineFrom(request, layout, split, defaults.machine), MachineId(0), faults);
  if (request.sequence) fields.sequence = *request.sequence;
  if (request.version) fields.version = request.version;
  if (request.type) fields.type = request.type;
  if (request.method) fields.method = request.method;
  Result<int64_t> id = layout.Pack(fields);
  if (!id.ok()) faults.Add(id.status().message());
  if (!faults.empty()) return std::move(faults).ToStatus();
  return id;
}

Result<WallMs> TimeOfTick(const Layout& layout, int64_t tick) {
  if (tick < 0 || Tick(tick) > layout.last_tick()) {
    return Invalid(Cat("time ", tick, " is not in 0..", layout.time().max()));
  }
  return layout.StartOf(Tick(tick));
}

Result<Tick> TickOfTime(const Layout& layout, WallMs time) {
  if (time < layout.epoch() || time >= layout.end()) {
    return Invalid(FormatRfc3339(time) + " is not from " + FormatRfc3339(layout.epoch()) +
                   " until " + FormatRfc3339(layout.end()));
  }
  return layout.TickAt(time);
}

}  // namespace firn
