#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/front/desk/desk_counters.h"
#include "server/front/desk/tag_rights.h"
#include "server/front/net/protocol.h"
#include "server/issue/issuer.h"

namespace firn::front {

// A call for ids that waits. It is cancelled when its last owner is destroyed, which must happen
// before the desk's issuer is.
using WaitingIds = std::shared_ptr<IssueCall>;

// Turns the requests of one protocol on one IO thread into ids. A waiting call belongs to its
// parked request, and no other request can continue it. Used by one IO thread; allocates nothing
// for calls that do not wait.
class IdDesk {
 public:
  // Ids of a list after which other connections get their turn, where writing an id takes long.
  static constexpr int64_t kIdsPerTurn = 4096;

  // All must outlive it. An empty tag in a request means `default_tag`. `rights`, if given, are
  // checked for each call; a call that needs that check never uses the fast path.
  IdDesk(Issuer& issuer, DeskCounters& counters, Method method, std::string default_tag,
         TagRights* rights = nullptr);

  // The handle of a tag, valid as long as the issuer; null: there is no such tag.
  const Tag* Resolve(std::string_view tag) const { return issuer_.Resolve(NameOf(tag)); }

  // The fast path for one id. Nullopt, without an effect, if it cannot answer: then call Ask.
  std::optional<int64_t> One(const Tag* tag) {
    int64_t id = 0;
    if (tag == nullptr || rights_) return std::nullopt;
    if (!issuer_.TryOne(*tag, method_, &id)) return std::nullopt;
    counters_.CountIssued(*tag, 1);
    return id;
  }

  // Like One for up to `calls` calls: a run with an id for each, or for the first of them.
  std::optional<IdRun> Run(const Tag& tag, int64_t calls) {
    IdRun run;
    if (rights_ || !issuer_.TryRun(tag, method_, calls, &run)) return std::nullopt;
    const auto count = static_cast<uint64_t>(run.count);
    counters_.CountIssued(tag, count, count);
    return run;
  }

  // Requests `count` ids. kIssued: call() has exactly those. kRefused: call() has the refusal.
  // kWait: the caller returns Park; on the request's last attempt only if all ids are there.
  Verdict Ask(std::string_view tag, int64_t count, Form form, const DoorCall& door);

  // Whether equal calls of this tag for one id may wait as one (JointCalls).
  bool Joins(const Tag& tag) const { return issuer_.Joins(tag); }

  // Like Ask, for `calls` equal calls for one id of a tag that Joins. kIssued: call() has ids for
  // the first of them. kRefused: all of them are.
  Verdict AskJointly(const Tag& tag, int64_t calls, const DoorCall& door);

  // Continues a call that waits, if the peer still has the right to its tag.
  Verdict Continue(WaitingIds waiting, const DoorCall& door);

  // After kWait: the step that continues the request later by `retry(waiting, door, out)`, which
  // returns a ServeStep.
  template <typename Retry>
  ServeStep Park(Retry retry) {
    WaitingIds call = TakeWaiting();
    const auto again = call->ask_again_in();
    const void* const tag = call->tag();
    const auto most = call->waits_at_most();
    const bool has_all_ids = call->has_all_ids();
    const size_t memory = call->memory();
    auto request =
        ParkedAs([retry = std::move(retry), waiting = std::move(call)](
                     DoorCall& door,
                     OutBuffer& out) mutable { return retry(std::move(waiting), door, out); },
                 memory);
    if (has_all_ids) return ServeStep::More(std::move(request));
    return ServeStep::Park(again, std::move(request), most.count(), tag);
  }

  // After kWait or kIssued: passes the call to the caller.
  WaitingIds TakeWaiting() { return std::move(call_); }
  // Returns the call's memory, so that the next call can use it.
  void GiveBack(WaitingIds call) { call_ = std::move(call); }

  // A lower bound of the tag's next id, if this peer may take ids of it; 0: unknown.
  int64_t NextAtLeast(std::string_view tag, const DoorCall& door) {
    const Tag* const known = Resolve(tag);
    return known == nullptr || WhyNotPermitted(tag, door) ? 0 : issuer_.NextAtLeast(*known);
  }

  // Why this peer may not request ids of the tag, whether or not the tag exists. Empty: it may.
  std::optional<Refusal> WhyNotPermitted(std::string_view tag, const DoorCall& door);

  // Counts `calls` calls that the front end itself refused, and stores the refusal in call().
  void Refuse(Refusal refusal, uint64_t calls = 1);

  // Whether the last refused call was refused because the peer has no right to its tag.
  bool lacks_right() const { return lacks_right_; }

  // The call that was answered last.
  const IssueCall& call() const { return *call_; }

  std::string_view NameOf(std::string_view tag) const { return tag.empty() ? default_tag_ : tag; }

 private:
  bool MayCreate(const Tag* tag, const DoorCall& door);
  IssueCall& Fresh();
  bool IsPermitted(std::string_view tag, const DoorCall& door, uint64_t calls);
  Verdict Attempt(const DoorCall& door);
  void CountIssued();
  Verdict CountRefused();

  Issuer& issuer_;
  DeskCounters& counters_;
  const Method method_;
  const std::string default_tag_;
  std::optional<TagRights::Reader> rights_;  // empty: every client may take ids of all tags
  WaitingIds call_;                          // reused for the next call unless it is parked
  bool lacks_right_ = false;
};

}  // namespace firn::front
