#include "tools/firn/verbs/id_words.h"

#include <gflags/gflags.h>

#include "common/base/printed_command.h"
#include "common/id/text_form.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/tag_ids.h"

DEFINE_string(layout, "firn", "Layout of the ids: a preset, or a text such as 'time:41 ...'.");
DEFINE_int32(rack_bits, -1,
             "Number of machine id bits that name the rack. -1: the layout's default.");
DEFINE_string(form, "decimal", "Notation of the ids: decimal, base62, base36 or base32.");
DEFINE_string(key_dir, "", "Folder with the keys of obfuscated tags, as on the servers.");

namespace firn {
namespace {

Result<Base> BaseOfForm(const std::string& name) {
  if (name == "decimal") return Base::kDecimal;
  if (const auto base = BaseNamed(name)) return *base;
  return Invalid("--form must be decimal, base62, base36 or base32, not '" + name + "'");
}

// An issued id's time is never this far ahead of now, not even after a restore.
constexpr Milliseconds kAhead{3'600'000};
constexpr Milliseconds kFirstDays = std::chrono::days(31);

// Returns whether the time is in the first month of the layout, and at least a month ago. Small
// numbers, such as ids of segment tags, have such times.
bool IsOfFirstDays(const Explanation& e, WallMs now) {
  const auto layout = Layout::Parse(e.layout);
  if (!layout.ok()) return false;
  const WallMs end = layout->epoch() + kFirstDays;
  return e.time < end && end + kFirstDays < now;
}

}  // namespace

std::string TimeNote(const Explanation& e, WallMs now) {
  if (e.time > now + kAhead) {
    return "that time is in the future: the id has another layout, belongs to a segment tag, or is "
           "obfuscated (" +
           PrintCommand(PrintedCommand::kExplainTag) + ")";
  }
  if (IsOfFirstDays(e, now)) {
    return "that time is in the layout's first month: the id is probably a number of a segment or "
           "dated tag (" +
           PrintCommand(PrintedCommand::kExplainTag) + ")";
  }
  return {};
}

void AddNote(Output& output, const std::string& note) {
  if (note.empty()) return;
  output.json.back()["note"] = note;
  output.text += "  NOTE: " + note + "\n";
}

Result<LayoutChoice> ChosenLayout() { return ParseLayoutChoice(FLAGS_layout, FLAGS_rack_bits); }

IdOptions ReadIdOptions() {
  return {.form = FLAGS_form, .form_is_given = IsFlagSet("form"), .key_dir = FLAGS_key_dir};
}

Result<std::vector<int64_t>> IdsIn(const std::vector<std::string>& words,
                                   const IdOptions& options) {
  if (words.empty()) return Invalid("name at least one id");
  FIRN_ASSIGN(const Base base, BaseOfForm(options.form));
  std::vector<int64_t> ids;
  for (const std::string& word : words) {
    const Result<int64_t> id = ParseId(base, word);
    if (!id.ok()) return id.status().WithContext("'" + word + "'");
    ids.push_back(*id);
  }
  return ids;
}

Result<std::vector<int64_t>> IdsOfTag(const TagDefinition& tag, const Layout& layout,
                                      const std::vector<std::string>& words,
                                      const IdOptions& options) {
  std::vector<int64_t> ids;
  if (options.form_is_given) {
    FIRN_ASSIGN(ids, IdsIn(words, options));
  } else {
    for (const std::string& word : words) {
      FIRN_ASSIGN(const int64_t id, ShownId(tag, layout, word));
      ids.push_back(id);
    }
  }
  for (int64_t& id : ids) {
    FIRN_ASSIGN(id, PlainId(tag, id, options.key_dir));
  }
  return ids;
}

}  // namespace firn
