#include "registry/state/known_tags.h"

#include <array>
#include <utility>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/tag/tag_name.h"
#include "registry/cluster/records.h"

namespace firn {
namespace {

constexpr std::string_view kTagsFirstWords = "firn tags 2 ";
constexpr size_t kFormatAt = kTagsFirstWords.size() - 2;
constexpr char kIncomplete = '3';  // the format of an incomplete list
constexpr std::string_view kNoStrategy = "-";
constexpr std::array<std::string_view, 3> kTagStates = {"fine", "unreadable", "lost"};

// Takes what stands before the next `end` off `text`; false when there is none.
bool TakeUpTo(char end, std::string_view& text, std::string_view& taken) {
  const size_t at = text.find(end);
  if (at == text.npos) return false;
  taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return true;
}

std::string DataOf(const KnownTag& tag) {
  if (tag.node.tag.strategy.empty()) return "";  // never read
  return WriteTagNode(tag.node).value_or("");
}

Status ParseTagLine(std::string_view line, KnownTags& tags) {
  std::string_view name, state;
  if (!TakeUpTo(' ', line, name) || !TakeUpTo(' ', line, state))
    return Corrupt("a line ends before the tag's state");
  FIRN_ASSIGN(const std::string tag, DecodeTagName(name));
  KnownTag known;
  for (size_t i = 0; i <= kTagStates.size(); ++i) {
    if (i == kTagStates.size())
      return Corrupt(Cat("tag ", Quoted(tag), " has the unknown state ", Quoted(state)));
    if (kTagStates[i] != state) continue;
    known.state = static_cast<KnownTag::State>(i);
    break;
  }
  if (!line.empty()) {
    FIRN_ASSIGN(known.node, ReadTagNode(tag, line));
  } else if (known.state == KnownTag::State::kFine) {
    return Corrupt(Cat("tag ", Quoted(tag), " has no definition"));
  }
  if (tags.tags.emplace(tag, std::move(known)).second) return {};
  return Corrupt(Cat("tag ", Quoted(tag), " is listed twice"));
}

}  // namespace

std::string FormatKnownTags(const std::string& uuid, const KnownTags& tags) {
  std::string text(kTagsFirstWords);
  // Version 0.1.0 cannot read this format, and needs none for a list of this length.
  if (!tags.complete && tags.tags.size() < kListedTagsMax) text[kFormatAt] = kIncomplete;
  text += uuid + " ";
  text += tags.default_strategy.empty() ? std::string(kNoStrategy) : tags.default_strategy;
  text += "\n";
  for (const auto& [name, tag] : tags.tags) {
    text += EncodeTagName(name) + " ";
    text += kTagStates[static_cast<size_t>(tag.state)];
    text += " " + DataOf(tag) + "\n";
  }
  return Cat(text, "end ", tags.tags.size(), "\n");
}

Result<KnownTags> ParseKnownTags(const std::string& uuid, std::string_view text) {
  KnownTags tags;
  std::string_view line;
  const bool has_line = TakeUpTo('\n', text, line);
  std::string words(line.substr(0, kTagsFirstWords.size()));
  tags.complete = words.size() <= kFormatAt || words[kFormatAt] != kIncomplete;
  if (!tags.complete) words[kFormatAt] = kTagsFirstWords[kFormatAt];
  if (!has_line || words != kTagsFirstWords)
    return Corrupt(Cat("its first line does not begin with '", kTagsFirstWords, "'"));
  line.remove_prefix(kTagsFirstWords.size());
  std::string_view whose;
  if (!TakeUpTo(' ', line, whose) || whose != uuid) return Corrupt("it belongs to another cluster");
  if (line != kNoStrategy) tags.default_strategy = line;
  if (!IsDefaultStrategy(tags.default_strategy))
    return Corrupt(Cat("its default strategy ", Quoted(line), " is unknown"));
  while (TakeUpTo('\n', text, line)) {
    if (line == Cat("end ", tags.tags.size()) && text.empty()) {
      tags.complete &= tags.tags.size() < kListedTagsMax;
      return tags;
    }
    FIRN_TRY(ParseTagLine(line, tags));
  }
  return Corrupt("its last line is missing or does not match the number of tags");
}

}  // namespace firn
