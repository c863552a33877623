#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"

namespace firn {

// The fields of a tag definition as data: what files, commands, the registry and diffs iterate
// over, so that a new field is one line. `name`, `options` and `high` are not here: the first two
// have forms of their own, the last one nobody may set.
struct TagField {
  using Member = std::variant<std::string TagDefinition::*, int64_t TagDefinition::*,
                              std::optional<int64_t> TagDefinition::*, bool TagDefinition::*,
                              TagBuffer TagDefinition::*, StoreAway TagDefinition::*,
                              Period TagDefinition::*, std::vector<std::string> TagDefinition::*>;

  std::string_view key;
  Member member;
  bool fixed = false;              // once the first id is out
  std::string_view strategy = {};  // the only one that has it, kRangedTags, or any
  std::string_view plugin = {};    // the only plugin that reads it, or none
  int64_t least = 0;               // of numbers
  int64_t most = 0;
};

// Of fields that tags with ranges have, whichever of the two they are.
inline constexpr std::string_view kRangedTags = "segment and dated";

// Whether a tag of that strategy and those plugins has the field. Strategies of a user's own may
// read any.
bool Concerns(const TagField& field, const TagDefinition& tag);

// Whether the field may not change any more once an id of the tag may be out. A dated tag's zone
// may: whatever its clocks show, no period comes again.
bool IsFixed(const TagField& field, const TagDefinition& tag);

// Every field, in the order in which files show them.
std::span<const TagField> TagFields();

// Null when there is no field of that key.
const TagField* FindTagField(std::string_view key);

// The field's value as files spell it; lists are joined with ", ".
std::string FieldText(const TagField& field, const TagDefinition& tag);

// Sets the field from text. A refusal names what was expected and leaves `tag` as it was.
Status SetField(const TagField& field, std::string_view text, TagDefinition& tag);

// Sets the field, or the option of a plugin, that is called `key`.
Status SetByKey(std::string_view key, std::string_view text, TagDefinition& tag);

// Whether the field has the value that a fresh definition has.
bool IsDefault(const TagField& field, const TagDefinition& tag);

// Whether `key` has the form of an option: "<plugin>.<key>", both in small letters, digits, - or _.
bool IsOptionKey(std::string_view key);

// Whether `word` may name a strategy, a store or a plugin: a small letter, then at most 63 small
// letters, digits, dashes or underscores.
bool IsTagWord(std::string_view word);

}  // namespace firn
