#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/id/reason.h"
#include "common/tag/tag_definition.h"
#include "server/issue/catalogue.h"
#include "server/issue/issuer.h"

namespace firn {

// Why calls for a tag are refused. STATES.md has a row for each.
enum class TagState {
  kDisabled,     // disabled by an operator
  kUnsupported,  // this server lacks the tag's store, stand-in, plugin, strategy, key or time zone
  kUnreadable,   // its node does not parse
  kLost,         // its node is missing, or reappeared in another form
  kNoRoot,       // the registry's root node is missing, unreadable, older or another cluster's
  kNoNumbers,    // it is served, but has no numbers in memory, and none arrive
};

// Returns a lower-case word for status, metrics and reports.
std::string_view TagStateName(TagState state);

struct RefusedTag {
  TagState state;
  Reason reason;
  std::string why;

  friend bool operator==(const RefusedTag&, const RefusedTag&) = default;
};
using RefusedTags = std::map<std::string, RefusedTag>;

// Tags that are served by an earlier definition, each with the error that prevents the current one.
using OutdatedTags = std::map<std::string, std::string>;

// Applies tag definitions to an issuer: each tag is served, or refused with a reason that is logged
// once. If this program lacks a strategy, plugin or key of a tag, the tag is refused as a whole.
// Exception: if an edit changed only the sizes of ranges or `buffer`, a served tag keeps its
// earlier definition, and an error is logged. Its numbers are valid under both definitions, so a
// mistaken edit must not stop the tag. Owned by the control thread.
class ServedTags {
 public:
  // Both must outlive this. Until ServeDefault is called, names without a definition are refused,
  // because the definitions have not been read yet.
  ServedTags(const Catalogue& catalogue, Issuer& issuer);

  // `served` is called for each definition that begins to be served.
  void OnServed(std::function<void(const TagDefinition&)> served) {
    on_served_ = std::move(served);
  }

  void Serve(TagDefinition tag);
  void Refuse(const std::string& name, TagState state, std::string why) {
    Refuse(name, state, std::move(why), ReasonOf(state) == Reason::kNotReady);
  }
  bool refuses(const std::string& name) const { return refused_.contains(name); }

  // Finds served tags that have run out of numbers. A tag counts as refused if two successive
  // checks find none. Call about once a second.
  void CheckNumbers();
  // Returns whether a tag that needs no claim could issue ids at the last check.
  bool gives_numbers() const { return gives_numbers_; }

  // Returns all tags whose calls are refused. Never null; a change creates a new object.
  std::shared_ptr<const RefusedTags> refused();
  // Never null; a change creates a new object.
  std::shared_ptr<const OutdatedTags> outdated() const { return outdated_; }
  bool knows(const std::string& name) const { return served_.contains(name) || refuses(name); }

  // Records that the tag's strategy has closed, so that the next Serve creates a new one.
  void Renew(const std::string& name) {
    served_.erase(name);
    NoteOutdated(name, {});
  }

  // Sets the strategy of undefined names; if it is empty, they are unknown.
  void ServeDefault(const std::string& strategy);
  // Refuses every name without a definition, until ServeDefault.
  void RefuseDefault(std::string why);
  // Makes the name undefined; `strategy` as for ServeDefault.
  void Forget(const std::string& name, const std::string& strategy);

 private:
  static Reason ReasonOf(TagState state);
  void Refuse(const std::string& name, TagState state, std::string why, bool another_may_help);
  // `why` is empty if the tag is served by its current definition, or not served.
  void NoteOutdated(const std::string& name, const std::string& why);

  const Catalogue& catalogue_;
  Issuer& issuer_;
  std::function<void(const TagDefinition&)> on_served_;
  std::map<std::string, TagDefinition> served_;  // as bound, without ledgers
  RefusedTags refused_;                          // refused because of their definitions
  RefusedTags empty_;                            // without numbers at the last check
  RefusedTags no_numbers_;                       // without numbers at the last two checks
  bool gives_numbers_ = false;
  std::shared_ptr<const OutdatedTags> outdated_ = std::make_shared<OutdatedTags>();
  std::shared_ptr<const RefusedTags> shown_{};  // null: to be rebuilt
  std::optional<std::string> default_{};        // as served
};

}  // namespace firn
