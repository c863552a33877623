#include "common/text/text_template.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"

namespace firn {
namespace {

constexpr int kCenturyBegin = 2000, kCenturyEnd = 2100;  // years that %y can show

// Sets the time to the period's first day. Returns "?" and the period, to be written in place of
// all dates, if dates cannot show it: a period of another century for %y, or one that the calendar
// lacks. So no two periods have the same text.
std::string ReadPeriod(const DatedNumbers& numbers, int64_t period, bool by_century,
                       CivilTime& time) {
  const auto day = numbers.FirstDay(period);
  if (day) time.date = std::chrono::year_month_day{*day};
  const int year{time.date.year()};
  const bool shown = day && (!by_century || (year >= kCenturyBegin && year < kCenturyEnd));
  return shown ? "" : Cat("?", period);
}

// The period of a text's dates, by conversion; 0 if there is no such day.
int64_t PeriodIn(const DatedNumbers& numbers, const std::map<char, int>& parts) {
  using std::chrono::sys_days;
  const auto part = [&parts](char conversion, int otherwise) {
    const auto found = parts.find(conversion);
    return found == parts.end() ? otherwise : found->second;
  };
  const std::chrono::year year{part('Y', kCenturyBegin + part('y', 0))};
  const std::chrono::month month{static_cast<unsigned>(part('m', 1))};
  const std::chrono::day day{static_cast<unsigned>(part('d', 1))};
  std::chrono::year_month_day date{year, month, day};
  if (const int number = part('j', 0);
      number > 0 && !(parts.contains('m') && parts.contains('d'))) {
    date = sys_days{year / std::chrono::January / 1} + std::chrono::days(number - 1);
  }
  if (!date.ok()) return 0;
  const WallMs at(std::chrono::milliseconds(sys_days{date}.time_since_epoch()).count());
  return numbers.PeriodAt(at, TimeZone::Utc());
}

// So far inside the calendar that no zone's offset leads out of it.
constexpr WallMs kDatesBegin = kCalendarBegin + std::chrono::days(2);
constexpr WallMs kDatesEnd = kCalendarEnd - std::chrono::days(2);

void AppendDigits(std::string& out, size_t width, int number) {
  const size_t begin = out.size();
  out.append(width, '0');
  for (size_t i = out.size(); i > begin && number > 0; number /= 10) {
    out[--i] = static_cast<char>('0' + number % 10);
  }
}

bool AllDigits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Status DoesNotFit(std::string_view text, size_t at) {
  return Invalid(
      Cat("position ", at + 1, " of ", Quoted(text), " does not match the tag's template"));
}

}  // namespace

size_t TextTemplate::DateField::width() const {
  if (conversion == 'Y') return 4;
  return conversion == 'j' || conversion == 'L' ? 3 : 2;
}

void TextTemplate::DateField::AppendTo(std::string& out, const CivilTime& time) const {
  const auto& date = time.date;
  const auto number = [&]() -> int {
    switch (conversion) {
      case 'Y':
        return int{date.year()};
      case 'y':
        return int{date.year()} % 100;
      case 'm':
        return static_cast<int>(unsigned{date.month()});
      case 'd':
        return static_cast<int>(unsigned{date.day()});
      case 'j': {
        using std::chrono::sys_days;
        return static_cast<int>(
            (sys_days{date} - sys_days{date.year() / std::chrono::January / 1}).count() + 1);
      }
      case 'H':
        return time.hour;
      case 'M':
        return time.minute;
      case 'S':
        return time.second;
      default:
        return time.millisecond;
    }
  };
  AppendDigits(out, width(), number());
}

void TextTemplate::AppendTo(std::string& out, int64_t id, WallMs issued) const {
  CivilTime time;
  if (has_date_) time = zone_.CivilAt(std::clamp(issued, kDatesBegin, kDatesEnd));
  std::string period;  // replaces all dates
  if (by_count_ && !has_date_) {
    const bool by_century = std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
      const auto* date = std::get_if<DateField>(&part);
      return date != nullptr && date->conversion == 'y';
    });
    period = ReadPeriod(*dated_, dated_->PeriodOf(id), by_century, time);
  }
  bool dated_part = false;
  for (const Part& part : parts_) {
    if (const auto* literal = std::get_if<std::string>(&part)) {
      out += *literal;
    } else if (const auto* date = std::get_if<DateField>(&part)) {
      if (period.empty()) date->AppendTo(out, time);
      if (!std::exchange(dated_part, true)) out += period;
    } else if (const auto* dated = std::get_if<DatedField>(&part)) {
      AppendTo(out, *dated, id);
    } else {
      std::visit([&](const auto& notation) { notation.AppendTo(out, id); }, id_);
    }
  }
}

// A number that is not one of the tag's may be wider than expected: writes all of its digits.
void TextTemplate::AppendTo(std::string& out, DatedField field, int64_t id) const {
  const int64_t value = field == DatedField::kPeriod ? dated_->PeriodOf(id) : dated_->CountOf(id);
  const std::string digits = std::to_string(value);
  out.append(std::max(WidthOf(field), digits.size()) - digits.size(), '0');
  out += digits;
}

std::string TextTemplate::Format(int64_t id, WallMs issued) const {
  std::string text;
  AppendTo(text, id, issued);
  return text;
}

// Each part has a fixed width.
Result<int64_t> TextTemplate::ParseDated(std::string_view text) const {
  if (text.size() != width_before_) return DoesNotFit(text, std::min(text.size(), width_before_));
  int64_t period = 0, count = 0;
  size_t at = 0;
  std::map<char, int> date_parts;
  for (const Part& part : parts_) {
    size_t width = 0;
    if (const auto* literal = std::get_if<std::string>(&part)) {
      width = literal->size();
      if (text.substr(at, width) != *literal) return DoesNotFit(text, at);
    } else if (const auto* date = std::get_if<DateField>(&part)) {
      width = date->width();
      if (!AllDigits(text.substr(at, width))) return DoesNotFit(text, at);
      date_parts[date->conversion] = ParseNumber<int>(text.substr(at, width)).value_or(0);
    } else if (const auto* field = std::get_if<DatedField>(&part)) {
      width = WidthOf(*field);
      if (!AllDigits(text.substr(at, width))) return DoesNotFit(text, at);
      (*field == DatedField::kPeriod ? period : count) =
          ParseNumber<int64_t>(text.substr(at, width)).value_or(0);
    }
    at += width;
  }
  if (date_parts.empty() || has_date_) return period * dated_->scale() + count;
  const int64_t id = PeriodIn(*dated_, date_parts) * dated_->scale() + count;
  // The dates contradict each other, or do not exist.
  const std::string written = Format(id, WallMs());
  const auto differs = std::mismatch(text.begin(), text.end(), written.begin(), written.end());
  if (written == text) return id;
  return DoesNotFit(text, static_cast<size_t>(differs.first - text.begin()));
}

Result<int64_t> TextTemplate::ParseId(std::string_view text) const {
  if (by_count_) return ParseDated(text);
  if (text.size() > length_max() + TextForm::kPadMax) return DoesNotFit(text, length_max());
  const size_t fixed = width_before_ + width_after_;
  if (text.size() <= fixed) return DoesNotFit(text, text.size());
  std::string_view id_text;
  size_t at = 0;
  for (const Part& part : parts_) {
    if (std::holds_alternative<IdPart>(part)) {
      id_text = text.substr(at, text.size() - fixed);
      at += id_text.size();
    } else if (const auto* date = std::get_if<DateField>(&part)) {
      if (!AllDigits(text.substr(at, date->width()))) return DoesNotFit(text, at);
      at += date->width();
    } else {
      const std::string& literal = std::get<std::string>(part);
      if (!text.substr(at).starts_with(literal)) return DoesNotFit(text, at);
      at += literal.size();
    }
  }
  if (const auto* number = std::get_if<TextForm>(&id_)) {
    return firn::ParseId(number->base, id_text);
  }
  const auto* fields = std::get_if<FieldsText>(&id_);
  return fields != nullptr ? fields->ParseId(id_text) : std::get<Uuid7Text>(id_).ParseId(id_text);
}

size_t TextTemplate::length_max() const {
  // For a number that is not one of the tag's, the period gets the remaining characters.
  if (by_count_) return width_before_ + std::numeric_limits<int64_t>::digits10 + 1;
  const auto* number = std::get_if<TextForm>(&id_);
  const auto* fields = std::get_if<FieldsText>(&id_);
  size_t natural = static_cast<size_t>((number != nullptr ? *number : TextForm{}).length_max());
  if (number == nullptr) {
    natural = std::max(natural, fields != nullptr ? fields->width() : Uuid7Text::width());
  }
  return width_before_ + width_after_ + natural;
}

}  // namespace firn
