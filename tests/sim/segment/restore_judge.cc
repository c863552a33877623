#include "tests/sim/segment/restore_judge.h"

#include <algorithm>

#include "common/base/cat.h"
#include "tests/sim/segment/segment_violation.h"

namespace firn {
namespace {

TagDefinition WithoutLedger(TagDefinition tag) {
  tag.start.reset();
  tag.high = 0;
  return tag;
}

// Returns the registry's definition with the owner that an answer gave the tag.
TagDefinition WithOwner(TagDefinition tag) {
  tag.buffer = TagBuffer::kOwner;
  tag.when_store_is_away = StoreAway::kRefuse;
  return tag;
}

bool MayHave(const TagDefinition& tag, const RestoreSources& from) {
  const auto is_same = [&tag](const TagDefinition& source) {
    return WithoutLedger(source) == WithoutLedger(tag);
  };
  const auto last = from.last.find(tag.name);
  const auto deleted = from.deleted.find(tag.name);
  if (last != from.last.end() && is_same(last->second)) return true;
  if (deleted != from.deleted.end() && is_same(deleted->second)) return true;
  const bool owned = last != from.last.end() && last->second.buffer == TagBuffer::kOwner;
  for (const StoredTag& stored : from.before.tags) {
    if (is_same(stored.tag()) || (owned && is_same(WithOwner(stored.tag())))) return true;
  }
  if (from.defined.contains(tag.name)) return false;
  return std::ranges::any_of(from.documents, [&](const Backup& document) {
    const TagNode* const saved = document.Find(tag.name);
    return saved != nullptr && is_same(saved->tag);
  });
}

}  // namespace

void CheckRestored(const TagListing& after, const RestoreSources& from, NumberOracle& oracle) {
  std::map<std::string, TagDefinition> restored;
  for (const StoredTag& stored : after.tags) {
    restored[stored.tag().name] = stored.tag();
    if (!MayHave(stored.tag(), from)) {
      throw SegmentViolation(
          Cat("a restore gave tag ", stored.tag().name, " a definition of no source"));
    }
  }
  for (const auto& [name, last] : from.last) {
    const auto tag = restored.find(name);
    const bool issued = !last.HasLedger() || oracle.Highest(name) > 0;
    if (tag == restored.end()) {
      if (!issued && std::ranges::count(after.deleted, name) > 0) continue;
      throw SegmentViolation(Cat("a restore forgot tag ", name));
    }
    const bool keeps = from.issued.contains(name) || from.defined.contains(name);
    if (!keeps || FormOf(tag->second) == FormOf(last)) continue;
    throw SegmentViolation(Cat("a restore changed the form of tag ", name));
  }
}

}  // namespace firn
