#include "common/time/civil_time.h"

#include <cstdio>

#include "common/base/cat.h"
#include "common/base/quote.h"

namespace firn {
namespace {

using std::chrono::days;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::year_month_day;

using UtcTime = std::chrono::sys_time<Milliseconds>;

// Parses a text from its beginning. After the first mismatch every call fails.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int Digits(size_t count) {
    int value = 0;
    if (rest_.size() < count) return Fail();
    for (size_t i = 0; i < count; ++i) {
      if (rest_[i] < '0' || rest_[i] > '9') return Fail();
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }

  char OneOf(std::string_view set) {
    if (rest_.empty() || set.find(rest_[0]) == set.npos) return static_cast<char>(Fail());
    const char taken = rest_[0];
    rest_.remove_prefix(1);
    return taken;
  }

  // ".5" is 500; ignores digits below a millisecond. Absent: 0.
  int Fraction() {
    if (!rest_.starts_with('.')) return 0;
    rest_.remove_prefix(1);
    int ms = Digits(1) * 100;
    for (int unit = 10; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; unit /= 10) {
      ms += (rest_[0] - '0') * unit;
      rest_.remove_prefix(1);
    }
    return ms;
  }

  bool done() const { return ok_ && rest_.empty(); }
  bool ok() const { return ok_; }

 private:
  int Fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

year_month_day ScanDate(Scanner& in) {
  const int year = in.Digits(4);
  in.OneOf("-");
  const int month = in.Digits(2);
  in.OneOf("-");
  const int day = in.Digits(2);
  return {std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
          std::chrono::day(static_cast<unsigned>(day))};
}

seconds ScanOffset(Scanner& in, bool& in_range) {
  const char sign = in.OneOf("Zz+-");
  if (sign != '+' && sign != '-') return {};
  const int hours = in.Digits(2);
  in.OneOf(":");
  const int minutes = in.Digits(2);
  in_range = hours < 24 && minutes < 60;
  const seconds offset(hours * 3600 + minutes * 60);
  return sign == '+' ? offset : -offset;
}

Status NotATime(std::string_view text) {
  return Invalid(Quoted(text) + " is not a date and time such as 2024-01-01T00:00:00Z");
}

}  // namespace

CivilTime CivilAt(WallMs t, seconds offset) {
  const UtcTime local(Milliseconds(t.ms()) + offset);
  const sys_days day = std::chrono::floor<days>(local);
  const auto ms = static_cast<int>((local - day).count());
  return {year_month_day(day), ms / 3'600'000, ms / 60'000 % 60, ms / 1000 % 60, ms % 1000};
}

WallMs FromCivil(const CivilTime& civil, seconds offset) {
  const Milliseconds in_day(((civil.hour * 60 + civil.minute) * 60 + civil.second) * 1000 +
                            civil.millisecond);
  const UtcTime local = sys_days{civil.date} + in_day;
  return WallMs((local.time_since_epoch() - offset).count());
}

std::string FormatRfc3339(WallMs t) {
  if (!InCalendar(t)) return Cat(t.ms(), " ms");
  const CivilTime c = CivilAt(t);
  char text[32];
  const int length = std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", int{c.date.year()},
      unsigned{c.date.month()}, unsigned{c.date.day()}, c.hour, c.minute, c.second, c.millisecond);
  return std::string(text, static_cast<size_t>(length));
}

Result<WallMs> ParseRfc3339(std::string_view text) {
  Scanner in(text);
  CivilTime civil;
  bool offset_in_range = true;
  civil.date = ScanDate(in);
  in.OneOf("Tt ");
  civil.hour = in.Digits(2);
  in.OneOf(":");
  civil.minute = in.Digits(2);
  in.OneOf(":");
  civil.second = in.Digits(2);
  civil.millisecond = in.Fraction();
  const seconds offset = ScanOffset(in, offset_in_range);
  if (!in.done()) return NotATime(text);
  if (!civil.date.ok() || civil.hour > 23 || civil.minute > 59 || civil.second > 59 ||
      !offset_in_range) {
    return NotATime(text);
  }
  const WallMs t = FromCivil(civil, offset);
  if (!InCalendar(t)) return NotATime(text);
  return t;
}

Result<WallMs> ParseDate(std::string_view text) {
  Scanner in(text);
  CivilTime civil;
  civil.date = ScanDate(in);
  if (!in.done() || !civil.date.ok()) {
    return Invalid(Quoted(text) + " is not a date such as 2024-01-01");
  }
  return FromCivil(civil);
}

}  // namespace firn
