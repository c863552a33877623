#include <optional>

#include "common/base/cat.h"
#include "common/base/faults.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/base/utf8.h"
#include "common/text/text_template.h"

namespace firn {
namespace {

constexpr std::string_view kDateConversions = "YymdjHMSL";

// "09" is 9: a padding is written with a zero in front, as in printf.
std::optional<int> Padding(std::string_view option) {
  if (option.size() < 2 || option.size() > 3 || option[0] != '0') return std::nullopt;
  return ParseNumberWithin<int>(option, 1, TextForm::kPadMax);
}

}  // namespace

// Parses one template, and collects all faults. Used once.
class TextTemplateParser {
 public:
  TextTemplateParser(TimeZone zone, std::optional<DatedNumbers> dated, std::optional<Layout> layout)
      : template_(std::move(zone), dated), layout_(layout) {}

  Result<TextTemplate> Parse(std::string_view text) {
    for (rest_ = text; !rest_.empty();) {
      if (TakeText("{{")) {
        AddLiteral('{');
      } else if (TakeText("}}")) {
        AddLiteral('}');
      } else if (TakeText("{")) {
        ReadItem();
      } else if (rest_[0] == '}') {
        faults_.Add("a '}' without its '{'; write }} for a literal brace");
        rest_.remove_prefix(1);
      } else {
        AddLiteral(rest_[0]);
        rest_.remove_prefix(1);
      }
    }
    CheckIds();
    if (dates_ > TextTemplate::kDatesMax) faults_.Add("too many date conversions");
    if (!faults_.empty()) return std::move(faults_).ToStatus();
    return std::move(template_);
  }

 private:
  void CheckIds() {
    const bool by_date = periods_ == 0 && counts_ > 0 && dates_ > 0;
    if (by_date && template_.dated_) {
      if (ids_ > 0 || counts_ != 1) faults_.Add("{count} must appear once, and without {id}");
      CheckDates();
      template_.has_date_ = false;  // of the issue time: the dates show the period
    } else if (periods_ + counts_ == 0) {
      if (ids_ == 0) faults_.Add("no {id}: the text would repeat");
      if (ids_ > 1) faults_.Add("{id} more than once");
    } else if (!template_.dated_) {
      faults_.Add("{period} and {count} require a dated tag");
    } else if (ids_ > 0) {
      faults_.Add("{id} cannot be combined with {period} and {count}, which contain all of it");
    } else if (periods_ != 1 || counts_ != 1) {
      faults_.Add(
          "the text would repeat: use {period} and {count} once each, or {count} and a date that "
          "determines the period, such as {date:%y%m%d}");
    }
    template_.by_count_ = periods_ + counts_ > 0;
  }

  // Checks that the dates determine the period, and show nothing else.
  void CheckDates() {
    struct Rule {
      std::string_view period, allowed, needs;
    };
    const int width = template_.dated_->period_width();
    Rule rule{"year", "Yy", "the year"};
    if (width == 6) rule = {"month", "Yym", "year and month"};
    if (width == 8) rule = {"day", "Yymdj", "year, month and day"};
    const auto has = [this](char c) { return conversions_.find(c) != std::string::npos; };
    const bool month = width == 4 || has('m') || (width == 8 && has('j'));
    const bool day = width < 8 || has('d') || has('j');
    if (!(has('Y') || has('y')) || !month || !day) {
      faults_.Add(
          Cat("{date:...} in place of {period} needs ", rule.needs, ": the text would repeat"));
    }
    for (const char c : conversions_) {
      if (rule.allowed.find(c) != rule.allowed.npos) continue;
      faults_.Add(Cat("%", std::string(1, c), " beside {count} is not determined by a ",
                      rule.period, "; name {period}, or leave it out"));
    }
  }

  bool TakeText(std::string_view head) {
    if (!rest_.starts_with(head)) return false;
    rest_.remove_prefix(head.size());
    return true;
  }

  void ReadItem() {
    const size_t end = rest_.find('}');
    if (end == rest_.npos) {
      faults_.Add(Quoted("{" + std::string(rest_)) + " has no '}'");
      rest_ = {};
      return;
    }
    const std::string_view item = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (item == "id") {
      AddId({});
    } else if (item == "id:fields") {
      AddIdOfLayout<FieldsText>(item);
    } else if (item == "id:uuid7") {
      AddIdOfLayout<Uuid7Text>(item);
    } else if (item.starts_with("id:")) {
      ReadId(item.substr(3));
    } else if (item.starts_with("date:")) {
      ReadDate(item.substr(5));
    } else if (item == "period") {
      AddDated(TextTemplate::DatedField::kPeriod, periods_);
    } else if (item == "count") {
      AddDated(TextTemplate::DatedField::kCount, counts_);
    } else {
      faults_.Add(Quoted("{" + std::string(item) + "}") +
                  " is none of {id}, {id:...}, {date:...}, {period} and {count}; the last two are "
                  "for dated tags");
    }
  }

  void ReadId(std::string_view options) {
    TextForm form;
    bool base_seen = false;
    for (bool last = false; !last;) {
      const size_t comma = options.find(',');
      const std::string_view option = options.substr(0, comma);
      last = comma == options.npos;
      if (!last) options.remove_prefix(comma + 1);
      const std::optional<int> padding = Padding(option);
      if (padding && form.pad_to == 0) {
        form.pad_to = *padding;
      } else if (const auto base = BaseNamed(option); base && !base_seen) {
        form.base = *base;
        base_seen = true;
      } else {
        faults_.Add(
            Cat(Quoted(option),
                " in {id:...} is invalid: expected one of base62, base36 and base32, and a padding "
                "from 01 to 0",
                TextForm::kPadMax));
      }
    }
    AddId(form);
  }

  void ReadDate(std::string_view format) {
    bool conversions = false;
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%') {
        AddLiteral(format[i]);
        continue;
      }
      const std::string_view conversion = format.substr(++i, 1);
      if (conversion == "%") {
        AddLiteral('%');
      } else if (!conversion.empty() && kDateConversions.find(conversion) != format.npos) {
        AddDate(conversion[0]);
        conversions = true;
      } else {
        faults_.Add(Quoted("%" + std::string(conversion)) + " is not one of %Y %y %m %d %j %H " +
                    "%M %S %L, whose width never changes");
        conversions = true;
      }
    }
    if (!conversions)
      faults_.Add(Quoted("{date:" + std::string(format) + "}") + " contains no date conversion");
  }

  void AddWidth(size_t width) {
    (ids_ == 0 ? template_.width_before_ : template_.width_after_) += width;
  }

  void AddLiteral(char c) {
    AddWidth(1);
    auto& parts = template_.parts_;
    if (parts.empty() || !std::holds_alternative<std::string>(parts.back())) {
      parts.emplace_back(std::string());
    }
    std::get<std::string>(parts.back()) += c;
  }

  void AddDate(char conversion) {
    const TextTemplate::DateField field{conversion};
    AddWidth(field.width());
    template_.parts_.emplace_back(field);
    template_.has_date_ = true;
    conversions_ += conversion;
    ++dates_;
  }

  void AddDated(TextTemplate::DatedField field, int& seen) {
    if (template_.dated_) AddWidth(template_.WidthOf(field));
    template_.parts_.emplace_back(field);
    ++seen;
  }

  void AddId(TextForm form) {
    template_.parts_.emplace_back(TextTemplate::IdPart{});
    template_.id_ = form;
    ++ids_;
  }

  // Adds a notation that shows the id's fields or its time.
  template <typename Notation>
  void AddIdOfLayout(std::string_view item) {
    AddId({});
    if (layout_) {
      template_.id_ = Notation(*layout_);
    } else {
      faults_.Add(Cat("{", item, "} is of snowflake tags only, and of none that is obfuscated"));
    }
  }

  TextTemplate template_;
  const std::optional<Layout> layout_;
  std::string_view rest_;
  int ids_ = 0, periods_ = 0, counts_ = 0;
  int dates_ = 0;
  std::string conversions_;  // of all dates
  Faults faults_;
};

Result<TextTemplate> TextTemplate::Parse(std::string_view text, TimeZone zone,
                                         std::optional<DatedNumbers> dated,
                                         std::optional<Layout> layout) {
  if (text.size() > kTextMax) {
    return Invalid(Cat("a template has at most ", kTextMax, " bytes"));
  }
  if (!IsPrintableUtf8(text)) return Invalid("a template must be printable UTF-8");
  return TextTemplateParser(std::move(zone), dated, layout).Parse(text.empty() ? "{id}" : text);
}

}  // namespace firn
