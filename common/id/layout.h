#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/field.h"

namespace firn {

// The fields that differ from id to id, and Vesta's const fields if a caller names them; absent
// fields get the layout's value.
struct IdFields {
  Tick tick;
  MachineId machine;
  uint64_t sequence = 0;
  std::optional<uint64_t> version{};
  std::optional<uint64_t> type{};
  std::optional<uint64_t> method{};

  friend bool operator==(const IdFields&, const IdFields&) = default;
};

// The division of an id's 64 bits into fields. A literal type: checked on construction, copied like
// an array, always valid, readable by any number of threads.
//
//     63                                                           0
//     +-+-----------------------------------------+----------+------------+
//     |0| time: ticks since the epoch (41)        |machine 10|sequence 12 |   "firn"
//     +-+-----------------------------------------+----------+------------+
//
// Fields fill an id from bit 0 up; bits above the highest field are zero. Only the field `version`
// may use bit 63, the sign.
//
// Sharp edge: Pack refuses values that do not fit; PackUnchecked trusts its caller. Only a
// sequencer, which has compared its fields with the layout's limits once, may use PackUnchecked.
class Layout {
 public:
  static constexpr int kFieldsMax = 7;        // each kind at most once
  static constexpr int kMachineBitsMax = 10;  // the registry has 1024 slots
  static constexpr int64_t kTickMsMax = 3'600'000;
  static constexpr WallMs kEpochEnd{4'102'444'800'000};      // epochs lie in 1970 to 2099
  static constexpr WallMs kDefaultEpoch{1'704'067'200'000};  // 2024-01-01
  static constexpr size_t kTextMax = 256;

  // Parses the name of a built-in layout, or a custom layout: fields from high to low, and an epoch
  // in any place, as in "time:31s machine:10 sequence:22 epoch:2024-01-01".
  //
  //   time:W, time:Wms, time:Ws, time:W@Nms, time:W@Ns     W bits, ticks of 1 ms, 1 s, N ms or s
  //   machine:W sequence:W zero:W                          W bits
  //   version:W=V type:W=V method:W=V                      W bits with the value V; 0 if absent
  //   epoch:2024-01-01, epoch:2010-11-04T01:42:54.657Z, epoch:1288834974657      2024 if absent
  //
  // kInvalid names all faults at once.
  static Result<Layout> Parse(std::string_view text);

  static constexpr const Layout& Firn();
  static constexpr const Layout& Twitter();
  static constexpr const Layout& VestaMaxPeak();
  static constexpr const Layout& VestaMinGranularity();
  static constexpr const Layout& JsSafe();

  // Returns the name of a built-in layout, or the canonical text of a custom one, which Parse
  // accepts. Two layouts are equal exactly if their texts are equal: the registry compares the
  // texts.
  std::string text() const;

  // --- arithmetic -------------------------------------------------------------------------------

  // Returns the id with these fields. kInvalid names each field that is out of range, each const
  // field that the layout lacks, and other values of `zero` and `type`. Never masks a value.
  Result<int64_t> Pack(const IdFields& fields) const;

  // Returns every field of `id`, including the layout's const fields. kInvalid if `zero`, `type` or
  // a bit above the highest field has another value: then the id is not of this layout.
  Result<IdFields> Unpack(int64_t id) const;

  // Returns the bits of machine and const fields, which all ids of a claim share. Aborts if machine
  // or method does not fit. A layout without a method field ignores the method.
  constexpr uint64_t BaseBits(MachineId machine, uint64_t method) const {
    if (!machine_.Holds(machine.value())) Die("a machine id is wider than its field");
    if (method_.width > 0 && !method_.Holds(method)) Die("a method is wider than its field");
    return const_bits_ | (method_.width > 0 ? method_.Place(method) : 0) |
           machine_.Place(machine.value());
  }
  constexpr int64_t PackUnchecked(uint64_t base_bits, Tick tick, uint64_t sequence) const {
    return static_cast<int64_t>(base_bits | time_.Place(static_cast<uint64_t>(tick.count())) |
                                sequence_.Place(sequence));
  }

  // --- fields -----------------------------------------------------------------------------------

  constexpr const Field& time() const { return time_; }
  constexpr const Field& machine() const { return machine_; }
  constexpr const Field& sequence() const { return sequence_; }
  // Returns the fields from high to low, without the zero bits above the highest field.
  constexpr std::span<const Field> fields() const {
    return {fields_.data(), static_cast<size_t>(field_count_)};
  }
  // Returns null if the layout has no such field.
  constexpr const Field* Find(FieldKind kind) const {
    for (const Field& field : fields()) {
      if (field.kind == kind) return &field;
    }
    return nullptr;
  }

  constexpr uint64_t ids_per_tick() const { return sequence_.max() + 1; }
  constexpr uint32_t machines() const { return static_cast<uint32_t>(machine_.max()) + 1; }
  // Returns the difference of two consecutive ids of one machine and tick.
  constexpr int64_t stride() const { return int64_t{1} << sequence_.shift; }
  constexpr int64_t tick_ms() const { return tick_ms_; }
  constexpr WallMs epoch() const { return epoch_; }

  // --- time -------------------------------------------------------------------------------------

  // Returns the tick that contains `t`; negative before the epoch.
  constexpr Tick TickAt(WallMs t) const {
    const int64_t ms = SinceEpoch(t);
    if (tick_ms_ == 1) return Tick(ms);
    return Tick(ms / tick_ms_ - (ms % tick_ms_ < 0 ? 1 : 0));
  }
  // Returns the first tick that starts at or after `t`.
  constexpr Tick FirstTickFrom(WallMs t) const {
    const int64_t ms = SinceEpoch(t);
    if (tick_ms_ == 1) return Tick(ms);
    return Tick(ms / tick_ms_ + (ms % tick_ms_ > 0 ? 1 : 0));
  }
  // `tick` must be in the calendar, as are all ticks of the time field and the one after them.
  constexpr WallMs StartOf(Tick tick) const {
    return epoch_ + Milliseconds(tick.count() * tick_ms_);
  }
  // Returns the last tick that fits in the time field.
  constexpr Tick last_tick() const { return Tick(static_cast<int64_t>(time_.max())); }
  // Returns the time at which the time field overflows: the end of the last tick.
  constexpr WallMs end() const { return StartOf(last_tick() + 1); }

  friend constexpr bool operator==(const Layout&, const Layout&) = default;

 private:
  friend struct BuiltInLayouts;
  friend class LayoutParser;

  // `high_to_low` must be valid (LayoutParser, or a built-in layout); computes the shifts.
  constexpr Layout(std::span<const Field> high_to_low, int64_t tick_ms, WallMs epoch);

  constexpr int64_t SinceEpoch(WallMs t) const {
    int64_t ms = 0;
    // Saturates: only a damaged record contains such a time.
    if (__builtin_sub_overflow(t.ms(), epoch_.ms(), &ms)) return INT64_MIN;
    return ms;
  }

  Field time_, machine_, sequence_;  // copies, so that the arithmetic needs no search
  Field method_;                     // width 0 if the layout has none
  uint64_t const_bits_ = 0;          // all const fields except method, in place
  uint64_t fixed_mask_ = 0;          // the bits that are the same in every id of this layout
  int64_t tick_ms_ = 1;
  WallMs epoch_;
  int field_count_ = 0;
  std::array<Field, kFieldsMax> fields_{};
};

}  // namespace firn

#include "common/id/layout_built_in.h"  // IWYU pragma: export
