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
  kUnsupported,  // this server lacks its store, stand-in, plugin, strategy, key or time zone
  kUnreadable,   // its node does not parse
  kLost,         // its node is missing, or reappeared in another form
  kNoRoot,       // the registry's root node is missing, unreadable, older or another cluster's
  kNoNumbers,    // it is served, but no numbers are in memory and none arrive
};

// One lower-case word, used in status, metrics and reports.
std::string_view TagStateName(TagState state);

struct RefusedTag {
  TagState state;
  Reason reason;
  std::string why;

  friend bool operator==(const RefusedTag&, const RefusedTag&) = default;
};
using RefusedTags = std::map<std::string, RefusedTag>;

// Tags that are served by an earlier definition, each with the error that prevents the present one.
using OutdatedTags = std::map<std::string, std::string>;

// Applies tag definitions to an issuer: each tag is served, or refused with a reason that is logged
// once. A tag that this program cannot serve (it lacks a strategy, plugin or key) is refused, never
// served in part. Exception: if only the sizes of ranges or `buffer` changed, a served tag keeps
// its earlier definition, and an error is logged. Its numbers are valid under both, so a mistaken
// edit must not stop it. Owned by the control thread.
class ServedTags {
 public:
  // Both must outlive this. Until ServeDefault, names without a definition are refused as not read
  // yet.
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

  // Finds served tags that have run out of numbers. A tag counts as refused if two checks in a row
  // find that. Call about once a second.
  void CheckNumbers();
  // Whether a tag that needs no claim could issue ids at the last check.
  bool gives_numbers() const { return gives_numbers_; }

  // All tags whose calls are refused. Never null; a change creates a new object.
  std::shared_ptr<const RefusedTags> refused();
  // Never null; a change creates a new object.
  std::shared_ptr<const OutdatedTags> outdated() const { return outdated_; }
  bool knows(const std::string& name) const { return served_.contains(name) || refuses(name); }

  // The tag's strategy has closed: the next Serve creates another.
  void Renew(const std::string& name) {
    served_.erase(name);
    NoteOutdated(name, {});
  }

  // Sets the strategy of undefined names; empty: they are unknown.
  void ServeDefault(const std::string& strategy);
  // Refuses every name without a definition, until ServeDefault.
  void RefuseDefault(std::string why);
  // Treats the name as undefined from now on; `strategy` as for ServeDefault.
  void Forget(const std::string& name, const std::string& strategy);

 private:
  static Reason ReasonOf(TagState state);
  void Refuse(const std::string& name, TagState state, std::string why, bool another_may_help);
  // Empty `why`: the tag is served by its present definition, or not served.
  void NoteOutdated(const std::string& name, const std::string& why);

  const Catalogue& catalogue_;
  Issuer& issuer_;
  std::function<void(const TagDefinition&)> on_served_;
  std::map<std::string, TagDefinition> served_;  // as bound, without ledgers
  RefusedTags refused_;                          // because of their definitions
  RefusedTags empty_;                            // without numbers at the last check
  RefusedTags no_numbers_;                       // without numbers at the last two checks
  bool gives_numbers_ = false;
  std::shared_ptr<const OutdatedTags> outdated_ = std::make_shared<OutdatedTags>();
  std::shared_ptr<const RefusedTags> shown_{};  // null: to be rebuilt
  std::optional<std::string> default_{};        // as served
};

}  // namespace firn
