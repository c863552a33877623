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
  kDisabled,     // by an operator
  kUnsupported,  // this server lacks its store, stand-in, plugin, strategy, key or time zone
  kUnreadable,   // its node does not parse
  kLost,         // its node is missing, or has come back in another form
  kNoRoot,       // the registry's root node is missing, unreadable, older or another cluster's
  kNoNumbers,    // it is served, but no numbers are in memory and no more come
};

// One lower-case word, as in status, metrics and reports.
std::string_view TagStateName(TagState state);

struct RefusedTag {
  TagState state;
  Reason reason;
  std::string why;

  friend bool operator==(const RefusedTag&, const RefusedTag&) = default;
};
using RefusedTags = std::map<std::string, RefusedTag>;

// Tags that are served by an earlier definition, each with what keeps this server from serving the
// present one.
using OutdatedTags = std::map<std::string, std::string>;

// What an issuer does about each tag, in step with its definition: it serves the tag, or refuses it
// with the reason, which is logged once. A tag that this program cannot serve (a strategy, plugin
// or key that it lacks) is refused, never served in part. One exception: a served tag in which only
// the sizes of ranges or `buffer` have changed keeps its earlier definition, with an alarm. Its
// numbers are right under both, so a mistaken edit must not stop it. Owned by the control thread.
class ServedTags {
 public:
  // Both must outlive it. Until a default is set every tag is refused: it is not read yet.
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

  // Notes which of the served tags with numbers have none. A tag counts as refused at the second
  // look in a row. Call every second or so.
  void CheckNumbers();
  // Whether a tag that needs no claim gave ids at the last look.
  bool gives_numbers() const { return gives_numbers_; }

  // All tags whose calls are refused. Never null; another object after each change.
  std::shared_ptr<const RefusedTags> refused();
  // Never null; another object after each change.
  std::shared_ptr<const OutdatedTags> outdated() const { return outdated_; }
  bool knows(const std::string& name) const { return served_.contains(name) || refuses(name); }

  // The tag's strategy has closed: it is re-created when the tag is served next.
  void Renew(const std::string& name) {
    served_.erase(name);
    NoteOutdated(name, {});
  }

  // Sets how undefined names are served; an empty strategy: they are unknown.
  void ServeDefault(const std::string& strategy);
  // Refuses every name without a definition, until ServeDefault.
  void RefuseDefault(std::string why);
  // From now on the name is one of those, by this strategy.
  void Forget(const std::string& name, const std::string& strategy);

 private:
  static Reason ReasonOf(TagState state);
  void Refuse(const std::string& name, TagState state, std::string why, bool another_may_help);
  // Empty: the tag is served by its present definition, or not served.
  void NoteOutdated(const std::string& name, const std::string& why);

  const Catalogue& catalogue_;
  Issuer& issuer_;
  std::function<void(const TagDefinition&)> on_served_;
  std::map<std::string, TagDefinition> served_;  // as bound, ledgers left out
  RefusedTags refused_;                          // by their definitions
  RefusedTags empty_;                            // without numbers, at the last look
  RefusedTags no_numbers_;                       // ... and at the one before
  bool gives_numbers_ = false;
  std::shared_ptr<const OutdatedTags> outdated_ = std::make_shared<OutdatedTags>();
  std::shared_ptr<const RefusedTags> shown_{};  // null: to be made
  std::optional<std::string> default_{};        // as served
};

}  // namespace firn
