#include "common/text/text_template.h"

#include <algorithm>
#include <limits>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"

namespace firn {
namespace {

// So far inside the calendar that no zone's offset leads outside.
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
  return Invalid(Cat("position ", at + 1, " of ", Quoted(text),
                     " is not what the tag's template writes there"));
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
  for (const Part& part : parts_) {
    if (const auto* literal = std::get_if<std::string>(&part)) {
      out += *literal;
    } else if (const auto* date = std::get_if<DateField>(&part)) {
      date->AppendTo(out, time);
    } else if (const auto* dated = std::get_if<DatedField>(&part)) {
      AppendTo(out, *dated, id);
    } else if (by_fields_) {
      fields_->AppendTo(out, id);
    } else {
      id_.AppendTo(out, id);
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

// Every part has its width.
Result<int64_t> TextTemplate::ParseDated(std::string_view text) const {
  if (text.size() != width_before_) return DoesNotFit(text, std::min(text.size(), width_before_));
  int64_t period = 0, count = 0;
  size_t at = 0;
  for (const Part& part : parts_) {
    size_t width = 0;
    if (const auto* literal = std::get_if<std::string>(&part)) {
      width = literal->size();
      if (text.substr(at, width) != *literal) return DoesNotFit(text, at);
    } else if (const auto* date = std::get_if<DateField>(&part)) {
      width = date->width();
      if (!AllDigits(text.substr(at, width))) return DoesNotFit(text, at);
    } else if (const auto* field = std::get_if<DatedField>(&part)) {
      width = WidthOf(*field);
      if (!AllDigits(text.substr(at, width))) return DoesNotFit(text, at);
      (*field == DatedField::kPeriod ? period : count) =
          ParseNumber<int64_t>(text.substr(at, width)).value_or(0);
    }
    at += width;
  }
  return period * dated_->scale() + count;
}

Result<int64_t> TextTemplate::ParseId(std::string_view text) const {
  if (by_count_) return ParseDated(text);
  if (text.size() > length_max() + TextForm::kPadMax) return DoesNotFit(text, length_max());
  const size_t fixed = width_before_ + width_after_;
  if (text.size() <= fixed) return DoesNotFit(text, text.size());
  std::string_view id_text;
  size_t at = 0;
  for (const Part& part : parts_) {
    if (std::holds_alternative<TextForm>(part)) {
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
  return by_fields_ ? fields_->ParseId(id_text) : firn::ParseId(id_.base, id_text);
}

size_t TextTemplate::length_max() const {
  // For a number that is not one of the tag's, the period gets the remaining characters.
  if (by_count_) return width_before_ + std::numeric_limits<int64_t>::digits10 + 1;
  const auto natural = static_cast<size_t>(id_.length_max());
  return width_before_ + width_after_ +
         (by_fields_ ? std::max(natural, fields_->width()) : natural);
}

}  // namespace firn
