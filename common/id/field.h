#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace firn {

// The kinds of fields of an id. `zero` and `type` are the same in every id of a layout; `version`
// and `method` have the layout's value unless a caller gives another.
enum class FieldKind : uint8_t { kZero, kVersion, kType, kMethod, kTime, kMachine, kSequence };

inline constexpr int kFieldKinds = 7;

constexpr std::string_view FieldName(FieldKind kind) {
  switch (kind) {
    case FieldKind::kZero:
      return "zero";
    case FieldKind::kVersion:
      return "version";
    case FieldKind::kType:
      return "type";
    case FieldKind::kMethod:
      return "method";
    case FieldKind::kTime:
      return "time";
    case FieldKind::kMachine:
      return "machine";
    case FieldKind::kSequence:
      return "sequence";
  }
  return "";
}

// Returns nullopt if no field has that name.
constexpr std::optional<FieldKind> FieldKindOf(std::string_view name) {
  for (int i = 0; i < kFieldKinds; ++i) {
    if (FieldName(static_cast<FieldKind>(i)) == name) return static_cast<FieldKind>(i);
  }
  return std::nullopt;
}

// A group of neighbouring bits in an id. A literal value; its layout has checked that width + shift
// is at most 64 and that `value` fits.
struct Field {
  FieldKind kind = FieldKind::kZero;
  int width = 0;       // bits
  int shift = 0;       // number of bits below it
  uint64_t value = 0;  // default value of a const field

  // Returns the largest value of the field; 0 for a field without bits.
  constexpr uint64_t max() const { return width == 0 ? 0 : ~uint64_t{0} >> (64 - width); }
  constexpr bool Holds(uint64_t number) const { return number <= max(); }
  // Returns the field's value in `id`.
  constexpr uint64_t In(uint64_t id) const { return (id >> shift) & max(); }
  // Returns `number` shifted to its place in an id. It must fit.
  // A field has bits, so its shift is below 64.
  // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
  constexpr uint64_t Place(uint64_t number) const { return number << shift; }
  constexpr uint64_t mask() const { return Place(max()); }

  constexpr bool is_const() const { return kind < FieldKind::kTime; }
  constexpr bool is_fixed() const { return kind == FieldKind::kZero || kind == FieldKind::kType; }

  friend constexpr bool operator==(const Field&, const Field&) = default;
};

}  // namespace firn
