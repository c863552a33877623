#include "common/tag/tag_diff.h"

#include <map>
#include <set>

#include "common/base/cat.h"
#include "common/tag/tag_fields.h"

namespace firn {
namespace {

std::string Shown(const std::string& value) { return value.empty() ? "(none)" : value; }

// Fields in the order of files, then options by name.
std::vector<std::string> Keys(const TagDefinition& before, const TagDefinition& after) {
  std::vector<std::string> keys;
  for (const TagField& field : TagFields()) keys.emplace_back(field.key);
  std::set<std::string> options;
  for (const TagDefinition* tag : {&before, &after}) {
    for (const auto& [key, value] : tag->options) options.insert(key);
  }
  keys.insert(keys.end(), options.begin(), options.end());
  return keys;
}

std::string Value(const TagDefinition& tag, const std::string& key) {
  if (const TagField* field = FindTagField(key)) return FieldText(*field, tag);
  const auto option = tag.options.find(key);
  return option != tag.options.end() ? option->second : "";
}

TagChange Added(const TagDefinition& tag) {
  TagChange change{TagChange::Kind::kAdd, tag.name};
  for (const std::string& key : Keys(tag, tag)) {
    const TagField* field = FindTagField(key);
    if (field != nullptr && IsDefault(*field, tag)) continue;
    change.lines.push_back(key + ": " + Value(tag, key));
  }
  change.status = CheckTag(tag);
  return change;
}

TagChange Edited(const TagDefinition& before, const TagDefinition& after) {
  TagChange change{TagChange::Kind::kSame, after.name};
  for (const std::string& key : Keys(before, after)) {
    const std::string from = Value(before, key), to = Value(after, key);
    if (from != to) change.lines.push_back(key + ": " + Shown(from) + " -> " + Shown(to));
  }
  if (change.lines.empty()) return change;
  change.kind = TagChange::Kind::kEdit;
  change.status = CheckEdit(before, WithLedgerOf(before, after));
  return change;
}

}  // namespace

TagDefinition WithLedgerOf(const TagDefinition& before, TagDefinition after) {
  after.high = before.high;
  return after;
}

std::vector<TagChange> DiffTags(const std::vector<TagDefinition>& before,
                                const std::vector<TagDefinition>& after) {
  struct Pair {
    const TagDefinition* before = nullptr;
    const TagDefinition* after = nullptr;
  };
  std::map<std::string, Pair> pairs;
  for (const TagDefinition& tag : before) pairs[tag.name].before = &tag;
  for (const TagDefinition& tag : after) pairs[tag.name].after = &tag;
  std::vector<TagChange> changes;
  for (const auto& [name, pair] : pairs) {
    if (pair.after == nullptr) {
      changes.push_back({TagChange::Kind::kAbsent, name});
    } else if (pair.before == nullptr) {
      changes.push_back(Added(*pair.after));
    } else {
      changes.push_back(Edited(*pair.before, *pair.after));
    }
  }
  return changes;
}

std::string DiffText(const std::vector<TagChange>& changes) {
  std::string out;
  size_t same = 0, absent = 0;
  for (const TagChange& change : changes) {
    same += change.kind == TagChange::Kind::kSame;
    absent += change.kind == TagChange::Kind::kAbsent;
    if (change.kind == TagChange::Kind::kSame || change.kind == TagChange::Kind::kAbsent) continue;
    if (!change.status.ok()) {
      out += "! " + change.name + ": refused\n";
    } else if (change.kind == TagChange::Kind::kAdd) {
      out += "+ " + change.name + ": new\n";
    } else {
      out += "~ " + change.name + "\n";
    }
    for (const std::string& line : change.lines) out += "    " + line + "\n";
    if (!change.status.ok()) out += "    " + change.status.message() + "\n";
  }
  if (same > 0) out += Cat(same, " unchanged\n");
  if (absent > 0) out += Cat(absent, " not mentioned and left as they are\n");
  return out;
}

}  // namespace firn
