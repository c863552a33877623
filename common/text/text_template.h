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
#include "common/text/uuid7_text.h"

namespace firn {

// The text form of a tag's ids: the id in one of its notations among letters and dates, such as
// "{date:%y%m%d}{id:09}" or "INV-{id:base32}". A value, readable by any number of threads.
//
//   {id} {id:09} {id:base62} {id:base36} {id:base32} {id:base32,013}
//                  the id, exactly once; 09 pads to 9
//   {id:fields}    the id as time in UTC, machine id and sequence: 20261122134501123-0005-0042
//   {id:uuid7}     the id as a UUID of version 7: 016d0435-d8e2-7103-afa8-d52109f5e000
//   {date:...}     the issue time in the tag's zone: %Y %y %m %d %j %H %M %S, %L for milliseconds,
//                  %% for a percent sign, other characters unchanged; at most kDatesMax in all
//   {period} {count}           for dated tags, instead of {id}: 20261122 and 000001, once each;
//                  {date:...} can replace {period} if it determines it, such as {date:%y%m%d}
//   {{ }}          braces; all other text is copied
//
// Two ids never have the same text, whatever their times. Proof: a template that Parse accepts has
// the id exactly once, and the width of every other part depends on neither id nor time (Parse
// refuses other date conversions, such as names of months or zones, whose widths vary). Let P
// characters precede the id and S follow it. Then the id's own text is the output without its first
// P and last S characters, whether the id's text is padded, longer than its padding, or next to
// a date's digits. In each notation an id has one text, which no other id has. So the output
// determines the id. ParseId implements this argument.
// Period and count have fixed widths, and together they are the id. Dates that replace the period
// show it, not the issue time; %y covers 2000 to 2099, and a period that they cannot show is
// written as "?" and its digits.
//
// Sharp edge: this holds for one template. Texts of two templates may be equal, so a tag's template
// is fixed once its first id may have been issued. Nor does it hold if texts are compared without
// regard to case: base 62 uses both cases.
class TextTemplate {
 public:
  static constexpr size_t kTextMax = 256;
  static constexpr int kDatesMax = 32;  // date conversions

  // kInvalid lists all faults of `text`, including texts that could repeat. An empty text means
  // "{id}".
  // `dated`: for tags whose numbers have a period and a count; permits {period} and {count}.
  // `layout`: for tags whose ids have fields; permits {id:fields} and {id:uuid7}.
  static Result<TextTemplate> Parse(std::string_view text, TimeZone zone = TimeZone::Utc(),
                                    std::optional<DatedNumbers> dated = {},
                                    std::optional<Layout> layout = {});

  // If `issued` is outside the calendar, it is moved to the nearest day well inside: such a date is
  // meaningless, but the text must keep its width.
  void AppendTo(std::string& out, int64_t id, WallMs issued) const;
  std::string Format(int64_t id, WallMs issued) const;

  // Returns the id in a text of this template, with any date. Ignores leading zeros of the id.
  // kInvalid names the position, from 1, of the first mismatch.
  Result<int64_t> ParseId(std::string_view text) const;

  // Returns the length of the longest text that AppendTo writes.
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
  struct IdPart {};  // the id, in the notation of id_
  using Part = std::variant<std::string, DateField, IdPart, DatedField>;

  TextTemplate(TimeZone zone, std::optional<DatedNumbers> dated)
      : dated_(dated), zone_(std::move(zone)) {}

  size_t WidthOf(DatedField field) const {
    const int width = field == DatedField::kPeriod ? dated_->period_width() : dated_->digits();
    return static_cast<size_t>(width);
  }
  void AppendTo(std::string& out, DatedField field, int64_t id) const;
  Result<int64_t> ParseDated(std::string_view text) const;

  std::vector<Part> parts_;
  std::variant<TextForm, FieldsText, Uuid7Text> id_;  // notation of the id
  size_t width_before_ = 0;  // width of the parts before the id, or of all parts if none is the id
  size_t width_after_ = 0;
  bool has_date_ = false;
  bool by_count_ = false;  // period and count replace the id
  std::optional<DatedNumbers> dated_;
  TimeZone zone_;
};

}  // namespace firn
