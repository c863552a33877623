#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/id/reason.h"
#include "common/tag/tag_definition.h"
#include "server/issue/catalogue.h"
#include "server/issue/issuer.h"

namespace firn {

// What an issuer does about each tag, in step with its definition: it serves the tag, or refuses it
// with the reason, which is logged once. A tag that this program cannot serve (a strategy, plugin
// or key that it lacks) is refused, never served in part. Owned by the control thread.
class ServedTags {
 public:
  struct Refused {
    Reason reason;
    std::string why;

    friend bool operator==(const Refused&, const Refused&) = default;
  };
  using Refusals = std::map<std::string, Refused>;

  // Both must outlive it. Until a default is set every tag is refused: nobody has read it yet.
  ServedTags(const Catalogue& catalogue, Issuer& issuer);

  // `served` is told of each definition that is served from then on.
  void OnServed(std::function<void(const TagDefinition&)> served) {
    on_served_ = std::move(served);
  }

  void Serve(TagDefinition tag);
  void Refuse(const std::string& name, Reason reason, std::string why);
  bool refuses(const std::string& name) const { return refused_->contains(name); }
  // Never null. Another object after each change.
  std::shared_ptr<const Refusals> refused() const { return refused_; }
  bool knows(const std::string& name) const { return served_.contains(name) || refuses(name); }

  // What serves the tag has closed: it is made anew when the tag is served next.
  void Renew(const std::string& name) { served_.erase(name); }

  // How names that nobody has defined are served; an empty strategy: they are unknown.
  void ServeDefault(const std::string& strategy);
  // Refuses every name without a definition, until ServeDefault.
  void RefuseDefault(std::string why);
  // From now on the name is one of those, by this strategy.
  void Forget(const std::string& name, const std::string& strategy);

 private:
  void SetRefused(const std::string& name, std::optional<Refused> refused);

  const Catalogue& catalogue_;
  Issuer& issuer_;
  std::function<void(const TagDefinition&)> on_served_;
  std::map<std::string, TagDefinition> served_;  // as bound, ledgers left out
  std::shared_ptr<const Refusals> refused_ = std::make_shared<Refusals>();
  std::optional<std::string> default_{};  // as served
};

}  // namespace firn
