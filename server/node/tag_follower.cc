#include "server/node/tag_follower.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/log/log.h"
#include "common/tag/tag_name.h"
#include "server/node/refusing_strategy.h"

namespace firn {
namespace {

constexpr int32_t kNotReadRetryMs = 100;
constexpr Milliseconds kSecond{1'000};
constexpr Milliseconds kLooksKept{2'000};  // longer than calls wait

constexpr char kGone[] =
    "the tag's node has gone from the registry: data were lost. Run firn restore with the words "
    "that this server's log and /v1/status show";
constexpr char kOtherForm[] =
    "the tag has come back in another form, which no edit can do: data were lost. Make another tag";

std::shared_ptr<Strategy> Refusing(Refusal refusal) {
  return std::make_shared<RefusingStrategy>(std::move(refusal));
}

TagBinding NotRead() {
  return {
      .name = "",
      .strategy = Refusing({Reason::kNotReady, "this server has not read the tags' definitions yet",
                            kNotReadRetryMs, true}),
      .plugins = {}};
}

// Whether ids of another form than `now` has may be out under what was known before.
bool IsForged(const KnownTag& before, const TagDefinition& now) {
  const TagDefinition& tag = before.node.tag;
  return !tag.strategy.empty() && tag.MayHaveIssued() && FormOf(tag) != FormOf(now);
}

// Of the ledger, which moves all the time, only whether ids of this form may be out.
TagNode WithoutLedger(TagNode node, const KnownTag& before) {
  const bool used = node.tag.high > 0 || before.node.tag.high > 0;
  node.tag.high = used ? 1 : 0;
  node.returned = 0;
  node.stand_in = {};
  return node;
}

}  // namespace

TagFollower::TagFollower(Coordinator& coordinator, Entropy& entropy, const Catalogue& catalogue,
                         Issuer& issuer, std::string uuid, TagMemory* memory)
    : catalogue_(catalogue),
      issuer_(issuer),
      memory_(memory),
      uuid_(std::move(uuid)),
      meta_(coordinator, entropy, [this](const Result<ClusterMeta>& meta) { OnMeta(meta); }),
      watch_(coordinator, entropy, std::string(kTagsPath), [this] { Follow(); }),
      talk_(coordinator) {
  issuer_.SetDefault(NotRead());
}

void TagFollower::Tick(BootMs now) {
  now_ = now;
  if (!began_) began_ = now;
  meta_.Tick(now);
  watch_.Tick(now);
  talk_.Tick(now);
  SendLooks();
  if (!whole_) GoByKept();
  if (unkept_ && !keeping_ && now - *unkept_ >= kKeepAgain) Keep();
}

void TagFollower::Redefined(const std::string& tag) {
  served_.erase(tag);
  watch_.Look(EncodeTagName(tag));
}

// --- what the registry says ---------------------------------------------------------------------

void TagFollower::OnMeta(const Result<ClusterMeta>& meta) {
  if (!meta.ok()) return;
  const bool first = !default_strategy_.has_value();
  if (uuid_ != meta->uuid) {
    uuid_ = meta->uuid;
    loaded_ = false;
    kept_.reset();
  }
  default_strategy_ = meta->default_strategy;
  frozen_ = meta->frozen;
  if (first && watch_.whole()) Follow();
}

void TagFollower::Follow() {
  if (!default_strategy_) return;  // OnMeta comes back
  LoadKept();
  KnownTags read = ReadAll();
  NoteLost(read);
  known_ = std::move(read);
  TellLost();
  KeepThenServe();
}

KnownTags TagFollower::ReadAll() {
  KnownTags read{.default_strategy = *default_strategy_};
  auto highest = std::make_shared<Ledgers>(*highest_);
  for (const auto& [component, node] : watch_.nodes()) {
    const Result<std::string> name = DecodeTagName(component);
    if (!name.ok()) {
      LogWarning() << "not a tag: " << watch_.path() << "/" << component << ": " << name.status();
      continue;
    }
    const Result<TagNode>& tag = Parse(*name, node.data);
    if (IsDeleted(*name, tag)) {
      if (on_seen_) on_seen_(*name, *tag);
      Forget(*name);
      continue;
    }
    deleted_.erase(*name);
    read.tags[*name] = ReadOne(*name, tag, *highest);
  }
  if (*highest != *highest_) highest_ = std::move(highest);
  std::erase_if(parsed_, [&read](const auto& one) { return !read.tags.contains(one.first); });
  return read;
}

const Result<TagNode>& TagFollower::Parse(const std::string& name, const std::string& data) {
  const auto found = parsed_.find(name);
  if (found != parsed_.end() && found->second.first == data) return found->second.second;
  std::pair read(data, ReadTagNode(name, data));
  return parsed_.insert_or_assign(name, std::move(read)).first->second.second;
}

KnownTag TagFollower::ReadOne(const std::string& name, const Result<TagNode>& tag,
                              Ledgers& highest) {
  const auto before = known_.tags.find(name);
  KnownTag known = before != known_.tags.end() ? before->second : KnownTag();
  if (!tag.ok()) {
    known.state = KnownTag::State::kUnreadable;
    Refuse(name, Reason::kInternal, tag.status().message());
    return known;
  }
  int64_t& seen = highest[name];
  seen = std::max(seen, tag->tag.high);
  if (on_seen_) on_seen_(name, *tag);
  if (tag->deleted || IsForged(known, tag->tag)) {
    known.state = KnownTag::State::kLost;
    Refuse(name, Reason::kInternal, tag->deleted ? kGone : kOtherForm);
    return known;
  }
  if (tag->tag.disabled) Refuse(name, Reason::kRejected, "the tag is disabled");
  return {.node = WithoutLedger(*tag, known)};
}

// Whoever knows that ids may be out knows that data were lost.
bool TagFollower::IsDeleted(const std::string& name, const Result<TagNode>& tag) const {
  if (!tag.ok() || !tag->deleted) return false;
  const auto known = known_.tags.find(name);
  if (known == known_.tags.end()) return true;
  const TagDefinition& before = known->second.node.tag;
  return before.strategy.empty() || !before.MayHaveIssued();
}

void TagFollower::Forget(const std::string& name) {
  const bool known = known_.tags.erase(name) + served_.erase(name) + refused_.erase(name) > 0;
  if (!deleted_.insert(name).second || !known) return;
  LogInfo() << "tag " << name << " was deleted";
  if (on_deleted_) on_deleted_(name);
  TagDefinition undefined;
  undefined.strategy = *default_strategy_;
  Result<TagBinding> binding = catalogue_.Bind(undefined);
  if (default_strategy_->empty() || !binding.ok()) return issuer_.Remove(name);
  binding->name = name;
  if (!issuer_.Set(*std::move(binding)).ok()) issuer_.Remove(name);
}

// Rule 5: what was known and is not there any more.
void TagFollower::NoteLost(KnownTags& read) {
  for (const auto& [name, before] : known_.tags) {
    if (read.tags.contains(name)) continue;
    if (watch_.nodes().size() >= FolderWatch::kNodesMax) {  // others are not looked at
      read.tags[name] = before;
      continue;
    }
    const bool news = before.state != KnownTag::State::kLost;
    if (news && on_seen_) on_seen_(name, std::nullopt);
    read.tags[name] = {.state = KnownTag::State::kLost, .node = before.node};
    Refuse(name, Reason::kInternal, kGone);
  }
}

void TagFollower::TellLost() {
  Definitions lost;
  for (const auto& [name, known] : known_.tags) {
    const bool defined = !known.node.tag.strategy.empty();
    if (known.state == KnownTag::State::kLost && defined) lost.emplace(name, known.node.tag);
  }
  if (lost != *lost_) lost_ = std::make_shared<Definitions>(std::move(lost));
}

// --- what is kept -------------------------------------------------------------------------------

void TagFollower::LoadKept() {
  if (memory_ == nullptr || uuid_.empty() || std::exchange(loaded_, true)) return;
  const Result<KnownTags> kept = memory_->Read(uuid_);
  if (kept.ok()) {
    kept_ = *kept;
    known_.tags.insert(kept->tags.begin(), kept->tags.end());
  } else if (kept.code() != Code::kNotFound) {
    LogWarning() << "the tags that were kept cannot be gone by: " << kept.status();
  }
}

// Rule 1 for a start that does not reach its registry.
void TagFollower::GoByKept() {
  const bool asked = talk_.session() != 0;
  if (watch_.whole() || now_ - *began_ < (asked ? kPatienceWithSession : kPatience)) return;
  LoadKept();
  if (!kept_) return;
  LogWarning() << "the registry is away: tags are served as they were defined when it was there";
  ServeAll();
  ServeDefault(kept_->default_strategy);
}

// Rule 2.
void TagFollower::KeepThenServe() {
  if (memory_ == nullptr || kept_ == known_) {
    ServeAll();
    ServeDefault(known_.default_strategy);
    return;
  }
  Keep();
}

// Comes back to what waits for it.
void TagFollower::Keep() {
  if (std::exchange(keeping_, true)) return;
  memory_->Keep(uuid_, known_, [this, tags = known_](const Status& kept) { OnKept(tags, kept); });
}

void TagFollower::OnKept(const KnownTags& tags, const Status& kept) {
  if (kept.ok() && unkept_) LogInfo() << "the tags' definitions are kept again";
  unkept_ = kept.ok() ? std::nullopt : std::optional(now_);
  keeping_ = false;
  kept_ = tags;
  if (kept_ != known_) ServeAll();  // or a tag that changes all the time keeps others waiting
  KeepThenServe();
}

// --- what is served -----------------------------------------------------------------------------

// All tags but those whose definition has not been kept yet.
void TagFollower::ServeAll() {
  for (const auto& [name, known] : known_.tags) {
    if (memory_ != nullptr) {
      const auto kept = kept_->tags.find(name);
      if (kept == kept_->tags.end() || kept->second != known) continue;
    }
    const TagDefinition& tag = known.node.tag;
    if (known.state == KnownTag::State::kFine && !tag.disabled) {
      Serve(tag);
    } else if (!refused_.contains(name)) {  // by what was kept
      switch (known.state) {
        case KnownTag::State::kFine:
          Refuse(name, Reason::kRejected, "the tag is disabled");
          break;
        case KnownTag::State::kUnreadable:
          Refuse(name, Reason::kInternal, "its definition could not be read");
          break;
        case KnownTag::State::kLost:
          Refuse(name, Reason::kInternal, kGone);
          break;
      }
    }
  }
}

void TagFollower::ServeDefault(const std::string& strategy) {
  whole_ = true;
  if (default_served_ == strategy) return;
  default_served_ = strategy;
  if (strategy.empty()) return issuer_.SetDefault(std::nullopt);
  TagDefinition any;
  any.strategy = strategy;
  Result<TagBinding> binding = catalogue_.Bind(any);
  if (!binding.ok()) LogError() << "undefined tags cannot be served: " << binding.status();
  issuer_.SetDefault(binding.ok() ? std::optional(*std::move(binding)) : std::nullopt);
}

void TagFollower::Serve(TagDefinition tag) {
  tag.high = 0;
  const auto served = served_.find(tag.name);
  if (served != served_.end() && served->second == tag) return;
  Result<TagBinding> binding = catalogue_.Bind(tag);
  Status set = binding.status();
  if (set.ok()) set = issuer_.Set(*std::move(binding));
  if (!set.ok()) return Refuse(tag.name, Reason::kNotReady, set.message());
  LogInfo() << "serving tag " << tag.name << " (" << tag.strategy << ")";
  refused_.erase(tag.name);
  if (on_served_) on_served_(tag);
  served_[tag.name] = std::move(tag);
}

void TagFollower::Refuse(const std::string& name, Reason reason, std::string why) {
  served_.erase(name);
  if (refused_[name] == why) return;
  const bool alarm = reason == Reason::kInternal;
  if (alarm) LogError() << "refusing tag " << name << ": " << why;
  if (!alarm) LogWarning() << "refusing tag " << name << ": " << why;
  const Refusal refusal{.reason = reason,
                        .message = "tag '" + name + "': " + why,
                        .retry_after_ms = 0,
                        .another_server_may_help = reason == Reason::kNotReady};
  const Status set = issuer_.Set({.name = name, .strategy = Refusing(refusal), .plugins = {}});
  if (!set.ok()) LogError() << "tag " << name << " cannot be refused with its reason: " << set;
  if (!set.ok()) issuer_.Remove(name);
  refused_[name] = std::move(why);
}

void TagFollower::RaiseHighest(const Ledgers& higher) {
  std::shared_ptr<Ledgers> highest;
  for (const auto& [tag, high] : higher) {
    const auto known = highest_->find(tag);
    if (known != highest_->end() && known->second >= high) continue;
    if (highest == nullptr) highest = std::make_shared<Ledgers>(*highest_);
    (*highest)[tag] = high;
  }
  if (highest != nullptr) highest_ = std::move(highest);
}

// --- names that nobody knows --------------------------------------------------------------------

TagSeeker::Found TagFollower::Seek(std::string_view name, uint64_t& ticket) {
  if (!CheckTagName(name).ok()) return Found::kNothing;
  const std::lock_guard lock(mutex_);
  if (!reachable_) return Found::kUnanswered;
  auto looks = looks_.find(name);
  if (ticket != 0) {
    if (looks == looks_.end()) return Found::kUnanswered;
    return looks->second.answered < ticket ? Found::kLooking : looks->second.found;
  }
  if (looks == looks_.end()) looks = looks_.emplace(name, Looks{}).first;
  Looks& wanted = looks->second;
  ticket = wanted.sent + 1;  // one that is on its way may have been answered before the call came
  if (wanted.wanted >= ticket) return Found::kLooking;
  if (looks_left_ == 0) return Found::kNothing;
  --looks_left_;
  wanted.wanted = ticket;
  return Found::kLooking;
}

void TagFollower::SendLooks() {
  std::vector<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    reachable_ = talk_.session() != 0;
    if (now_ - looks_since_ >= kSecond) {
      looks_since_ = now_;
      looks_left_ = kLooksPerSecond;
    }
    for (auto& [name, looks] : looks_) {
      if (looks.sent != looks.answered || looks.wanted == looks.sent) continue;
      looks.sent = looks.wanted;
      names.push_back(name);
    }
    std::erase_if(looks_, [this](const auto& entry) {
      const Looks& looks = entry.second;
      return looks.wanted == looks.answered && now_ - looks.idle_since > kLooksKept;
    });
  }
  std::erase_if(looking_, [](const auto& look) { return !look.second.busy(); });
  for (const std::string& name : names) {
    Task<>& look = looking_[name] = Look(name);
    talk_.Start(look);
  }
}

Task<> TagFollower::Look(std::string name) {
  const std::vector<std::string> paths{TagPath(name)};
  Result<Nodes> nodes = co_await talk_.ReadSynced(paths);
  bool there = nodes.ok() && nodes->front().has_value();
  if (there) there = !ReadTagNode(name, nodes->front()->data).value_or({}).deleted;
  if (there) watch_.Look(EncodeTagName(name));  // and calls wait until it is served
  const std::lock_guard lock(mutex_);
  Looks& looks = looks_[name];
  looks.answered = looks.sent;
  looks.found = there ? Found::kLooking : Found::kNothing;
  if (!nodes.ok()) looks.found = Found::kUnanswered;
  looks.idle_since = now_;
}

}  // namespace firn
