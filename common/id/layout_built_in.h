#pragma once

#include <array>
#include <string_view>

#include "common/id/layout.h"

namespace firn {

// The named layouts, as compile-time constants. Include common/id/layout.h instead: this is a
// separate file only because the constants must follow the definition of their type.

constexpr Layout::Layout(std::span<const Field> high_to_low, int64_t tick_ms, WallMs epoch)
    : tick_ms_(tick_ms), epoch_(epoch) {
  int shift = 0;
  for (const Field& field : high_to_low) shift += field.width;
  fixed_mask_ = shift == 64 ? 0 : ~uint64_t{0} << shift;
  for (Field field : high_to_low) {
    field.shift = shift -= field.width;
    // Drops a zero field above all others: bits without a field are zero, too, so both are equal.
    if (field.kind == FieldKind::kZero && field_count_ == 0) {
      fixed_mask_ |= field.mask();
      continue;
    }
    if (field.is_fixed()) fixed_mask_ |= field.mask();
    if (field.kind == FieldKind::kTime) time_ = field;
    if (field.kind == FieldKind::kMachine) machine_ = field;
    if (field.kind == FieldKind::kSequence) sequence_ = field;
    if (field.kind == FieldKind::kMethod) method_ = field;
    if (field.is_const() && field.kind != FieldKind::kMethod) {
      const_bits_ |= field.Place(field.value);
    }
    fields_[static_cast<size_t>(field_count_++)] = field;
  }
}

struct BuiltInLayouts {
  using enum FieldKind;

  struct Named {
    std::string_view name;
    Layout layout;
  };

  static constexpr Layout Of(std::initializer_list<Field> high_to_low, int64_t tick_ms,
                             WallMs epoch) {
    return Layout(std::span(high_to_low.begin(), high_to_low.size()), tick_ms, epoch);
  }
  static constexpr Field Bits(FieldKind kind, int width, uint64_t value = 0) {
    return {kind, width, 0, value};
  }

  static constexpr WallMs kTwitterEpoch{1'288'834'974'657};
  static constexpr WallMs kVestaEpoch{1'420'041'600'000};

  static constexpr std::array<Named, 5> All() {
    return {{
        {"firn", Of({Bits(kZero, 1), Bits(kTime, 41), Bits(kMachine, 10), Bits(kSequence, 12)}, 1,
                    Layout::kDefaultEpoch)},
        {"twitter", Of({Bits(kZero, 1), Bits(kTime, 41), Bits(kMachine, 10), Bits(kSequence, 12)},
                       1, kTwitterEpoch)},
        {"vesta-max-peak", Of({Bits(kVersion, 1), Bits(kType, 1, 0), Bits(kMethod, 2),
                               Bits(kTime, 30), Bits(kSequence, 20), Bits(kMachine, 10)},
                              1000, kVestaEpoch)},
        {"vesta-min-granularity", Of({Bits(kVersion, 1), Bits(kType, 1, 1), Bits(kMethod, 2),
                                      Bits(kTime, 40), Bits(kSequence, 10), Bits(kMachine, 10)},
                                     1, kVestaEpoch)},
        {"js-safe",
         Of({Bits(kTime, 41), Bits(kMachine, 6), Bits(kSequence, 6)}, 1, Layout::kDefaultEpoch)},
    }};
  }
};

// All named layouts, the default first.
inline constexpr std::array<BuiltInLayouts::Named, 5> kBuiltInLayouts = BuiltInLayouts::All();

constexpr const Layout& Layout::Firn() { return kBuiltInLayouts[0].layout; }
constexpr const Layout& Layout::Twitter() { return kBuiltInLayouts[1].layout; }
constexpr const Layout& Layout::VestaMaxPeak() { return kBuiltInLayouts[2].layout; }
constexpr const Layout& Layout::VestaMinGranularity() { return kBuiltInLayouts[3].layout; }
constexpr const Layout& Layout::JsSafe() { return kBuiltInLayouts[4].layout; }

}  // namespace firn
