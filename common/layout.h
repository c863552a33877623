#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"
#include "common/units.h"

namespace firn {

// How an id's 64 bits are cut into fields. A value: checked when it is made, cheap to copy,
// thread-compatible, and never wrong afterwards.
//
//     63                                                           0
//     +-+-----------------------------------------+----------+------------+
//     |0| time: ticks since the epoch (41)        |machine 10|sequence 12 |   "firn"
//     +-+-----------------------------------------+----------+------------+
//
// Sharp edge: Pack refuses what does not fit, PackUnchecked trusts its caller. Only a sequencer,
// which has compared its fields with the layout's limits once, may use the second.

enum class FieldKind : uint8_t { kConst, kTime, kMachine, kSequence };

struct Field {
  FieldKind kind = FieldKind::kConst;
  int width = 0;          // bits
  int shift = 0;          // bits below it
  uint64_t value = 0;     // of a const field: what it holds unless a caller says otherwise
  std::string_view name;  // "time", "machine", "sequence", "zero", "version", "type", "method"

  constexpr uint64_t max() const { return width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }
  constexpr uint64_t In(uint64_t id) const { return (id >> shift) & max(); }
};

// The fields that differ from one id to the next. The const fields of most layouts never change;
// Vesta's version, type and method may, so they can be given.
struct IdFields {
  Tick tick;
  MachineId machine;
  uint64_t sequence = 0;
  std::optional<uint64_t> version{};
  std::optional<uint64_t> type{};
  std::optional<uint64_t> method{};

  friend bool operator==(const IdFields&, const IdFields&) = default;
};

class Layout {
 public:
  static constexpr int kFieldsMax = 8;

  // A built-in layout by name, or a custom one such as
  // "time:31s machine:10 sequence:22 epoch:2024-01-01". Refused with every fault named at once.
  static Result<Layout> Parse(std::string_view text);

  static const Layout& Firn();
  static const Layout& Twitter();
  static const Layout& VestaMaxPeak();
  static const Layout& VestaMinGranularity();
  static const Layout& JsSafe();

  // The name of a built-in layout, or the text of a custom one in its one canonical spelling.
  // Equal layouts have equal texts: the registry compares them.
  const std::string& text() const { return text_; }

  // --- arithmetic -------------------------------------------------------------------------------

  // The id of these fields. A field out of its range is refused, never masked. An absent const
  // field takes the layout's own value; one that the layout does not have is refused.
  Result<int64_t> Pack(const IdFields& fields) const;

  // Every field of `id`, const fields included where the layout has them. Refused when a const
  // field that cannot vary ("zero") does not hold its value: no such id is of this layout.
  Result<IdFields> Unpack(int64_t id) const;

  // The bits of machine and const fields, which one claim's ids share.
  constexpr uint64_t BaseBits(MachineId machine, uint64_t method) const {
    return const_bits_ | (method << method_shift_) | (uint64_t{machine.value()} << machine_.shift);
  }
  constexpr int64_t PackUnchecked(uint64_t base_bits, Tick tick, uint64_t sequence) const {
    return static_cast<int64_t>(base_bits | (static_cast<uint64_t>(tick.count()) << time_.shift) |
                                (sequence << sequence_.shift));
  }

  // --- what it holds ----------------------------------------------------------------------------

  constexpr const Field& time() const { return time_; }
  constexpr const Field& machine() const { return machine_; }
  constexpr const Field& sequence() const { return sequence_; }
  // Empty when the layout has no such field. `name` is one of IdFields' const fields or "zero".
  std::optional<Field> Const(std::string_view name) const;

  constexpr uint64_t ids_per_tick() const { return sequence_.max() + 1; }
  constexpr uint32_t machines() const { return static_cast<uint32_t>(machine_.max()) + 1; }
  // How far apart two consecutive ids of one machine and tick are.
  constexpr int64_t stride() const { return int64_t{1} << sequence_.shift; }
  constexpr int64_t tick_ms() const { return tick_ms_; }
  constexpr WallMs epoch() const { return epoch_; }

  // --- time -------------------------------------------------------------------------------------

  // The tick that `t` lies in, rounded down; negative before the epoch.
  constexpr Tick TickAt(WallMs t) const {
    const int64_t ms = t.ms() - epoch_.ms();
    return Tick(ms >= 0 ? ms / tick_ms_ : -((-ms + tick_ms_ - 1) / tick_ms_));
  }
  // The first whole tick at or after `t`.
  constexpr Tick FirstTickFrom(WallMs t) const { return TickAt(t + Milliseconds(tick_ms_ - 1)); }
  constexpr WallMs StartOf(Tick tick) const {
    return epoch_ + Milliseconds(tick.count() * tick_ms_);
  }
  // The last tick that the time field can hold.
  constexpr Tick last_tick() const { return Tick(static_cast<int64_t>(time_.max())); }
  // The moment at which the time field has run out: the end of the last tick.
  constexpr WallMs end() const { return StartOf(last_tick() + 1); }

  friend bool operator==(const Layout& a, const Layout& b) { return a.text_ == b.text_; }

 private:
  Layout() = default;

  std::string text_;
  std::array<Field, kFieldsMax> fields_{};
  int field_count_ = 0;
  Field time_, machine_, sequence_;
  uint64_t const_bits_ = 0;  // all const fields but method, in place
  int method_shift_ = 0;
  int64_t tick_ms_ = 1;
  WallMs epoch_;
};

}  // namespace firn
