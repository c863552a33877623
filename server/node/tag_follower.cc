#include "server/node/tag_follower.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "common/log/log.h"
#include "common/tag/tag_name.h"
#include "registry/cluster/slot.h"

namespace firn {
namespace {

std::string Gone() {
  return WithRestoreAdvice("the tag's node is missing from the registry, so data were lost");
}
constexpr char kOtherForm[] =
    "the tag has another form than before, which no edit can cause, so data were lost; create "
    "another tag";

constexpr Milliseconds kCheckNumbersEvery{1'000};

}  // namespace

TagFollower::TagFollower(Coordinator& coordinator, Entropy& entropy, const Catalogue& catalogue,
                         Issuer& issuer, std::string uuid, TagMemory* memory)
    : coordinator_(coordinator),
      memory_(memory),
      root_(std::move(uuid)),
      served_(catalogue, issuer),
      meta_(coordinator, entropy, [this](const Result<ClusterMeta>&) { RequestRead(); }),
      watch_(coordinator, entropy, std::string(kTagsPath), [this] { Follow(); }),
      lookups_(
          coordinator, [this](const std::string& tag) { watch_.ReadAgain(EncodeTagName(tag)); },
          [this](const std::string& tag) { return IsCreatable(tag); }),
      async_registry_(coordinator) {}

bool TagFollower::IsCreatable(const std::string& name) const {
  return whole_ && root_.why_not().empty() && !known_.tags.contains(name);
}

void TagFollower::Tick(BootMs now) {
  now_ = now;
  if (!began_) began_ = now;
  LoadKept();
  meta_.Tick(now);
  watch_.Tick(now);
  lookups_.Tick(now);
  async_registry_.Tick(now);
  if (look_wanted_ && !look_.busy() && async_registry_.session() != 0 && now >= look_at_) {
    look_wanted_ = false;
    look_ = ReadTags();
    async_registry_.Start(look_);
  }
  if (!whole_) UseCachedTags();
  if (now >= look_for_numbers_at_) {
    look_for_numbers_at_ = now + kCheckNumbersEvery;
    served_.CheckNumbers();
  }
  if (unkept_ && !keeping_ && now - *unkept_ >= kKeepAgain) Keep();
  if (ledgers_due_ && memory_ != nullptr && now >= *ledgers_due_) Keep();
}

void TagFollower::Redefined(const std::string& tag) {
  served_.Renew(tag);
  watch_.ReadAgain(EncodeTagName(tag));
}

// --- readings of the registry --------------------------------------------------------------------

// Reads the root node, and the tags that may have changed, after one sync.
Task<> TagFollower::ReadTags() {
  const std::vector<std::string> root{kMetaPath};
  Result<Nodes> read = co_await async_registry_.ReadSynced(root);
  if (!read.ok()) co_return ReadLater();
  NoteRoot(read->front());
  if (memory_ != nullptr && !loaded_) co_return;  // OnLoaded requests another read
  if (!root_.whole()) co_return Distrust();
  if (!watch_.whole()) co_return;  // Follow requests another read
  const std::vector<std::string> doubted = FindDoubts().tags;
  std::set<std::string> confirmed;
  if (!doubted.empty()) {
    std::vector<std::string> paths;
    for (const std::string& name : doubted) paths.push_back(TagPath(name));
    paths.emplace_back(kMetaPath);
    Result<Nodes> nodes = co_await async_registry_.ReadSynced(paths);
    if (!nodes.ok()) co_return ReadLater();
    NoteRoot(nodes->back());
    if (!root_.whole()) co_return Distrust();
    for (size_t i = 0; i < doubted.size(); ++i) {
      if (IsConfirmed(doubted[i], (*nodes)[i])) {
        confirmed.insert(doubted[i]);
      } else {
        watch_.ReadAgain(EncodeTagName(doubted[i]));
      }
    }
  }
  for (const std::string& name : FindDoubts().tags) {
    if (!confirmed.contains(name)) co_return ReadLater();
  }
  TakeAll();
}

void TagFollower::NoteRoot(const std::optional<Node>& node) {
  const RootState before = root_.state();
  root_.Note(node);
  if (root_.state() == before || !root_.lost()) return;
  LogError("registry_lost_data")
      << root_.why_not()
      << ". Tags without a ledger are served until the claim ends, others are refused";
}

// Rule 5a.
void TagFollower::Distrust() {
  NoteUnserved();
  if (!whole_) return;  // UseCachedTags uses the cache later
  ServeTags();
  served_.RefuseDefault(root_.why_not());
}

void TagFollower::Follow() {
  const Doubts doubts = FindDoubts();
  // At a start even an empty folder needs a reading: it may result from a loss of data.
  if (!whole_ || !root_.whole() || doubts.news || !doubts.tags.empty()) return RequestRead();
  TakeAll();
}

// Returns whether the tag's node, which was just read, has the same meaning as the watch's copy.
bool TagFollower::IsConfirmed(const std::string& name, const std::optional<Node>& node) {
  const auto copy = watch_.nodes().find(EncodeTagName(name));
  if (!node || copy == watch_.nodes().end()) return !node && copy == watch_.nodes().end();
  return Judge(name, ReadTagNode(name, node->data)) == Judge(name, Parse(name, copy->second.data));
}

TagFollower::Doubts TagFollower::FindDoubts() {
  Doubts doubts;
  const auto& nodes = watch_.nodes();
  for (const auto& [component, node] : nodes) {
    const Result<std::string> name = DecodeTagName(component);
    if (name.ok() && !known_.tags.contains(*name))
      doubts.news |= !IsDeleted(*name, Parse(*name, node.data));
  }
  for (const auto& [name, known] : known_.tags) {
    const auto node = nodes.find(EncodeTagName(name));
    const bool differs = node == nodes.end()
                             ? known.state != KnownTag::State::kLost && !watch_.cut()
                             : Judge(name, Parse(name, node->second.data)) != known;
    if (differs) doubts.tags.push_back(name);
  }
  return doubts;
}

void TagFollower::TakeAll() {
  KnownTags read = ReadAll();
  NoteLost(read);
  known_ = std::move(read);
  KeepThenServe();
}

KnownTags TagFollower::ReadAll() {
  KnownTags read{.default_strategy = root_.meta()->default_strategy, .complete = !watch_.cut()};
  Ledgers seen;
  for (const auto& [component, node] : watch_.nodes()) {
    const Result<std::string> name = DecodeTagName(component);
    if (!name.ok()) {
      LogWarning("tag_unreadable")
          << "not a tag: " << watch_.path() << "/" << component << ": " << name.status();
      continue;
    }
    const Result<TagNode>& tag = Parse(*name, node.data);
    if (IsDeleted(*name, tag)) {
      if (on_seen_) on_seen_(*name, *tag);
      Forget(*name);
      continue;
    }
    read.tags[*name] = ReadOne(*name, tag, seen);
  }
  RaiseHighest(seen);
  std::erase_if(parsed_, [this](const auto& one) {
    return !watch_.nodes().contains(EncodeTagName(one.first));
  });
  return read;
}

const Result<TagNode>& TagFollower::Parse(const std::string& name, const std::string& data) {
  const auto found = parsed_.find(name);
  if (found != parsed_.end() && found->second.first == data) return found->second.second;
  std::pair read(data, ReadTagNode(name, data));
  return parsed_.insert_or_assign(name, std::move(read)).first->second.second;
}

// Interprets a reading of a tag's node; returns nullopt if the tag is deleted.
std::optional<KnownTag> TagFollower::Judge(const std::string& name,
                                           const Result<TagNode>& tag) const {
  if (IsDeleted(name, tag)) return std::nullopt;
  const auto before = known_.tags.find(name);
  KnownTag known = before != known_.tags.end() ? before->second : KnownTag();
  if (!tag.ok()) {
    known.state = KnownTag::State::kUnreadable;
    return known;
  }
  if (!tag->deleted && !IsForged(known.node.tag, tag->tag))
    return KnownTag{.node = WithoutLedger(*tag, known)};
  known.state = KnownTag::State::kLost;
  return known;
}

KnownTag TagFollower::ReadOne(const std::string& name, const Result<TagNode>& tag, Ledgers& seen) {
  KnownTag known = *Judge(name, tag);
  if (!tag.ok()) {
    served_.Refuse(name, TagState::kUnreadable, tag.status().message());
    return known;
  }
  seen[name] = tag->tag.high;
  if (on_seen_) on_seen_(name, *tag);
  if (known.state == KnownTag::State::kLost) {
    served_.Refuse(name, TagState::kLost, tag->deleted ? Gone() : kOtherForm);
  } else if (tag->tag.disabled) {
    served_.Refuse(name, TagState::kDisabled, "the tag is disabled");
  }
  if (known.state == KnownTag::State::kFine && tag->tag.HasLedger()) {
    NoteLedger(name, tag->tag.high, tag->returned);
  }
  return known;
}

// A deleted node whose ids may have been issued is a loss of data, because no edit does that.
bool TagFollower::IsDeleted(const std::string& name, const Result<TagNode>& tag) const {
  if (!tag.ok() || !tag->deleted) return false;
  const auto known = known_.tags.find(name);
  if (known == known_.tags.end()) return true;
  const TagDefinition& before = known->second.node.tag;
  return before.strategy.empty() || !before.MayHaveIssued();
}

void TagFollower::Forget(const std::string& name) {
  if (known_.tags.erase(name) == 0 && !served_.knows(name)) return;
  LogInfo("tag_deleted").With("tag", name) << "tag " << name << " was deleted";
  if (on_deleted_) on_deleted_(name);
  served_.Forget(name, root_.meta()->default_strategy);
}

// Rule 5. Marks known tags whose nodes are missing as lost, and notes lost owners.
void TagFollower::NoteLost(KnownTags& read) {
  for (const auto& [name, before] : known_.tags) {
    const auto now = read.tags.find(name);
    if (now != read.tags.end()) {
      NoteLostOwner(before.node.tag, now->second.node.tag);
      continue;
    }
    if (watch_.cut()) {
      read.tags[name] = before;
      continue;
    }
    if (before.state != KnownTag::State::kLost && on_seen_) on_seen_(name, std::nullopt);
    read.tags[name] = {.state = KnownTag::State::kLost, .node = before.node};
    served_.Refuse(name, TagState::kLost, Gone());
  }
}

// If the root node is lost, all tags are.
void TagFollower::NoteUnserved() {
  Definitions unserved;
  for (const auto& [name, known] : known_.tags) {
    const bool refused = root_.lost() || served_.refuses(name);
    const TagDefinition& tag = known.node.tag;
    if (refused && !tag.strategy.empty()) unserved.emplace(name, tag);
  }
  if (unserved != *unserved_) unserved_ = std::make_shared<Definitions>(std::move(unserved));
}

// --- cached definitions --------------------------------------------------------------------------

void TagFollower::LoadKept() {
  if (memory_ == nullptr || root_.uuid().empty() || std::exchange(loading_, true)) return;
  memory_->Read(root_.uuid(),
                guard_.Bind([this](Result<KnownTags> kept) { OnLoaded(std::move(kept)); }));
}

void TagFollower::OnLoaded(Result<KnownTags> kept) {
  loaded_ = true;
  if (root_.state() != RootState::kUnread) RequestRead();
  if (kept.ok()) {
    kept_ = *std::move(kept);
    Ledgers high;
    for (auto& [name, known] : kept_->tags) {
      const TagNode& node = known.node;
      if (node.tag.HasLedger()) {
        ledgers_.Note(name, node.tag.high, node.returned);
        if (node.tag.high > 0) {
          high[name] = node.tag.high;
          if (on_remembered_) on_remembered_(name, node);
        }
      }
      known.node = WithoutLedger(node, KnownTag());
    }
    RaiseHighest(high);
    known_.tags.insert(kept_->tags.begin(), kept_->tags.end());
    known_.complete = kept_->complete;
  } else if (kept.code() != Code::kNotFound) {
    LogWarning("state_unusable") << "the cached tag definitions cannot be used: " << kept.status();
  }
}

// Rule 1 for a start that cannot reach the registry, or that finds an untrusted root node.
void TagFollower::UseCachedTags() {
  const bool asked = coordinator_.session() != 0;
  const bool read = root_.whole() && watch_.whole();
  if (read || !kept_ || now_ - *began_ < (asked ? kPatienceWithSession : kPatience)) return;
  LogWarning("tags_from_cache") << (root_.why_not().empty() ? "the registry is unreachable"
                                                            : root_.why_not())
                                << ": tags are served by the definitions that were read last";
  ServeAll(kept_->default_strategy);
}

// Rule 2.
void TagFollower::KeepThenServe() {
  if (memory_ == nullptr || kept_ == known_) return ServeAll(known_.default_strategy);
  Keep();
}

void TagFollower::NoteLedger(const std::string& name, int64_t high, int64_t returned) {
  if (ledgers_.Note(name, high, returned) && !ledgers_due_) ledgers_due_ = now_ + kKeepLedgersEvery;
}

bool TagFollower::KeptLedgers() {
  if (memory_ == nullptr || root_.uuid().empty()) return true;
  if (keeping_) return false;
  const bool due = ledgers_due_ || (unkept_ && !std::exchange(kept_at_stop_, true));
  if (due) Keep();
  return !due;
}

void TagFollower::Keep() {
  if (std::exchange(keeping_, true)) return;
  ledgers_due_.reset();
  memory_->Keep(root_.uuid(), ledgers_.In(known_),
                guard_.Bind([this, tags = known_](const Status& kept) { OnKept(tags, kept); }));
}

void TagFollower::OnKept(const KnownTags& tags, const Status& kept) {
  if (kept.ok() && unkept_) LogInfo("state_recovered") << "tag definitions are saved again";
  unkept_ = kept.ok() ? std::nullopt : std::optional(now_);
  keeping_ = false;
  kept_ = tags;
  if (kept_ != known_) ServeTags();  // so that a tag that changes often does not delay the others
  KeepThenServe();
}

// --- served tags ---------------------------------------------------------------------------------

void TagFollower::ServeAll(const std::string& default_strategy) {
  ServeTags();
  whole_ = true;
  if (root_.why_not().empty()) return served_.ServeDefault(default_strategy);
  served_.RefuseDefault(root_.why_not());
}

// Skips tags whose current definition is not stored yet.
void TagFollower::ServeTags() {
  for (const auto& [name, known] : known_.tags) {
    if (memory_ != nullptr) {
      const auto kept = kept_->tags.find(name);
      if (kept == kept_->tags.end() || kept->second != known) continue;
    }
    const TagDefinition& tag = known.node.tag;
    const bool fine = known.state == KnownTag::State::kFine && !tag.disabled;
    if (fine && root_.lost() && tag.HasLedger()) {
      served_.Refuse(name, TagState::kNoRoot, root_.why_not());
    } else if (fine) {
      served_.Serve(tag);
    } else if (!served_.refuses(name)) {
      RefuseByCache(name, known.state);
    }
  }
  NoteUnserved();
}

void TagFollower::RefuseByCache(const std::string& name, KnownTag::State state) {
  switch (state) {
    case KnownTag::State::kFine:
      return served_.Refuse(name, TagState::kDisabled, "the tag is disabled");
    case KnownTag::State::kUnreadable:
      return served_.Refuse(name, TagState::kUnreadable, "its definition could not be read");
    case KnownTag::State::kLost:
      return served_.Refuse(name, TagState::kLost, Gone());
  }
}

void TagFollower::RaiseHighest(const Ledgers& higher) {
  if (higher.empty()) return;
  Ledgers all = *highest_;
  for (const auto& [tag, high] : higher) all[tag] = std::max(all[tag], high);
  if (all != *highest_) highest_ = std::make_shared<Ledgers>(std::move(all));
}

}  // namespace firn
