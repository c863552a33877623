#include "common/tag/tag_fields.h"

#include <array>
#include <limits>
#include <utility>

#include "common/base/near_names.h"
#include "common/base/parse.h"
#include "common/base/quote.h"

namespace firn {
namespace {

constexpr int64_t kStepMost = 1'000'000'000'000;  // a ten-millionth of all numbers
constexpr int64_t kNumberMost = std::numeric_limits<int64_t>::max();
constexpr size_t kWordMax = 64;

using Tag = TagDefinition;

constexpr std::array kFields = {
    TagField{.key = "strategy", .member = &Tag::strategy, .fixed = true},
    TagField{.key = "disabled", .member = &Tag::disabled},
    TagField{.key = "store", .member = &Tag::store, .strategy = "segment"},
    TagField{.key = "start",
             .member = &Tag::start,
             .strategy = kRangedTags,
             .least = 1,
             .most = kNumberMost},
    TagField{.key = "step",
             .member = &Tag::step,
             .strategy = kRangedTags,
             .least = 1,
             .most = kStepMost},
    TagField{.key = "step_max",
             .member = &Tag::step_max,
             .strategy = kRangedTags,
             .least = 1,
             .most = kStepMost},
    TagField{.key = "hold_minutes",
             .member = &Tag::hold_minutes,
             .strategy = kRangedTags,
             .least = 1,
             .most = 1440},
    TagField{.key = "prefetch_at",
             .member = &Tag::prefetch_at,
             .strategy = kRangedTags,
             .least = 1,
             .most = 99},
    TagField{.key = "buffer", .member = &Tag::buffer, .strategy = "segment"},
    TagField{
        .key = "when_store_is_away", .member = &Tag::when_store_is_away, .strategy = "segment"},
    TagField{.key = "period", .member = &Tag::period, .fixed = true, .strategy = "dated"},
    TagField{.key = "digits",
             .member = &Tag::digits,
             .fixed = true,
             .strategy = "dated",
             .least = 1,
             .most = DatedNumbers::DigitsMax(Period::kYear)},
    TagField{.key = "period_grace",
             .member = &Tag::period_grace,
             .strategy = "dated",
             .least = 0,
             .most = 86'400},
    TagField{.key = "text", .member = &Tag::text, .fixed = true},
    TagField{.key = "zone", .member = &Tag::zone, .fixed = true},
    TagField{.key = "plugins", .member = &Tag::plugins},
    TagField{.key = "limit.per_second",
             .member = &Tag::limit_per_second,
             .plugin = "limit",
             .least = 1,
             .most = 100'000'000},
    TagField{.key = "limit.burst",
             .member = &Tag::limit_burst,
             .plugin = "limit",
             .least = 0,
             .most = 1'000'000'000},
    TagField{.key = "obfuscate.width",
             .member = &Tag::obfuscate_width,
             .fixed = true,
             .plugin = "obfuscate",
             .least = 6,
             .most = 19},
    TagField{.key = "obfuscate.key",
             .member = &Tag::obfuscate_key,
             .fixed = true,
             .plugin = "obfuscate"},
    TagField{.key = "obfuscate.check",
             .member = &Tag::obfuscate_check,
             .fixed = true,
             .plugin = "obfuscate"},
};

// --- one pair of functions for each type of value -----------------------------------------------

std::string ToText(const std::string& value) { return value; }
std::string ToText(int64_t value) { return std::to_string(value); }
std::string ToText(const std::optional<int64_t>& value) { return value ? ToText(*value) : ""; }
std::string ToText(bool value) { return value ? "true" : "false"; }
std::string ToText(TagBuffer value) { return std::string(BufferName(value)); }
std::string ToText(StoreAway value) { return value == StoreAway::kLedger ? "ledger" : "refuse"; }
std::string ToText(Period value) { return std::string(PeriodName(value)); }
std::string ToText(const std::vector<std::string>& value) {
  std::string out;
  for (const std::string& item : value) out += (out.empty() ? "" : ", ") + item;
  return out;
}

Status FromText(std::string_view text, const TagField&, std::string& value) {
  value = text;
  return {};
}

Status FromText(std::string_view text, const TagField&, int64_t& value) {
  const std::optional<int64_t> parsed = ParseNumber<int64_t>(text);
  if (!parsed) return Invalid(Quoted(text) + " is not a whole number of 63 bits");
  value = *parsed;
  return {};
}

Status FromText(std::string_view text, const TagField& field, std::optional<int64_t>& value) {
  int64_t parsed = 0;
  FIRN_TRY(FromText(text, field, parsed));
  value = parsed;
  return {};
}

Status FromText(std::string_view text, const TagField&, bool& value) {
  if (text != "true" && text != "false") {
    return Invalid("must be true or false, not " + Quoted(text));
  }
  value = text == "true";
  return {};
}

Status FromText(std::string_view text, const TagField&, TagBuffer& value) {
  const std::optional<TagBuffer> buffer = BufferNamed(text);
  if (!buffer) return Invalid("must be double, none or owner, not " + Quoted(text));
  value = *buffer;
  return {};
}

Status FromText(std::string_view text, const TagField&, StoreAway& value) {
  if (text != "refuse" && text != "ledger") {
    return Invalid("must be refuse or ledger, not " + Quoted(text));
  }
  value = text == "ledger" ? StoreAway::kLedger : StoreAway::kRefuse;
  return {};
}

Status FromText(std::string_view text, const TagField&, Period& value) {
  const std::optional<Period> named = PeriodNamed(text);
  if (!named) return Invalid("must be day, month or year, not " + Quoted(text));
  value = *named;
  return {};
}

Status FromText(std::string_view text, const TagField&, std::vector<std::string>& value) {
  std::vector<std::string> items;
  while (!Trimmed(text).empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    items.emplace_back(Trimmed(text.substr(0, comma)));
    if (items.back().empty()) return Invalid("the list has an empty item");
    const bool last = comma == text.size();
    text.remove_prefix(last ? comma : comma + 1);
    if (!last && Trimmed(text).empty()) return Invalid("the list ends with a comma");
  }
  value = std::move(items);
  return {};
}

}  // namespace

std::span<const TagField> TagFields() { return kFields; }

bool Concerns(const TagField& field, const TagDefinition& tag) {
  if (!field.plugin.empty() && !tag.HasPlugin(field.plugin)) return false;
  if (field.strategy.empty()) return true;
  if (tag.strategy == "snowflake") return false;
  return !tag.HasLedger() || field.strategy == kRangedTags || field.strategy == tag.strategy;
}

// A server that issues numbers from its own memory would break the order of an owner's numbers.
bool IsFixed(const TagField& field, const TagDefinition& tag) {
  if (field.key == "buffer") return tag.buffer == TagBuffer::kOwner;
  return field.fixed && !(tag.strategy == "dated" && field.key == "zone");
}

const TagField* FindTagField(std::string_view key) {
  for (const TagField& field : kFields) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

std::string FieldText(const TagField& field, const TagDefinition& tag) {
  return std::visit([&](auto member) { return ToText(tag.*member); }, field.member);
}

Status SetField(const TagField& field, std::string_view text, TagDefinition& tag) {
  return std::visit([&](auto member) { return FromText(text, field, tag.*member); }, field.member);
}

namespace {
Status NoField(std::string_view key) {
  std::vector<std::string_view> known;
  for (const TagField& field : kFields) known.push_back(field.key);
  return Invalid("a tag has no field " + Quoted(key) + DidYouMean(key, known));
}
}  // namespace

Status SetByKey(std::string_view key, std::string_view text, TagDefinition& tag) {
  if (const TagField* field = FindTagField(key))
    return SetField(*field, text, tag).WithContext(key);
  if (!IsOptionKey(key)) return NoField(key);
  tag.options[std::string(key)] = text;
  return {};
}

bool IsDefault(const TagField& field, const TagDefinition& tag) {
  static const TagDefinition kFresh;
  return std::visit([&](auto member) { return tag.*member == kFresh.*member; }, field.member);
}

bool IsTagWord(std::string_view word) {
  if (word.empty() || word.size() > kWordMax || word[0] < 'a' || word[0] > 'z') return false;
  return word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == word.npos;
}

bool IsOptionKey(std::string_view key) {
  const size_t dot = key.find('.');
  return dot != key.npos && IsTagWord(key.substr(0, dot)) && IsTagWord(key.substr(dot + 1));
}

}  // namespace firn
