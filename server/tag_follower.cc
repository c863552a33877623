#include "server/tag_follower.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <glog/logging.h>

#include "common/tag_name.h"
#include "registry/tag_node.h"
#include "registry/tag_store.h"
#include "server/refusing_strategy.h"

namespace firn {

TagFollower::TagFollower(Coordinator& coordinator, Entropy& entropy, const Catalogue& catalogue,
                         Issuer& issuer)
    : catalogue_(catalogue),
      issuer_(issuer),
      watch_(coordinator, entropy, std::string(kTagsPath), [this] { Follow(); }) {}

void TagFollower::Follow() {
  std::set<std::string> there;
  auto highest = std::make_shared<Ledgers>(*highest_);
  for (const auto& [component, node] : watch_.nodes()) {
    const Result<std::string> name = DecodeTagName(component);
    if (!name.ok()) {
      LOG(WARNING) << "not a tag: " << watch_.path() << "/" << component << ": " << name.status();
      continue;
    }
    there.insert(*name);
    const Result<TagNode> tag = ReadTagNode(*name, node.data);
    if (!tag.ok()) {
      Refuse(*name, Reason::kInternal, tag.status().message());
      continue;
    }
    int64_t& seen = (*highest)[*name];
    seen = std::max(seen, tag->tag.high);
    if (on_seen_) on_seen_(*name, *tag);
    if (tag->tag.disabled) {
      Refuse(*name, Reason::kRejected, "the tag is disabled");
    } else {
      Serve(tag->tag);
    }
  }
  if (*highest != *highest_) highest_ = std::move(highest);
  std::set<std::string> gone;
  for (const auto& [name, tag] : served_) {
    if (!there.contains(name)) gone.insert(name);
  }
  for (const std::string& name : gone) {
    if (on_seen_) on_seen_(name, std::nullopt);
    Refuse(name, Reason::kInternal, "the tag's node has gone from the registry");
  }
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

void TagFollower::Serve(const TagDefinition& tag) {
  TagDefinition bound = tag;
  bound.high = 0;  // moves all the time, and is none of the binding's business
  const auto served = served_.find(tag.name);
  if (served != served_.end() && served->second == bound) return;
  Result<TagBinding> binding = catalogue_.Bind(tag);
  Status set = binding.status();
  if (set.ok()) set = issuer_.Set(*std::move(binding));
  if (!set.ok()) return Refuse(tag.name, Reason::kNotReady, set.message());
  LOG(INFO) << "serving tag " << tag.name << " (" << tag.strategy << ")";
  refused_.erase(tag.name);
  if (on_served_) on_served_(tag);
  served_[tag.name] = std::move(bound);
}

void TagFollower::Refuse(const std::string& name, Reason reason, std::string why) {
  served_.erase(name);
  if (refused_[name] == why) return;
  LOG(WARNING) << "refusing tag " << name << ": " << why;
  const Refusal refusal{.reason = reason,
                        .message = "tag '" + name + "': " + why,
                        .retry_after_ms = 0,
                        .another_server_may_help = reason == Reason::kNotReady};
  const Status set = issuer_.Set(
      {.name = name, .strategy = std::make_shared<RefusingStrategy>(refusal), .plugins = {}});
  LOG_IF(ERROR, !set.ok()) << "tag " << name << " cannot be refused with its reason: " << set;
  if (!set.ok()) issuer_.Remove(name);
  refused_[name] = std::move(why);
}

}  // namespace firn
