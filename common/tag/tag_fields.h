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

// The fields of a tag definition as a table, which files, commands, the registry and diffs iterate
// over. A new field is one line. The table lacks `name` and `options`, which have special forms,
// and `high`, which users cannot set.
struct TagField {
  using Member = std::variant<std::string TagDefinition::*, int64_t TagDefinition::*,
                              std::optional<int64_t> TagDefinition::*, bool TagDefinition::*,
                              TagBuffer TagDefinition::*, StoreAway TagDefinition::*,
                              Period TagDefinition::*, std::vector<std::string> TagDefinition::*>;

  std::string_view key;
  Member member;
  bool fixed = false;              // must not change once an id may have been issued
  std::string_view strategy = {};  // the only strategy with the field, kRangedTags, or empty: all
  std::string_view plugin = {};    // the only plugin that reads the field, or empty
  int64_t least = 0;               // minimum of a number
  int64_t most = 0;
};

// Marks fields of tags with ranges: segment and dated.
inline constexpr std::string_view kRangedTags = "segment and dated";

// Returns whether a tag with this strategy and these plugins has the field. Your own strategies may
// read any field.
bool Concerns(const TagField& field, const TagDefinition& tag);

// Returns whether the field must not change once an id of the tag may have been issued. A dated
// tag's zone may change: no period repeats, even if the clocks go back.
bool IsFixed(const TagField& field, const TagDefinition& tag);

// Returns all fields, in the order of files.
std::span<const TagField> TagFields();

// Returns null if no field has that key.
const TagField* FindTagField(std::string_view key);

// Returns the field's value as in files; lists are joined by ", ".
std::string FieldText(const TagField& field, const TagDefinition& tag);

// Sets the field from text. An error names the expected value and leaves `tag` unchanged.
Status SetField(const TagField& field, std::string_view text, TagDefinition& tag);

// Sets the field or the plugin's option with the name `key`.
Status SetByKey(std::string_view key, std::string_view text, TagDefinition& tag);

// Returns whether the field has its default value.
bool IsDefault(const TagField& field, const TagDefinition& tag);

// Returns whether `key` has the form "<plugin>.<key>", both of small letters, digits, - and _.
bool IsOptionKey(std::string_view key);

// Returns whether `word` is a valid name of a strategy, store or plugin: a small letter, then at
// most 63 small letters, digits, dashes or underscores.
bool IsTagWord(std::string_view word);

}  // namespace firn
