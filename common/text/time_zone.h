#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/time/civil_time.h"

namespace firn {

// A time zone: the offset from UTC at any time. A value, cheap to copy, readable by any number of
// threads; it neither reads nor changes the process's TZ.
//
// Sharp edge: the zone comes from the machine's zone files at the time of loading. Two servers with
// files of different years may show different dates for the same time, so a date in a text is for
// people; only the id is unique.
class TimeZone {
 public:
  static constexpr size_t kNameMax = 64;
  static constexpr size_t kFileBytesMax = size_t{256} * 1024;

  // The offset that applies from some time on.
  struct LocalType {
    std::chrono::seconds offset{};  // ahead of UTC
    bool is_dst = false;
    std::string abbreviation;  // "CEST"

    friend bool operator==(const LocalType&, const LocalType&) = default;
  };

  // The interface of zone files and rules. Implementations are immutable.
  class Rules {
   public:
    virtual ~Rules() = default;
    virtual const LocalType& At(std::chrono::sys_seconds t) const = 0;
  };

  static TimeZone Utc();

  // Loads "UTC", "Z", a fixed offset such as "+08:00", or a zone file below `folder` such as
  // "Asia/Shanghai". kInvalid for an invalid name, or one that leaves the folder; kNotFound if
  // there is no such zone; kCorrupt if its file is damaged.
  static Result<TimeZone> Load(std::string_view name,
                               const std::string& folder = "/usr/share/zoneinfo");

  const std::string& name() const { return name_; }

  // Returns the offset at `t`; before the first change in the file, its first offset.
  const LocalType& At(WallMs t) const;
  // Returns the local time at `t`, which must be in the calendar.
  CivilTime CivilAt(WallMs t) const { return firn::CivilAt(t, At(t).offset); }

 private:
  TimeZone(std::string name, std::shared_ptr<const Rules> rules)
      : name_(std::move(name)), rules_(std::move(rules)) {}

  std::string name_;
  std::shared_ptr<const Rules> rules_;
};

}  // namespace firn
