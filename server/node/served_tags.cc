#include "server/node/served_tags.h"

#include <memory>
#include <utility>

#include "common/log/log.h"
#include "server/node/refusing_strategy.h"

namespace firn {
namespace {

constexpr int32_t kNotReadRetryMs = 100;

std::shared_ptr<Strategy> Refusing(Refusal refusal) {
  return std::make_shared<RefusingStrategy>(std::move(refusal));
}

// For a name that nobody has defined.
Result<TagBinding> BindUndefined(const Catalogue& catalogue, const std::string& strategy) {
  TagDefinition undefined;
  undefined.strategy = strategy;
  return catalogue.Bind(undefined);
}

}  // namespace

ServedTags::ServedTags(const Catalogue& catalogue, Issuer& issuer)
    : catalogue_(catalogue), issuer_(issuer) {
  RefuseDefault("this server has not read the tags' definitions yet");
}

void ServedTags::Serve(TagDefinition tag) {
  tag.high = 0;
  const auto served = served_.find(tag.name);
  if (served != served_.end() && served->second == tag) return;
  Result<TagBinding> binding = catalogue_.Bind(tag);
  Status set = binding.status();
  if (set.ok()) set = issuer_.Set(*std::move(binding));
  if (!set.ok()) return Refuse(tag.name, Reason::kNotReady, set.message());
  LogInfo() << "serving tag " << tag.name << " (" << tag.strategy << ")";
  SetRefused(tag.name, std::nullopt);
  if (on_served_) on_served_(tag);
  served_[tag.name] = std::move(tag);
}

void ServedTags::Refuse(const std::string& name, Reason reason, std::string why) {
  served_.erase(name);
  const auto before = refused_->find(name);
  if (before != refused_->end() && before->second.why == why) return;
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
  SetRefused(name, Refused{reason, std::move(why)});
}

void ServedTags::SetRefused(const std::string& name, std::optional<Refused> refused) {
  if (!refused && !refuses(name)) return;
  auto fresh = std::make_shared<Refusals>(*refused_);
  if (refused) {
    fresh->insert_or_assign(name, *std::move(refused));
  } else {
    fresh->erase(name);
  }
  refused_ = std::move(fresh);
}

void ServedTags::ServeDefault(const std::string& strategy) {
  if (default_ == strategy) return;
  default_ = strategy;
  if (strategy.empty()) return issuer_.SetDefault(std::nullopt);
  Result<TagBinding> binding = BindUndefined(catalogue_, strategy);
  if (!binding.ok()) LogError() << "undefined tags cannot be served: " << binding.status();
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
  SetRefused(name, std::nullopt);
  Result<TagBinding> binding = BindUndefined(catalogue_, strategy);
  if (strategy.empty() || !binding.ok()) return issuer_.Remove(name);
  binding->name = name;
  if (!issuer_.Set(*std::move(binding)).ok()) issuer_.Remove(name);
}

}  // namespace firn
