#include "tools/firn/tag_keys.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/tag/tag_fields.h"
#include "common/text/time_zone.h"

namespace firn {
namespace {

constexpr std::array<std::string_view, 3> kStrategies{"snowflake", "segment", "dated"};
constexpr std::array<std::string_view, 4> kPlugins{"limit", "rate", "history", "obfuscate"};

struct KeyWords {
  std::string_view key;
  std::string_view says;
};

constexpr KeyWords kWords[] = {
    {"strategy",
     "snowflake (time, machine id, sequence), segment (short, rising numbers) or dated (a date and "
     "a counter that begins again)"},
    {"disabled", "true: it is refused"},
    {"store", "where ranges come from: registry, or a store of the servers"},
    {"start", "numbers below it are never given"},
    {"step", "the smallest range"},
    {"step_max", "the largest range"},
    {"hold_minutes", "a range that is used up sooner makes the next one larger"},
    {"prefetch_at", "percent of a range used before the next one is fetched"},
    {"buffer", "double, or none: every number from the store"},
    {"when_store_is_away", "refuse, or ledger: the registry's ledger stands in for the store"},
    {"period", "day, month or year: how long a counter goes on"},
    {"digits", "of the counter; at most 10, 12 or 14 with such a period"},
    {"period_grace", "seconds that a period goes on after its end while the registry is away"},
    {"text",
     "template of ids as text, such as \"{date:%y%m%d}{id:09}\"; {id:base36}, base62, base32, "
     "fields"},
    {"zone", "time zone of the template's date, and of periods; dated tags may change it"},
    {"plugins", "limit, rate, history, obfuscate, with commas between"},
    {"limit.per_second", "ids a second"},
    {"limit.burst", "ids at once; 0: a second's worth"},
    {"obfuscate.width", "decimal digits of what is shown"},
    {"obfuscate.key", "which key of the servers' --key_dir"},
    {"obfuscate.check", "6 hexadecimal digits by which servers know the key"},
};

std::string WordsOf(const TagField& field) {
  std::string text(field.key);
  for (const KeyWords& words : kWords) {
    if (words.key == field.key) text += Cat("  ", words.says);
  }
  if (field.most > 0) text += Cat("; ", field.least, " to ", field.most);
  return text;
}

// Whom it concerns, its default, and until when it may change.
std::string RulesOf(const TagField& field) {
  static const TagDefinition kFresh;
  std::string text;
  if (!field.plugin.empty()) text += Cat("with plugin ", field.plugin, "; ");
  if (!field.strategy.empty()) text += Cat(field.strategy, " tags; ");
  const std::string otherwise = FieldText(field, kFresh);
  if (!otherwise.empty() && otherwise != "0") text += Cat("default ", otherwise, "; ");
  if (field.key == "start") return text + "only ever raised";
  if (field.key == "plugins") return text + "obfuscate comes and goes before the first id only";
  return text + (field.fixed ? "fixed once an id may be out" : "may change");
}

template <size_t kSize>
Status CheckName(std::string_view what, std::string_view name,
                 const std::array<std::string_view, kSize>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  std::string all;
  for (const std::string_view one : known) all += Cat(all.empty() ? "" : ", ", one);
  return Invalid(Cat("there is no ", what, " ", Quoted(name), "; Firn has ", all,
                     ". --force, if the servers are a build of yours that has it"));
}

}  // namespace

std::string DescribeTagKeys() {
  std::string text = "Keys of a tag:\n";
  for (const TagField& field : TagFields()) {
    text += Cat("  ", WordsOf(field), " (", RulesOf(field), ")\n");
  }
  return text + "  PLUGIN.KEY  of a plugin of your own\n";
}

Status CheckNames(const TagDefinition& tag) {
  FIRN_TRY(CheckName("strategy", tag.strategy, kStrategies));
  for (const std::string& plugin : tag.plugins) {
    FIRN_TRY(CheckName("plugin", plugin, kPlugins));
  }
  const Status zone = TimeZone::Load(tag.zone).status();
  if (zone.ok()) return {};
  return Invalid(Cat("zone: ", zone.message(), "; --force, if the servers have this time zone"));
}

}  // namespace firn
