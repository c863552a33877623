#include "tools/firn/tags_import.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/tag/tag_name.h"

namespace firn {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

Result<int64_t> Number(const char* column, const std::string& text, int64_t least) {
  if (const auto number = ParseNumberWithin(text, least, kMost - 1)) return *number;
  return Invalid(std::string(column) + ": " + Quoted(text) + " is not a valid number");
}

// Facts about one tag, from its rows in all databases.
struct Known {
  int64_t next = 0;  // the first number that was never issued
  int64_t step = 0;
  int64_t delta = 1;
  std::set<int64_t> remainders{};
  std::string fault{};
};

Status Add(IdTable form, const IdRow& row, Known& known) {
  FIRN_ASSIGN(const int64_t max, Number("max_id", row.max_id, 0));
  FIRN_ASSIGN(const int64_t step, Number("step", row.step, 1));
  FIRN_ASSIGN(const int64_t delta, Number("delta", row.delta, 1));
  FIRN_ASSIGN(const int64_t remainder, Number("remainder", row.remainder, 0));
  FIRN_TRY(CheckTagName(row.tag));
  if (!known.remainders.empty() && delta != known.delta) {
    return Invalid(Cat("delta is ", row.delta, " here and ", known.delta, " elsewhere"));
  }
  known.delta = delta;
  known.remainders.insert(remainder % delta);
  known.step = std::max(known.step, step);
  // In Leaf all numbers below max_id are used; in Tinyid max_id itself is used, too.
  known.next = std::max({known.next, form == IdTable::kTinyid ? max + 1 : max, int64_t{1}});
  return {};
}

// Returns the tag's fault, or "". A missing database is a fault, too.
std::string Missing(const Known& known) {
  const int64_t shares = known.delta, found = static_cast<int64_t>(known.remainders.size());
  if (shares == found || !known.fault.empty()) return known.fault;
  return Cat("delta is ", shares, ", but only ", found,
             " of the databases that share its numbers were named; name all of them");
}

TagDefinition Definition(const std::string& name, const Known& known, const std::string& store) {
  TagDefinition tag{.name = name, .strategy = "segment", .store = store};
  tag.start = known.next;
  tag.high = known.next;
  tag.step = known.step;
  tag.step_max = std::max(tag.step_max, tag.step);
  return tag;
}

}  // namespace

TagImport PlanImport(IdTable form, const std::vector<IdSource>& sources, const std::string& store) {
  std::map<std::string, Known> all;
  for (const IdSource& source : sources) {
    for (const IdRow& row : source.rows) {
      Known& known = all[row.tag];
      const Status added = Add(form, row, known);
      if (!added.ok()) known.fault = source.name + ": " + added.message();
    }
  }
  TagImport import;
  for (const auto& [name, known] : all) {
    std::string fault = Missing(known);
    const TagDefinition tag = Definition(name, known, store);
    if (fault.empty()) fault = CheckTag(tag).message();
    if (fault.empty()) {
      import.tags.push_back(tag);
    } else {
      import.faults.push_back("tag " + Quoted(name) + ": " + fault);
    }
  }
  return import;
}

std::vector<TagDefinition> RaiseTags(const std::vector<TagDefinition>& present,
                                     const std::vector<TagDefinition>& wanted) {
  std::map<std::string, const TagDefinition*> by_name;
  for (const TagDefinition& tag : present) by_name[tag.name] = &tag;
  std::vector<TagDefinition> raised;
  for (const TagDefinition& tag : wanted) {
    const auto there = by_name.find(tag.name);
    raised.push_back(there == by_name.end() ? tag : *there->second);
    if (raised.back().NextBegin() < tag.high) raised.back().start = tag.high;
    raised.back().high = std::max(raised.back().high, tag.high);
  }
  return raised;
}

}  // namespace firn
