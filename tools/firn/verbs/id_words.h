#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/id/explain.h"
#include "common/id/layout.h"
#include "common/id/rack_split.h"
#include "common/tag/tag_definition.h"
#include "tools/firn/output.h"

namespace firn {

// Returns the layout that --layout names, and its machine bits split by --rack_bits.
Result<LayoutChoice> ChosenLayout();

// Options for parsing a verb's words as ids.
struct IdOptions {
  std::string form{};          // --form: the notation of the ids
  bool form_is_given = false;  // otherwise a tag's ids are in its text form
  std::string key_dir{};       // --key_dir: the folder with the keys of obfuscated tags
};
IdOptions ReadIdOptions();

// Parses a verb's words as ids in that notation. kInvalid names the first invalid word.
Result<std::vector<int64_t>> IdsIn(const std::vector<std::string>& words, const IdOptions& options);

// Parses the words as ids of `tag`, in a cluster with that layout. Decrypts the ids of an
// obfuscated tag with its key.
Result<std::vector<int64_t>> IdsOfTag(const TagDefinition& tag, const Layout& layout,
                                      const std::vector<std::string>& words,
                                      const IdOptions& options);

// Returns a note if the id may have another layout, or belong to a segment, dated or obfuscated
// tag: its time is in the future, or in the layout's first month. Returns "" otherwise.
std::string TimeNote(const Explanation& e, WallMs now);

// Adds `note`, unless empty, to the last entry of the output.
void AddNote(Output& output, const std::string& note);

}  // namespace firn
