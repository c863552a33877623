#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/time/civil_time.h"

namespace firn {

// How far the clocks of a place are ahead of UTC, at any moment. A value, cheap to copy, readable
// by any number of threads; the process's TZ is neither read nor changed.
//
// Sharp edge: a zone is what the machine's zone files say when it is loaded. Two servers with files
// of different years may show different dates for one moment, so a text's date is for people; only
// its id is unique.
class TimeZone {
 public:
  static constexpr size_t kNameMax = 64;
  static constexpr size_t kFileBytesMax = size_t{256} * 1024;

  // What clocks show from some moment on.
  struct LocalType {
    std::chrono::seconds offset{};  // ahead of UTC
    bool is_dst = false;
    std::string abbreviation;  // "CEST"

    friend bool operator==(const LocalType&, const LocalType&) = default;
  };

  // What a zone file or a rule amounts to. Implementations are immutable.
  class Rules {
   public:
    virtual ~Rules() = default;
    virtual const LocalType& At(std::chrono::sys_seconds t) const = 0;
  };

  static TimeZone Utc();

  // "UTC", "Z", a fixed offset such as "+08:00", or the name of a zone file such as "Asia/Shanghai"
  // below `folder`. kInvalid for a name that could not be one or leaves the folder, kNotFound when
  // there is no such zone, kCorrupt when its file is not a sound zone file.
  static Result<TimeZone> Load(std::string_view name,
                               const std::string& folder = "/usr/share/zoneinfo");

  const std::string& name() const { return name_; }

  // The clock's state at `t`; before the first change that the file knows, its first state.
  const LocalType& At(WallMs t) const;
  // What the clocks show at `t`, which must be in the calendar.
  CivilTime CivilAt(WallMs t) const { return firn::CivilAt(t, At(t).offset); }

 private:
  TimeZone(std::string name, std::shared_ptr<const Rules> rules)
      : name_(std::move(name)), rules_(std::move(rules)) {}

  std::string name_;
  std::shared_ptr<const Rules> rules_;
};

}  // namespace firn
