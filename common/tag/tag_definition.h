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

// Where the numbers of a segment tag come from: two ranges in the memory of each server; its store,
// for each call (only the registry and tiered stores permit that); or ranges in the memory of one
// server at a time, the tag's owner, so that they rise over the whole cluster.
enum class TagBuffer : uint8_t { kDouble, kNone, kOwner };
std::string_view BufferName(TagBuffer buffer);
std::optional<TagBuffer> BufferNamed(std::string_view name);

// Behaviour of a segment tag whose store is unreachable, once the numbers in memory are used up:
// its calls are refused, or its ledger in the registry provides ranges until the store is
// reachable. Only stores that record the owner of a counter permit the latter
// (RangeSource::permits_stand_in); others refuse the tag.
enum class StoreAway : uint8_t { kRefuse, kLedger };

// The definition of a tag: its strategy, its plugins, and the text form of its ids. A value,
// thread-compatible. The cluster's registry stores it, and all servers and programs use it.
//
// Sharp edge: a definition may be invalid until CheckTag has accepted it. The registry's parser and
// the INI parser call it; code that fills in a definition must, too.
struct TagDefinition {
  std::string name;      // see common/tag/tag_name.h
  std::string strategy;  // "snowflake", "segment", "dated", or a strategy of your own
  bool disabled = false;

  // Tags with ranges only: the source and the sizes of ranges. Dated tags use the registry as their
  // store, and a buffer.
  std::string store = "registry";  // or the name of a configured store
  std::optional<int64_t> start{};  // lowest number that may be issued; absent: 1
  int64_t step = 1000;             // size of the smallest range
  int64_t step_max = 100'000'000;  // size of the largest range
  int64_t hold_minutes = 15;       // a range used up within this time makes the next one larger
  int64_t prefetch_at = 10;        // percentage of a range used before the next one is fetched
  TagBuffer buffer = TagBuffer::kDouble;
  StoreAway when_store_is_away = StoreAway::kRefuse;

  // Dated tags only: numbers are a date and a counter, which restarts with each period.
  Period period = Period::kDay;
  int64_t digits = 6;        // number of digits of the counter
  int64_t period_grace = 0;  // s for which a period continues after its end without the registry

  std::string text{};        // template such as "{date:%y%m%d}{id:09}"; empty: decimal
  std::string zone = "UTC";  // time zone of the template's date, and of periods

  std::vector<std::string> plugins{};            // by name
  int64_t limit_per_second = 0;                  // plugin `limit`: maximum ids per second
  int64_t limit_burst = 0;                       // maximum ids at once; 0: as many as per second
  int64_t obfuscate_width = 0;                   // plugin `obfuscate`: decimal digits
  std::string obfuscate_key{};                   // name of its key; never the key itself
  std::string obfuscate_check{};                 // check value of that key
  std::map<std::string, std::string> options{};  // "<plugin>.<key>", for your own plugins

  // The tag's ledger: numbers below it may be in use. Only ledger writes change it. 0: none.
  int64_t high = 0;

  bool HasPlugin(std::string_view plugin) const {
    return std::find(plugins.begin(), plugins.end(), plugin) != plugins.end();
  }

  // Returns whether the tag takes its numbers in ranges, which a ledger covers.
  bool HasLedger() const { return strategy == "segment" || strategy == "dated"; }

  // Returns whether an id may have been issued. False only if a ledger proves it: other strategies
  // issue ids without recording it.
  bool MayHaveIssued() const { return !HasLedger() || high > 0; }

  // Returns the form of a dated tag's numbers. The tag must pass CheckTag.
  std::optional<DatedNumbers> Dated() const;

  // Returns the lowest number that the next range may contain.
  int64_t NextBegin() const { return std::max(high, start.value_or(1)); }

  friend bool operator==(const TagDefinition&, const TagDefinition&) = default;
};

// A fault of one field.
struct TagFault {
  std::string field;  // key of the field in files and commands
  std::string what;   // a sentence without the field's name

  friend bool operator==(const TagFault&, const TagFault&) = default;
};

// Returns the tag's form: the values of all fields that are fixed once an id may have been issued,
// one per line. An id that was made for one form is never issued in another.
std::string FormOf(const TagDefinition& tag);

// Returns all faults of the definition by itself; empty if it is valid. Does not check that its
// strategy, store, zone, plugins and keys exist: only the servers know.
std::vector<TagFault> FaultsOf(const TagDefinition& tag);

// Returns ok, or kInvalid with all faults in one message that starts with "tag <name>: ".
Status CheckTag(const TagDefinition& tag);

// Checks whether `after` may replace `before` in the registry. Beyond CheckTag(after): name and
// ledger do not change, `start` is not lowered and, once an id may have been issued, the form
// (FormOf) does not change. Exception: a tag with store = registry may change from buffer = none
// to owner. Lists all faults at once.
Status CheckEdit(const TagDefinition& before, const TagDefinition& after);

}  // namespace firn
