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

// The fields that differ from one id to the next, and Vesta's const fields where a caller names
// them; absent ones take the layout's own value.
struct IdFields {
  Tick tick;
  MachineId machine;
  uint64_t sequence = 0;
  std::optional<uint64_t> version{};
  std::optional<uint64_t> type{};
  std::optional<uint64_t> method{};

  friend bool operator==(const IdFields&, const IdFields&) = default;
};

// How an id's 64 bits are cut into fields. A literal type: checked when it is made, copied like an
// array, never wrong afterwards, readable by any number of threads.
//
//     63                                                           0
//     +-+-----------------------------------------+----------+------------+
//     |0| time: ticks since the epoch (41)        |machine 10|sequence 12 |   "firn"
//     +-+-----------------------------------------+----------+------------+
//
// Fields fill an id from bit 0 up; bits above the highest field are zero. Bit 63, the sign, is
// never a field's unless that field is `version`.
//
// Sharp edge: Pack refuses what does not fit, PackUnchecked trusts its caller. Only a sequencer,
// which has compared its fields with the layout's limits once, may use the second.
class Layout {
 public:
  static constexpr int kFieldsMax = 7;        // each kind at most once
  static constexpr int kMachineBitsMax = 10;  // what the registry has slots for
  static constexpr int64_t kTickMsMax = 3'600'000;
  static constexpr WallMs kEpochEnd{4'102'444'800'000};      // epochs lie in 1970 to 2099
  static constexpr WallMs kDefaultEpoch{1'704'067'200'000};  // 2024-01-01
  static constexpr size_t kTextMax = 256;

  // A built-in layout by name, or a custom one: fields from high to low, a tick and an epoch in any
  // place, as in "time:31s machine:10 sequence:22 epoch:2024-01-01".
  //
  //   time:W, time:Wms, time:Ws, time:W@Nms, time:W@Ns     W bits, ticks of 1 ms, 1 s, N ms or s
  //   machine:W sequence:W zero:W                          W bits
  //   version:W=V type:W=V method:W=V                      W bits that hold V; 0 when not given
  //   epoch:2024-01-01, epoch:2010-11-04T01:42:54.657Z, epoch:1288834974657      2024 if absent
  //
  // Refused with every fault named at once.
  static Result<Layout> Parse(std::string_view text);

  static constexpr const Layout& Firn();
  static constexpr const Layout& Twitter();
  static constexpr const Layout& VestaMaxPeak();
  static constexpr const Layout& VestaMinGranularity();
  static constexpr const Layout& JsSafe();

  // The name of a built-in layout, or the text of a custom one in its one canonical spelling, which
  // Parse reads back. Equal layouts have equal texts and different ones different texts: the
  // registry compares them.
  std::string text() const;

  // --- arithmetic -------------------------------------------------------------------------------

  // The id of these fields. Each field out of its range is named and refused, never masked; so is a
  // value for a const field that the layout lacks, or other than its own for `zero` and `type`.
  Result<int64_t> Pack(const IdFields& fields) const;

  // Every field of `id`, const fields included where the layout has them. kInvalid when `zero`,
  // `type` or a bit above the highest field does not hold its value: no such id is of this layout.
  Result<IdFields> Unpack(int64_t id) const;

  // The bits of machine and const fields, which one claim's ids share. Ends the process for a
  // machine or method beyond its field. A layout without a method field takes no notice of it.
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

  // --- what it holds ----------------------------------------------------------------------------

  constexpr const Field& time() const { return time_; }
  constexpr const Field& machine() const { return machine_; }
  constexpr const Field& sequence() const { return sequence_; }
  // High to low; without the zero bits above the highest field.
  constexpr std::span<const Field> fields() const {
    return {fields_.data(), static_cast<size_t>(field_count_)};
  }
  // Null when the layout has no such field.
  constexpr const Field* Find(FieldKind kind) const {
    for (const Field& field : fields()) {
      if (field.kind == kind) return &field;
    }
    return nullptr;
  }

  constexpr uint64_t ids_per_tick() const { return sequence_.max() + 1; }
  constexpr uint32_t machines() const { return static_cast<uint32_t>(machine_.max()) + 1; }
  // How far apart two consecutive ids of one machine and tick are.
  constexpr int64_t stride() const { return int64_t{1} << sequence_.shift; }
  constexpr int64_t tick_ms() const { return tick_ms_; }
  constexpr WallMs epoch() const { return epoch_; }

  // --- time -------------------------------------------------------------------------------------

  // The tick that `t` lies in, rounded down; negative before the epoch.
  constexpr Tick TickAt(WallMs t) const {
    const int64_t ms = SinceEpoch(t);
    if (tick_ms_ == 1) return Tick(ms);
    return Tick(ms / tick_ms_ - (ms % tick_ms_ < 0 ? 1 : 0));
  }
  // The first whole tick at or after `t`.
  constexpr Tick FirstTickFrom(WallMs t) const {
    const int64_t ms = SinceEpoch(t);
    if (tick_ms_ == 1) return Tick(ms);
    return Tick(ms / tick_ms_ + (ms % tick_ms_ > 0 ? 1 : 0));
  }
  // `tick` must be of the calendar: any that the time field can hold, and the one after, is.
  constexpr WallMs StartOf(Tick tick) const {
    return epoch_ + Milliseconds(tick.count() * tick_ms_);
  }
  // The last tick that the time field can hold.
  constexpr Tick last_tick() const { return Tick(static_cast<int64_t>(time_.max())); }
  // The moment at which the time field has run out: the end of the last tick.
  constexpr WallMs end() const { return StartOf(last_tick() + 1); }
  // Ok when ids can be made at `now`. kInvalid before the epoch, kExhausted when the time field
  // has run out.
  Status CheckCovers(WallMs now) const;

  friend constexpr bool operator==(const Layout&, const Layout&) = default;

 private:
  friend struct BuiltInLayouts;
  friend class LayoutParser;

  // `high_to_low` must be faultless (LayoutParser, or a built-in one); shifts are worked out here.
  constexpr Layout(std::span<const Field> high_to_low, int64_t tick_ms, WallMs epoch);

  constexpr int64_t SinceEpoch(WallMs t) const {
    int64_t ms = 0;
    // Only nonsense from a damaged record is so far away; it saturates.
    if (__builtin_sub_overflow(t.ms(), epoch_.ms(), &ms)) return INT64_MIN;
    return ms;
  }

  Field time_, machine_, sequence_;  // copies: the arithmetic finds them without a search
  Field method_;                     // width 0 when the layout has none
  uint64_t const_bits_ = 0;          // all const fields but method, in place
  uint64_t fixed_mask_ = 0;          // the bits that are the same in every id of this layout
  int64_t tick_ms_ = 1;
  WallMs epoch_;
  int field_count_ = 0;
  std::array<Field, kFieldsMax> fields_{};
};

}  // namespace firn

#include "common/id/layout_built_in.h"  // IWYU pragma: export
