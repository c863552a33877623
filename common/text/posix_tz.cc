#include "common/text/posix_tz.h"

#include <string>

#include "common/base/parse.h"

namespace firn {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::year;

namespace {

constexpr bool IsLetter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

}  // namespace

// Parses a rule from its beginning. After the first mismatch every call fails.
class PosixTzParser {
 public:
  explicit PosixTzParser(std::string_view text) : rest_(text) {}

  Result<PosixTz> Parse() {
    PosixTz zone;
    zone.standard_.abbreviation = Name();
    // POSIX counts westward: "CET-1" is an hour ahead of UTC.
    zone.standard_.offset = -Time(24);
    if (!rest_.empty()) ParseSummer(zone);
    if (!ok_ || !rest_.empty()) return Corrupt("not a time zone rule");
    return zone;
  }

 private:
  void ParseSummer(PosixTz& zone) {
    TimeZone::LocalType summer{zone.standard_.offset + std::chrono::hours(1), true, Name()};
    if (!rest_.starts_with(',')) summer.offset = -Time(24);
    zone.summer_ = std::move(summer);
    zone.begin_ = ParseChange();
    zone.end_ = ParseChange();
  }

  PosixTz::Change ParseChange() {
    PosixTz::Change change;
    Expect(',');
    if (Take('M')) {
      change.month = static_cast<unsigned>(Number(1, 12));
      Expect('.');
      change.week = static_cast<unsigned>(Number(1, 5));
      Expect('.');
      change.weekday = static_cast<unsigned>(Number(0, 6));
    } else if (Take('J')) {
      change.kind = PosixTz::Change::Kind::kDayWithoutLeap;
      change.day = Number(1, 365);
    } else {
      change.kind = PosixTz::Change::Kind::kDayWithLeap;
      change.day = Number(0, 365);
    }
    if (Take('/')) change.time = Time(167);
    return change;
  }

  // "CET", or "<+08>" for names with digits and signs.
  std::string Name() {
    const bool quoted = Take('<');
    size_t n = 0;
    while (n < rest_.size() && (IsLetter(rest_[n]) || (quoted && IsNameSign(rest_[n])))) ++n;
    if (n < 3 || n > 15) Fail();
    std::string name(rest_.substr(0, n));
    rest_.remove_prefix(std::min(n, rest_.size()));
    if (quoted) Expect('>');
    return name;
  }
  static bool IsNameSign(char c) { return IsDigit(c) || c == '+' || c == '-'; }

  // "[+-]hh[:mm[:ss]]"
  seconds Time(int hours_max) {
    const bool minus = Take('-');
    if (!minus) Take('+');
    int total = Number(0, hours_max) * 3600;
    if (Take(':')) total += Number(0, 59) * 60;
    if (Take(':')) total += Number(0, 59);
    return seconds(minus ? -total : total);
  }

  int Number(int min, int max) {
    int number = 0;
    size_t n = 0;
    for (; n < rest_.size() && n < 3 && IsDigit(rest_[n]); ++n)
      number = number * 10 + rest_[n] - '0';
    rest_.remove_prefix(n);
    if (n == 0 || number < min || number > max) Fail();
    return number;
  }

  bool Take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void Expect(char c) {
    if (!Take(c)) Fail();
  }
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

Result<PosixTz> PosixTz::Parse(std::string_view text) { return PosixTzParser(text).Parse(); }

local_seconds PosixTz::Change::In(year y) const {
  const local_days new_year{y / std::chrono::January / 1};
  switch (kind) {
    case Kind::kMonthWeekDay: {
      const std::chrono::weekday day_of_week(weekday);
      const auto month_of_year = y / std::chrono::month(month);
      if (week == 5) return local_days{month_of_year / day_of_week[std::chrono::last]} + time;
      return local_days{month_of_year / day_of_week[week]} + time;
    }
    case Kind::kDayWithoutLeap:  // 1 to 365; February 29 is not counted
      return new_year + days(day - 1 + (y.is_leap() && day > 59 ? 1 : 0)) + time;
    case Kind::kDayWithLeap:
      return new_year + days(day) + time;
  }
  return new_year;
}

const TimeZone::LocalType& PosixTz::At(std::chrono::sys_seconds t) const {
  if (!summer_) return standard_;
  const local_seconds local((t + standard_.offset).time_since_epoch());
  const year y = std::chrono::year_month_day(std::chrono::floor<days>(local)).year();
  // Both moments on the clock of standard time.
  const local_seconds begin = begin_.In(y);
  const local_seconds end = end_.In(y) - (summer_->offset - standard_.offset);
  const bool summer =
      begin < end ? begin <= local && local < end : !(end <= local && local < begin);
  return summer ? *summer_ : standard_;
}

}  // namespace firn
