#include "server/node/kept_tags.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/log/log.h"
#include "common/tag/tag_form.h"

namespace firn {
namespace {

Status Replace(const std::string& path, const std::string& text) {
  Status kept = ReplaceFile(path, {.path = path + ".new"}, text);
  if (kept.ok()) return kept;
  LogError("state_failed")
      << "tag definitions cannot be saved, so a start without the registry would serve no "
         "tags: "
      << kept;
  const bool gone = unlink(path.c_str()) == 0 || errno == ENOENT;
  if (!gone)
    LogError("state_failed") << FileFailure("removing", path, errno) << "; remove it by hand";
  return kept;
}

}  // namespace

bool IsForged(const TagDefinition& before, const TagDefinition& now) {
  return !before.strategy.empty() && before.MayHaveIssued() && !LookAlike(before, now);
}

void NoteLostOwner(const TagDefinition& before, const TagDefinition& now) {
  if (!before.MayHaveIssued() || MayBecome(before, now) || !LookAlike(before, now)) return;
  LogError("owner_lost").With("tag", now.name)
      << "tag " << now.name
      << " has lost buffer=owner: the registry lost data, or a restore left the setting out. "
         "Numbers of the tag can be out of order until an edit sets buffer=owner again";
}

TagNode WithoutLedger(TagNode node, const KnownTag& before) {
  const bool used = node.tag.high > 0 || before.node.tag.high > 0;
  node.tag.high = used ? 1 : 0;
  node.returned = 0;
  node.stand_in = {};
  return node;
}

bool KnownLedgers::Note(const std::string& tag, int64_t high, int64_t returned) {
  const At read{high, returned};
  At& known = ledgers_[tag];
  const auto sum = [](const At& at) {
    return static_cast<uint64_t>(at.high) + static_cast<uint64_t>(at.returned);
  };
  const bool fell = sum(read) < sum(known) && high < known.high;
  if (known == read || fell) return false;
  known = read;
  return true;
}

KnownTags KnownLedgers::In(KnownTags tags) const {
  for (const auto& [name, ledger] : ledgers_) {
    const auto known = tags.tags.find(name);
    if (known == tags.tags.end() || !known->second.node.tag.HasLedger()) continue;
    known->second.node.tag.high = ledger.high;
    known->second.node.returned = ledger.returned;
  }
  return tags;
}

Result<KnownTags> KeptTags::ReadFrom(const std::string& stem, const std::string& uuid) {
  const std::string path = PathOf(stem, uuid);
  FIRN_ASSIGN(const std::string text, ReadRegularFile(path, kKnownTagsBytesMax, O_NOFOLLOW));
  auto tags = ParseKnownTags(uuid, text);
  return tags.ok() ? tags : tags.status().WithContext(path);
}

void KeptTags::Read(const std::string& uuid, Loaded done) {
  const bool posted = thread_.Post(
      [this, uuid, done] { control_([done, kept = ReadFrom(stem_, uuid)] { done(kept); }); });
  if (!posted)
    control_([done] { done(Unavailable("the thread that reads tag definitions cannot start")); });
}

void KeptTags::Keep(const std::string& uuid, const KnownTags& tags, Kept done) {
  const bool posted =
      thread_.Post([this, path = PathOf(stem_, uuid), text = FormatKnownTags(uuid, tags), done] {
        control_([done, kept = Replace(path, text)] { done(kept); });
      });
  if (!posted)
    control_([done] { done(Unavailable("the thread that saves tag definitions cannot start")); });
}

}  // namespace firn
