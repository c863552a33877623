#include "server/node/kept_tags.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/quote.h"
#include "common/log/log.h"
#include "common/tag/tag_name.h"
#include "registry/cluster/records.h"

namespace firn {
namespace {

constexpr std::string_view kFirstWords = "firn tags 2 ";
constexpr std::string_view kNoStrategy = "-";
constexpr std::array<std::string_view, 3> kStates = {"fine", "unreadable", "lost"};
constexpr size_t kBytesMax = 256 << 20;

// Moves the text before the next `end` from `text` to `taken`; false if there is no `end`.
bool TakeUpTo(char end, std::string_view& text, std::string_view& taken) {
  const size_t at = text.find(end);
  if (at == text.npos) return false;
  taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return true;
}

std::string DataOf(const KnownTag& tag) {
  if (tag.node.tag.strategy.empty()) return "";  // its node was never readable
  return WriteTagNode(tag.node).value_or("");
}

Status ParseLine(std::string_view line, KnownTags& tags) {
  std::string_view name, state;
  if (!TakeUpTo(' ', line, name) || !TakeUpTo(' ', line, state))
    return Corrupt("a line ends before the tag's state");
  FIRN_ASSIGN(const std::string tag, DecodeTagName(name));
  KnownTag known;
  for (size_t i = 0; i <= kStates.size(); ++i) {
    if (i == kStates.size())
      return Corrupt(Cat("tag ", Quoted(tag), " has the unknown state ", Quoted(state)));
    if (kStates[i] != state) continue;
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

std::string FormatKnownTags(const std::string& uuid, const KnownTags& tags) {
  std::string text(kFirstWords);
  text += uuid + " ";
  text += tags.default_strategy.empty() ? std::string(kNoStrategy) : tags.default_strategy;
  text += "\n";
  for (const auto& [name, tag] : tags.tags) {
    text += EncodeTagName(name) + " ";
    text += kStates[static_cast<size_t>(tag.state)];
    text += " " + DataOf(tag) + "\n";
  }
  return Cat(text, "end ", tags.tags.size(), "\n");
}

Result<KnownTags> ParseKnownTags(const std::string& uuid, std::string_view text) {
  KnownTags tags;
  std::string_view line;
  if (!TakeUpTo('\n', text, line) || !line.starts_with(kFirstWords))
    return Corrupt(Cat("its first line does not begin with '", kFirstWords, "'"));
  line.remove_prefix(kFirstWords.size());
  std::string_view whose;
  if (!TakeUpTo(' ', line, whose) || whose != uuid) return Corrupt("it belongs to another cluster");
  if (line != kNoStrategy) tags.default_strategy = line;
  if (!IsDefaultStrategy(tags.default_strategy))
    return Corrupt(Cat("its default strategy ", Quoted(line), " is unknown"));
  while (TakeUpTo('\n', text, line)) {
    if (line == Cat("end ", tags.tags.size()) && text.empty()) return tags;
    FIRN_TRY(ParseLine(line, tags));
  }
  return Corrupt("its last line is missing or does not match the number of tags");
}

Result<KnownTags> KeptTags::ReadFrom(const std::string& stem, const std::string& uuid) {
  const std::string path = PathOf(stem, uuid);
  FIRN_ASSIGN(const std::string text, ReadRegularFile(path, kBytesMax, O_NOFOLLOW));
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
