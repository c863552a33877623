#include "tools/firn/tag_keys.h"

#include <algorithm>
#include <array>
#include <string_view>

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
     "a counter that restarts)"},
    {"disabled", "true: requests for the tag are refused"},
    {"store", "store that provides ranges: registry, or a store of the servers"},
    {"start", "lowest number that may be issued"},
    {"step", "size of the smallest range"},
    {"step_max", "size of the largest range; `firn restore` skips at least twice as many numbers"},
    {"hold_minutes", "a range that is used up within this time makes the next one larger"},
    {"prefetch_at", "percentage of a range that is used before the next one is fetched"},
    {"buffer",
     "double; none: each number is fetched from the store; owner: numbers rise over the whole "
     "cluster"},
    {"when_store_is_away",
     "what to do while the store is unreachable: `refuse` requests, or take ranges from the "
     "registry's `ledger`"},
    {"period", "day, month or year: time after which the counter restarts"},
    {"digits", "number of digits of the counter; at most 10 for day, 12 for month, 14 for year"},
    {"period_grace",
     "seconds for which an ended period is continued while the registry is unreachable"},
    {"text",
     "template of ids as text, such as \"{date:%y%m%d}{id:09}\"; {id:base36}, base62, base32, "
     "fields, uuid7; of dated tags \"{period}-{count}\" or \"{date:%y%m%d}{count}\""},
    {"zone", "time zone of the template's date, and of periods; dated tags may change it"},
    {"plugins", "limit, rate, history, obfuscate, separated by commas"},
    {"limit.per_second", "maximum ids per second"},
    {"limit.burst", "maximum ids at once; 0: as many as per second"},
    {"obfuscate.width",
     "number of decimal digits of the shown number; 19 holds every id, as snowflake tags need"},
    {"obfuscate.key", "name of the key in the servers' --key_dir"},
    {"obfuscate.check",
     "6 hexadecimal digits that identify the key; computed from it with --key_dir"},
};

std::string WordsOf(const TagField& field) {
  std::string text(field.key);
  for (const KeyWords& words : kWords) {
    if (words.key == field.key) text += Cat("  ", words.says);
  }
  if (field.most > 0) text += Cat("; ", field.least, " to ", field.most);
  return text;
}

// Returns which tags have the field, its default, and until when it may change.
std::string RulesOf(const TagField& field) {
  static const TagDefinition kFresh;
  std::string text;
  if (!field.plugin.empty()) text += Cat("with plugin ", field.plugin, "; ");
  if (!field.strategy.empty()) text += Cat(field.strategy, " tags; ");
  const std::string otherwise = FieldText(field, kFresh);
  if (!otherwise.empty() && otherwise != "0") text += Cat("default ", otherwise, "; ");
  if (field.key == "start") return text + "only ever raised";
  if (field.key == "plugins") return text + "obfuscate may change only before the first id";
  if (field.key == "buffer")
    return text +
           "may change; once an id may have been issued, to owner only from none with "
           "store=registry, and never from owner";
  return text + (field.fixed ? "fixed once an id may have been issued" : "may change");
}

template <size_t kSize>
Status CheckName(std::string_view what, std::string_view name,
                 const std::array<std::string_view, kSize>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  std::string all;
  for (const std::string_view one : known) all += Cat(all.empty() ? "" : ", ", one);
  return Invalid(Cat("there is no ", what, " ", Quoted(name), "; Firn has ", all,
                     "; use --force if your own build of the servers has it"));
}

}  // namespace

std::string DescribeTagKeys() {
  std::string text = "Keys of a tag:\n";
  for (const TagField& field : TagFields()) {
    text += Cat("  ", WordsOf(field), " (", RulesOf(field), ")\n");
  }
  return text + "  PLUGIN.KEY  setting of your own plugin\n";
}

Status CheckNames(const TagDefinition& tag) {
  FIRN_TRY(CheckName("strategy", tag.strategy, kStrategies));
  for (const std::string& plugin : tag.plugins) {
    FIRN_TRY(CheckName("plugin", plugin, kPlugins));
  }
  const Status zone = TimeZone::Load(tag.zone).status();
  if (zone.ok()) return {};
  return Invalid(Cat("zone: ", zone.message(), "; use --force if the servers have this time zone"));
}

}  // namespace firn
