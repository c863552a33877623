#include "common/tag/tag_definition.h"

#include <algorithm>
#include <array>
#include <set>
#include <variant>

#include "common/base/cat.h"
#include "common/base/hex.h"
#include "common/base/printed_command.h"
#include "common/base/utf8.h"
#include "common/tag/tag_fields.h"
#include "common/tag/tag_name.h"
#include "common/text/text_template.h"

namespace firn {
namespace {

constexpr std::array<std::string_view, 3> kBufferNames{"double", "none", "owner"};  // of TagBuffer

constexpr size_t kTextMax = TextTemplate::kTextMax;  // also for a zone and an option
constexpr WallMs kShown{1'800'000'000'000};          // any day, for an example
constexpr size_t kPluginsMax = 16;
constexpr size_t kOptionsMax = 32;

// Collects the faults of one tag.
class FaultList {
 public:
  explicit FaultList(const TagDefinition& tag) : tag_(tag) {}

  void CheckName() {
    if (const Status status = CheckTagName(tag_.name); !status.ok()) Add("name", status.message());
  }
  void CheckNumbers();
  void CheckWords();
  void CheckStandIn();
  void CheckText();
  void CheckDated();
  void CheckPlugins();
  void CheckBelonging();
  void CheckOptions();
  void CheckLedger();

  std::vector<TagFault> Take() { return std::move(faults_); }

 private:
  void Add(std::string_view field, std::string what) {
    faults_.push_back({std::string(field), std::move(what)});
  }
  void CheckRange(const TagField& field, int64_t value);
  bool CheckPrintable(std::string_view field, const std::string& value);

  const TagDefinition& tag_;
  std::vector<TagFault> faults_;
};

void FaultList::CheckRange(const TagField& field, int64_t value) {
  if (value >= field.least && value <= field.most) return;
  Add(field.key, Cat(value, " is not within ", field.least, " and ", field.most));
}

void FaultList::CheckNumbers() {
  for (const TagField& field : TagFields()) {
    if (!Concerns(field, tag_)) continue;
    if (const auto* number = std::get_if<int64_t TagDefinition::*>(&field.member)) {
      CheckRange(field, tag_.**number);
    } else if (const auto* maybe =
                   std::get_if<std::optional<int64_t> TagDefinition::*>(&field.member)) {
      if (tag_.**maybe) CheckRange(field, *(tag_.**maybe));
    }
  }
  if (tag_.step > tag_.step_max) {
    Add("step_max", Cat(tag_.step_max, " is below the step of ", tag_.step));
  }
}

void FaultList::CheckWords() {
  if (tag_.strategy.empty()) {
    Add("strategy", "missing; say snowflake, segment or dated");
  } else if (!IsTagWord(tag_.strategy)) {
    Add("strategy", "not the name of a strategy");
  }
  if (!IsTagWord(tag_.store)) Add("store", "not the name of a store");
}

void FaultList::CheckStandIn() {
  if (tag_.when_store_is_away != StoreAway::kLedger) return;
  if (tag_.store == "registry") {
    Add("when_store_is_away", "with store = registry the ledger is the store; name a database");
  } else if (tag_.buffer != TagBuffer::kDouble) {
    Add("when_store_is_away", "ledger requires buffer = double");
  }
}

bool FaultList::CheckPrintable(std::string_view field, const std::string& value) {
  const bool fits = value.size() <= kTextMax, printable = IsPrintableUtf8(value);
  if (!fits) Add(field, Cat("longer than ", kTextMax, " bytes"));
  if (!printable) Add(field, "not UTF-8, or has a control character");
  return fits && printable;
}

void FaultList::CheckText() {
  if (CheckPrintable("text", tag_.text)) {
    // The cluster determines the layout, which does not affect the check.
    const bool has_fields = tag_.strategy == "snowflake" && !tag_.HasPlugin("obfuscate");
    const Status status =
        TextTemplate::Parse(tag_.text, TimeZone::Utc(), tag_.Dated(),
                            has_fields ? std::optional(Layout::Firn()) : std::optional<Layout>())
            .status();
    if (!status.ok()) Add("text", status.message());
  }
  if (CheckPrintable("zone", tag_.zone) && tag_.zone.empty()) Add("zone", "empty; say UTC");
}

void FaultList::CheckDated() {
  if (tag_.strategy != "dated") return;
  if (tag_.HasPlugin("obfuscate")) Add("plugins", "obfuscate would hide the date of a dated tag");
  const std::optional<DatedNumbers> numbers = tag_.Dated();
  if (!numbers)
    return Add("digits",
               Cat("at most ", DatedNumbers::DigitsMax(tag_.period), " digits with this period"));
  if (tag_.step >= numbers->scale()) {
    Add("step",
        Cat(tag_.step, " is too large: a period has only ", numbers->scale() - 1, " numbers"));
  }
  // 1 means, as for any tag, that no number was issued. The end of a period means that all of its
  // numbers may be in use.
  const int64_t start = tag_.start.value_or(1);
  const bool dated = numbers->IsPeriod(numbers->PeriodOf(start)) ||
                     numbers->IsPeriod(numbers->PeriodOf(start - 1));
  if (start != 1 && !dated) {
    Add("start", Cat(start, " is not a number of a dated tag, which begins with a date; example: ",
                     numbers->First(numbers->PeriodAt(kShown, TimeZone::Utc()))));
  }
}

void FaultList::CheckPlugins() {
  if (tag_.plugins.size() > kPluginsMax) {
    Add("plugins", Cat("more than ", kPluginsMax));
    return;
  }
  std::set<std::string_view> seen;
  for (const std::string& plugin : tag_.plugins) {
    if (!IsTagWord(plugin)) {
      Add("plugins", "contains an invalid plugin name");
    } else if (!seen.insert(plugin).second) {
      Add("plugins", "named twice: " + plugin);
    }
  }
  if (!tag_.HasPlugin("obfuscate")) return;
  const std::string_view key = tag_.obfuscate_key;
  const bool plain = key.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_-") == key.npos;
  if (key.empty() || key.size() > 64 || !plain) {
    Add("obfuscate.key", "must be 1 to 64 letters, digits, - or _");
  }
  const std::string_view check = tag_.obfuscate_check;
  if (check.size() != 6 || !IsLowerHex(check)) {
    Add("obfuscate.check", "must be 6 lower-case hexadecimal digits that identify the key; `" +
                               PrintCommand(PrintedCommand::kTags) +
                               "` computes them with --key_dir");
  }
}

// Reports settings that have no effect, because their author expected one.
void FaultList::CheckBelonging() {
  for (const TagField& field : TagFields()) {
    if (Concerns(field, tag_) || IsDefault(field, tag_)) continue;
    Add(field.key, field.plugin.empty() ? "is for " + std::string(field.strategy) + " tags only"
                                        : "requires the plugin " + std::string(field.plugin));
  }
}

void FaultList::CheckOptions() {
  if (tag_.options.size() > kOptionsMax) {
    Add("plugins", Cat("more than ", kOptionsMax, " options"));
    return;
  }
  for (const auto& [key, value] : tag_.options) {
    if (!IsOptionKey(key) || FindTagField(key) != nullptr) {
      Add(key, "no such setting");
    } else if (const std::string plugin = key.substr(0, key.find('.')); !tag_.HasPlugin(plugin)) {
      Add(key, "requires the plugin " + plugin);
    }
    CheckPrintable(key, value);
  }
}

void FaultList::CheckLedger() {
  if (tag_.high < 0) Add("high", Cat(tag_.high, " is negative"));
}

std::string Join(const std::string& name, const std::vector<TagFault>& faults) {
  std::string out = "tag \"" + (IsPrintableUtf8(name) ? name : EncodeTagName(name)) + "\": ";
  for (size_t i = 0; i < faults.size(); ++i) {
    out += (i == 0 ? "" : "; ") + faults[i].field + ": " + faults[i].what;
  }
  return out;
}

// Returns the lowest number that the tag may issue next.
int64_t NextNumber(const TagDefinition& tag) { return std::max(tag.start.value_or(1), tag.high); }

void FindMovedFixedFields(const TagDefinition& before, const TagDefinition& after,
                          std::vector<TagFault>& faults) {
  if (!before.MayHaveIssued()) return;
  const auto add = [&](std::string_view field, const std::string& from, const std::string& to) {
    faults.push_back({std::string(field), "fixed once an id may have been issued (\"" + from +
                                              "\", not \"" + to + "\"); create another tag"});
  };
  // This edit is safe: servers that serve the tag with buffer = none have none of its numbers in
  // memory, and the registry gives no more to a server that has not read the edit.
  const bool gets_owner = before.strategy == "segment" && before.buffer != TagBuffer::kOwner &&
                          after.buffer == TagBuffer::kOwner;
  if (gets_owner && (before.buffer != TagBuffer::kNone || before.store != "registry" ||
                     after.store != "registry"))
    faults.push_back({"buffer",
                      "cannot become owner in this edit, because an id may have been issued; first "
                      "set buffer=none store=registry, then buffer=owner with the same store"});
  for (const TagField& field : TagFields()) {
    if (gets_owner && field.key == "buffer") continue;
    const std::string from = FieldText(field, before), to = FieldText(field, after);
    const bool fixed = IsFixed(field, before) || IsFixed(field, after);
    if (fixed && from != to) add(field.key, from, to);
  }
  if (before.HasPlugin("obfuscate") != after.HasPlugin("obfuscate")) {
    const auto text = [](bool on) { return on ? "obfuscate" : "no obfuscate"; };
    add("plugins", text(before.HasPlugin("obfuscate")), text(after.HasPlugin("obfuscate")));
  }
}

}  // namespace

std::optional<DatedNumbers> TagDefinition::Dated() const {
  const bool fits = digits >= 1 && digits <= DatedNumbers::DigitsMax(period);
  if (strategy != "dated" || !fits) return std::nullopt;
  return DatedNumbers(period, static_cast<int>(digits));
}

std::string_view BufferName(TagBuffer buffer) {
  return kBufferNames.at(static_cast<size_t>(buffer));
}

std::optional<TagBuffer> BufferNamed(std::string_view name) {
  const auto found = std::ranges::find(kBufferNames, name);
  if (found == kBufferNames.end()) return std::nullopt;
  return static_cast<TagBuffer>(found - kBufferNames.begin());
}

std::string FormOf(const TagDefinition& tag) {
  std::string form;
  for (const TagField& field : TagFields()) {
    const bool others = !field.strategy.empty() && field.strategy != tag.strategy;
    if (IsFixed(field, tag) && !others)
      form += std::string(field.key) + "=" + FieldText(field, tag) + "\n";
  }
  return form + (tag.HasPlugin("obfuscate") ? "obfuscated" : "plain");
}

std::vector<TagFault> FaultsOf(const TagDefinition& tag) {
  FaultList faults(tag);
  faults.CheckName();
  faults.CheckWords();
  faults.CheckStandIn();
  faults.CheckNumbers();
  faults.CheckText();
  faults.CheckDated();
  faults.CheckPlugins();
  faults.CheckBelonging();
  faults.CheckOptions();
  faults.CheckLedger();
  return faults.Take();
}

Status CheckTag(const TagDefinition& tag) {
  const std::vector<TagFault> faults = FaultsOf(tag);
  return faults.empty() ? Status() : Invalid(Join(tag.name, faults));
}

Status CheckEdit(const TagDefinition& before, const TagDefinition& after) {
  std::vector<TagFault> faults = FaultsOf(after);
  if (after.name != before.name) {
    faults.push_back({"name", "cannot change, it was \"" + before.name + "\""});
  }
  if (after.high != before.high) {
    faults.push_back({"high", Cat("cannot be set, only servers raise it; it is ", before.high)});
  }
  if (after.start != before.start && after.start && *after.start < before.high) {
    faults.push_back({"start", Cat(*after.start, " would change nothing: numbers below ",
                                   before.high, " may have been used")});
  } else if (after.HasLedger() && NextNumber(after) < NextNumber(before)) {
    faults.push_back({"start", Cat("cannot be lowered from ", NextNumber(before),
                                   ": numbers below it may be in use elsewhere; create another "
                                   "tag, or, if this one has issued no number, delete it and "
                                   "create it again")});
  }
  FindMovedFixedFields(before, after, faults);
  return faults.empty() ? Status() : Invalid(Join(after.name, faults));
}

}  // namespace firn
