#include "server/node/served_tags.h"

#include <memory>
#include <utility>

#include "common/log/log.h"
#include "server/issue/refusing_strategy.h"

namespace firn {
namespace {

constexpr int32_t kNotReadRetryMs = 100;

// Returns a strategy for a known tag that must not be served here.
std::shared_ptr<Strategy> Refusing(Refusal refusal) {
  return std::make_shared<RefusingStrategy>(std::move(refusal));
}

// Returns whether the definitions differ only in the sizes of ranges and `buffer`, so that the same
// numbers are valid under both. All other fields determine where numbers come from, how they look,
// or whether they may be issued; so does a change from or to buffer = owner.
bool DifferInSupplyOnly(const TagDefinition& before, TagDefinition after) {
  if (FormOf(before) != FormOf(after)) return false;
  after.step = before.step;
  after.step_max = before.step_max;
  after.hold_minutes = before.hold_minutes;
  after.prefetch_at = before.prefetch_at;
  after.buffer = before.buffer;
  return before == after;
}

Result<TagBinding> BindUndefined(const Catalogue& catalogue, const std::string& strategy) {
  TagDefinition undefined;
  undefined.strategy = strategy;
  return catalogue.Bind(undefined);
}

}  // namespace

std::string_view TagStateName(TagState state) {
  switch (state) {
    case TagState::kDisabled:
      return "disabled";
    case TagState::kUnsupported:
      return "unsupported";
    case TagState::kUnreadable:
      return "unreadable";
    case TagState::kLost:
      return "lost";
    case TagState::kNoRoot:
      return "no_root";
    case TagState::kNoNumbers:
      return "no_numbers";
  }
  return "unknown";
}

Reason ServedTags::ReasonOf(TagState state) {
  switch (state) {
    case TagState::kDisabled:
      return Reason::kRejected;
    case TagState::kUnreadable:
    case TagState::kLost:
      return Reason::kInternal;
    case TagState::kNoNumbers:
      return Reason::kStoreDown;
    case TagState::kUnsupported:
    case TagState::kNoRoot:
      break;
  }
  return Reason::kNotReady;
}

ServedTags::ServedTags(const Catalogue& catalogue, Issuer& issuer)
    : catalogue_(catalogue), issuer_(issuer) {
  RefuseDefault("this server has not read the tags' definitions yet");
}

void ServedTags::Serve(TagDefinition tag) {
  tag.high = 0;
  const auto served = served_.find(tag.name);
  if (served != served_.end() && served->second == tag) return NoteOutdated(tag.name, {});
  Result<TagBinding> binding = catalogue_.Bind(tag);
  Status set = binding.status();
  // Binding has failed, so the earlier definition is still in use.
  if (!set.ok() && served != served_.end() && DifferInSupplyOnly(served->second, tag)) {
    return NoteOutdated(tag.name, set.message());
  }
  if (set.ok()) set = issuer_.Set(*std::move(binding));
  // kInvalid: the definition contradicts itself or its kind of store, so other servers cannot serve
  // it either.
  if (!set.ok()) {
    return Refuse(tag.name, TagState::kUnsupported, set.message(), set.code() != Code::kInvalid);
  }
  NoteOutdated(tag.name, {});
  LogInfo("tag_served").With("tag", tag.name).With("strategy", tag.strategy)
      << "serving tag " << tag.name << " (" << tag.strategy << ")";
  if (refused_.erase(tag.name) > 0) shown_.reset();
  if (on_served_) on_served_(tag);
  served_[tag.name] = std::move(tag);
}

void ServedTags::NoteOutdated(const std::string& name, const std::string& why) {
  const auto before = outdated_->find(name);
  const bool was = before != outdated_->end();
  if (was ? before->second == why : why.empty()) return;
  OutdatedTags after = *outdated_;
  if (why.empty()) {
    after.erase(name);
    LogInfo("tag_current").With("tag", name)
        << "tag " << name << " is no longer served by an earlier definition";
  } else {
    after.insert_or_assign(name, why);
    LogError("tag_outdated").With("tag", name).With("reason", why)
        << "tag " << name
        << " is served by an earlier definition until this server restarts: " << why;
  }
  outdated_ = std::make_shared<const OutdatedTags>(std::move(after));
}

void ServedTags::Refuse(const std::string& name, TagState state, std::string why,
                        bool another_may_help) {
  served_.erase(name);
  NoteOutdated(name, {});
  const auto before = refused_.find(name);
  if (before != refused_.end() && before->second.why == why) return;
  const Reason reason = ReasonOf(state);
  const bool alarm = reason == Reason::kInternal;
  LogLine(alarm ? Severity::kError : Severity::kWarning, "tag_refused")
          .With("tag", name)
          .With("reason", ReasonName(reason))
      << "refusing tag " << name << ": " << why;
  const Refusal refusal{.reason = reason,
                        .message = "tag '" + name + "': " + why,
                        .retry_after_ms = 0,
                        .another_server_may_help = another_may_help};
  const Status set = issuer_.Set({.name = name, .strategy = Refusing(refusal), .plugins = {}});
  if (!set.ok())
    LogError("internal") << "tag " << name << " cannot be refused with its reason: " << set;
  if (!set.ok()) issuer_.Remove(name);
  refused_.insert_or_assign(name, RefusedTag{state, reason, std::move(why)});
  shown_.reset();
}

// Skips snowflake tags, because the claim's status says why they have no ids.
void ServedTags::CheckNumbers() {
  RefusedTags empty, still;
  gives_numbers_ = false;
  for (const auto& [name, tag] : served_) {
    if (tag.strategy == "snowflake") continue;
    std::optional<Refusal> refusal = issuer_.WhyNot(name);
    gives_numbers_ |= !refusal;
    if (!refusal || refusal->reason == Reason::kDraining) continue;
    RefusedTag refused{TagState::kNoNumbers, refusal->reason, std::move(refusal->message)};
    if (empty_.contains(name)) still.emplace(name, refused);
    empty.emplace(name, std::move(refused));
  }
  empty_ = std::move(empty);
  if (still == no_numbers_) return;
  no_numbers_ = std::move(still);
  shown_.reset();
}

std::shared_ptr<const RefusedTags> ServedTags::refused() {
  if (shown_ == nullptr) {
    RefusedTags all = refused_;
    all.insert(no_numbers_.begin(), no_numbers_.end());
    shown_ = std::make_shared<const RefusedTags>(std::move(all));
  }
  return shown_;
}

void ServedTags::ServeDefault(const std::string& strategy) {
  if (default_ == strategy) return;
  default_ = strategy;
  if (strategy.empty()) return issuer_.SetDefault(std::nullopt);
  Result<TagBinding> binding = BindUndefined(catalogue_, strategy);
  if (!binding.ok())
    LogError("tag_refused") << "undefined tags cannot be served: " << binding.status();
  issuer_.SetDefault(binding.ok() ? std::optional(*std::move(binding)) : std::nullopt);
}

void ServedTags::RefuseDefault(std::string why) {
  default_.reset();
  Refusal refusal{Reason::kNotReady, std::move(why), kNotReadRetryMs, true};
  issuer_.SetDefault(
      TagBinding{.name = "", .strategy = Refusing(std::move(refusal)), .plugins = {}});
}

void ServedTags::Forget(const std::string& name, const std::string& strategy) {
  served_.erase(name);
  NoteOutdated(name, {});
  if (refused_.erase(name) > 0) shown_.reset();
  Result<TagBinding> binding = BindUndefined(catalogue_, strategy);
  if (strategy.empty() || !binding.ok()) return issuer_.Remove(name);
  binding->name = name;
  if (!issuer_.Set(*std::move(binding)).ok()) issuer_.Remove(name);
}

}  // namespace firn
