#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/text/dated_numbers.h"

namespace firn {

// Whether a segment tag keeps two ranges in memory, or takes every number from its store (only
// stores that allow it: the registry and tiered ones; the strategy refuses the others).
enum class TagBuffer : uint8_t { kDouble, kNone };

// What becomes of a segment tag whose store cannot be reached once the numbers in memory are used
// up: it is refused, or its ledger in the registry picks ranges until the store is back. The latter
// is only for stores that keep whose counter it is (RangeSource::permits_stand_in); the others
// refuse the tag.
enum class StoreAway : uint8_t { kRefuse, kLedger };

// What a tag is: how its ids are made, what is done around them, how they look as text. A value,
// thread-compatible. The cluster's registry keeps it; every server and program works by the same.
//
// Sharp edge: a definition may hold nonsense until CheckTag has accepted it. The registry's reader
// and the INI parser check; whoever fills one by hand must.
struct TagDefinition {
  std::string name;      // see common/tag/tag_name.h
  std::string strategy;  // "snowflake", "segment", "dated", or one that a user added
  bool disabled = false;

  // Of tags whose numbers come in ranges: where those come from, and how large they are. Dated
  // ones have the registry as their store, and a buffer.
  std::string store = "registry";  // or the name of a configured store
  std::optional<int64_t> start{};  // numbers below it are never given; absent: 1
  int64_t step = 1000;             // the smallest range
  int64_t step_max = 100'000'000;  // the largest
  int64_t hold_minutes = 15;       // a range used up sooner makes the next one larger
  int64_t prefetch_at = 10;        // percent of a range used before the next one is fetched
  TagBuffer buffer = TagBuffer::kDouble;
  StoreAway when_store_is_away = StoreAway::kRefuse;

  // Of dated tags: numbers are a date and a counter, which begins again with each period.
  Period period = Period::kDay;
  int64_t digits = 6;        // of the counter
  int64_t period_grace = 0;  // seconds that a period goes on after its end without the registry

  std::string text{};        // template such as "{date:%y%m%d}{id:09}"; empty: decimal
  std::string zone = "UTC";  // of the template's date, and of periods

  std::vector<std::string> plugins{};            // by name
  int64_t limit_per_second = 0;                  // of the plugin `limit`: ids a second
  int64_t limit_burst = 0;                       // ids at once; 0: a second's worth
  int64_t obfuscate_width = 0;                   // of the plugin `obfuscate`: decimal digits
  std::string obfuscate_key{};                   // the id of its key; the key itself is never here
  std::string obfuscate_check{};                 // what that key must show of itself
  std::map<std::string, std::string> options{};  // "<plugin>.<key>", for plugins of a user's own

  // The tag's ledger, moved by ledger writes only: numbers below it may have been used. 0: none.
  int64_t high = 0;

  bool HasPlugin(std::string_view plugin) const {
    return std::find(plugins.begin(), plugins.end(), plugin) != plugins.end();
  }

  // Whether its numbers are covered by a ledger: they come in ranges.
  bool HasLedger() const { return strategy == "segment" || strategy == "dated"; }

  // Whether an id may be out. Only a ledger can deny it: the other strategies issue without writing
  // anything down.
  bool MayHaveIssued() const { return !HasLedger() || high > 0; }

  // Of a dated tag that CheckTag accepts: what its numbers are.
  std::optional<DatedNumbers> Dated() const;

  // The first number that the next range may hold.
  int64_t NextBegin() const { return std::max(high, start.value_or(1)); }

  friend bool operator==(const TagDefinition&, const TagDefinition&) = default;
};

// One thing that is wrong with one field.
struct TagFault {
  std::string field;  // its key, as files and commands spell it
  std::string what;   // a sentence without the field's name

  friend bool operator==(const TagFault&, const TagFault&) = default;
};

// How the tag's ids are made and what they look like: the values of all fields that are fixed once
// an id may be out, a line each. An id that was made for one form never goes out in another.
std::string FormOf(const TagDefinition& tag);

// Everything that is wrong with `tag` by itself; empty when it may be used. Whether its strategy,
// store, zone, plugins and keys exist is known only where they live, and is checked there.
std::vector<TagFault> FaultsOf(const TagDefinition& tag);

// Ok, or kInvalid with every fault in one message, "tag <name>: ..." in front.
Status CheckTag(const TagDefinition& tag);

// Whether `after` may replace `before` in the registry. Beyond CheckTag(after): the name stays, the
// ledger stays, `start` only ever raises, and once an id may be out, whatever decides what ids are
// and how they look (strategy, text, zone, obfuscation) is fixed. Every fault at once.
Status CheckEdit(const TagDefinition& before, const TagDefinition& after);

}  // namespace firn
