#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/text_form.h"
#include "common/text/dated_numbers.h"
#include "common/text/fields_text.h"
#include "common/text/time_zone.h"

namespace firn {

// How a tag's ids look as text: the id in one of its forms among letters and dates, such as
// "{date:%y%m%d}{id:09}" or "INV-{id:base32}". A value, readable by any number of threads.
//
//   {id} {id:09} {id:base62} {id:base36} {id:base32} {id:base32,013}
//                  the id, exactly once; 09 pads to 9
//   {id:fields}    the same as time in UTC, machine id and sequence: 20261122134501123-0005-0042
//   {date:...}     the issue time in the tag's zone: %Y %y %m %d %j %H %M %S, %L for milliseconds,
//                  %% for a percent sign, other characters as they are; at most kDatesMax in all
//   {period} {count}           of a dated tag, in place of {id}: 20261122 and 000001, once each
//   {{ }}          braces; everything else stands for itself
//
// Two ids never have the same text, whatever their times. Why: a template that Parse accepts has
// the id exactly once, and every other part has a width that depends on neither id nor time (Parse
// knows no other date conversions; names of months or zones, whose widths vary, are refused). Let P
// characters stand before the id and S after it. Then the id's own text is what is left of any
// output without its first P and last S characters, whether the id's text is padded, has outgrown
// its padding or stands next to a date's digits; and an id has one text in a form that no other id
// has. So the output determines the id. ParseId is this argument as code.
// Period and count have widths of their own, and together they are the id.
//
// Sharp edge: that holds for one template. Texts of two templates may meet, so a tag's template is
// fixed once its first id is out. Nor does it hold where somebody compares texts without regard to
// case: base 62 has both cases.
class TextTemplate {
 public:
  static constexpr size_t kTextMax = 256;
  static constexpr int kDatesMax = 32;  // date conversions

  // kInvalid names everything that is wrong with `text`, a text that could repeat included. An
  // empty text is "{id}".
  // `dated`: of a tag whose numbers have a period and a count, which only its template may name.
  // `layout`: of a tag whose ids have fields, which only its template may show.
  static Result<TextTemplate> Parse(std::string_view text, TimeZone zone = TimeZone::Utc(),
                                    std::optional<DatedNumbers> dated = {},
                                    std::optional<Layout> layout = {});

  // `issued` is moved to the nearest day well inside the calendar when it is outside: a date of
  // that kind is nonsense, but the text must keep its width.
  void AppendTo(std::string& out, int64_t id, WallMs issued) const;
  std::string Format(int64_t id, WallMs issued) const;

  // The id of a text that this template could have written, whatever its date. Zeros in front of
  // the id are not counted. kInvalid names the position, from 1, that does not fit.
  Result<int64_t> ParseId(std::string_view text) const;

  // The longest text that AppendTo writes.
  size_t length_max() const;

 private:
  friend class TextTemplateParser;

  // A date conversion: one of "YymdjHMSL".
  struct DateField {
    char conversion = 0;
    size_t width() const;
    void AppendTo(std::string& out, const CivilTime& time) const;
  };
  enum class DatedField : uint8_t { kPeriod, kCount };
  using Part = std::variant<std::string, DateField, TextForm, DatedField>;

  TextTemplate(TimeZone zone, std::optional<DatedNumbers> dated, std::optional<Layout> layout)
      : dated_(dated), zone_(std::move(zone)) {
    if (layout) fields_.emplace(*layout);
  }

  size_t WidthOf(DatedField field) const {
    const int width = field == DatedField::kPeriod ? dated_->period_width() : dated_->digits();
    return static_cast<size_t>(width);
  }
  void AppendTo(std::string& out, DatedField field, int64_t id) const;
  Result<int64_t> ParseDated(std::string_view text) const;

  std::vector<Part> parts_;
  TextForm id_;              // the form of the one part that is the id
  size_t width_before_ = 0;  // of the parts before the id; of all of them when none is the id
  size_t width_after_ = 0;
  bool has_date_ = false;
  bool by_count_ = false;   // period and count stand in place of the id
  bool by_fields_ = false;  // the id is written as its fields
  std::optional<DatedNumbers> dated_;
  std::optional<FieldsText> fields_;
  TimeZone zone_;
};

}  // namespace firn
