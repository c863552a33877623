#include "common/id/layout.h"

#include "common/base/cat.h"
#include "common/base/faults.h"

namespace firn {
namespace {

std::string RangeFault(std::string_view name, const std::string& number, uint64_t max) {
  return Cat(name, " ", number, " is not in 0..", max);
}

// Returns the value of a const field, for which a caller may have given `asked`; adds a fault to
// `faults`.
uint64_t ConstValue(const Layout& layout, FieldKind kind, std::optional<uint64_t> asked,
                    Faults& faults) {
  const Field* field = layout.Find(kind);
  const std::string name(FieldName(kind));
  if (field == nullptr) {
    if (asked) faults.Add("this layout has no " + name);
    return 0;
  }
  const uint64_t value = asked.value_or(field->value);
  if (!field->Holds(value)) {
    faults.Add(RangeFault(name, std::to_string(value), field->max()));
  } else if (field->is_fixed() && value != field->value) {
    faults.Add(Cat(name, " is ", field->value, " in every id of this layout"));
  }
  return field->Place(value);
}

}  // namespace

Result<int64_t> Layout::Pack(const IdFields& fields) const {
  Faults faults;
  if (fields.tick < Tick(0) || fields.tick > last_tick()) {
    faults.Add(RangeFault("time", std::to_string(fields.tick.count()), time_.max()));
  }
  if (!machine_.Holds(fields.machine.value())) {
    faults.Add(RangeFault("machine", std::to_string(fields.machine.value()), machine_.max()));
  }
  if (!sequence_.Holds(fields.sequence)) {
    faults.Add(RangeFault("sequence", std::to_string(fields.sequence), sequence_.max()));
  }
  const uint64_t const_bits = ConstValue(*this, FieldKind::kVersion, fields.version, faults) |
                              ConstValue(*this, FieldKind::kType, fields.type, faults) |
                              ConstValue(*this, FieldKind::kMethod, fields.method, faults);
  if (!faults.empty()) return std::move(faults).ToStatus();
  return PackUnchecked(const_bits | machine_.Place(fields.machine.value()), fields.tick,
                       fields.sequence);
}

Result<IdFields> Layout::Unpack(int64_t id) const {
  const auto bits = static_cast<uint64_t>(id);
  if ((bits & fixed_mask_) != (const_bits_ & fixed_mask_)) {
    return Invalid(Cat(id, " is not an id of this layout: it differs in a bit that is the ",
                       "same in all ids of the layout"));
  }
  IdFields fields{Tick(static_cast<int64_t>(time_.In(bits))),
                  MachineId(static_cast<uint32_t>(machine_.In(bits))), sequence_.In(bits)};
  if (const Field* field = Find(FieldKind::kVersion)) fields.version = field->In(bits);
  if (const Field* field = Find(FieldKind::kType)) fields.type = field->In(bits);
  if (const Field* field = Find(FieldKind::kMethod)) fields.method = field->In(bits);
  return fields;
}

}  // namespace firn
