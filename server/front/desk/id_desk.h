#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/front/desk/desk_counters.h"
#include "server/front/desk/tag_rights.h"
#include "server/front/net/protocol.h"
#include "server/issue/issuer.h"

namespace firn::front {

// Turns the requests of one protocol on one IO thread into ids. A call that waits
// is stored with its connection, and continued at the next attempt. Used by one IO thread;
// allocates nothing for calls that do not wait.
class IdDesk {
 public:
  // All must outlive it. An empty tag in a request means `default_tag`. `rights`, if given, are
  // checked for each call; a call that needs that check never uses the fast path.
  IdDesk(Issuer& issuer, DeskCounters& counters, Method method, std::string default_tag,
         TagRights* rights = nullptr);

  // The handle of a tag, valid as long as the issuer; null: nothing serves it.
  const Tag* Resolve(std::string_view tag) const { return issuer_.Resolve(NameOf(tag)); }

  // The fast path for one id. Nullopt, without an effect, if there is more to report: then Ask.
  std::optional<int64_t> One(const Tag* tag, const DoorCall& door) {
    int64_t id = 0;
    if (tag == nullptr || !MayBeShort(door)) return std::nullopt;
    if (!issuer_.TryOne(*tag, method_, &id)) return std::nullopt;
    counters_.CountIssued(*tag, 1);
    return id;
  }

  // The same for up to `calls` such calls: a run with an id for each of the first of them.
  std::optional<IdRun> Run(const Tag& tag, int64_t calls, const DoorCall& door) {
    IdRun run;
    if (!MayBeShort(door) || !issuer_.TryRun(tag, method_, calls, &run)) return std::nullopt;
    const auto count = static_cast<uint64_t>(run.count);
    counters_.CountIssued(tag, count, count);
    return run;
  }

  // Requests `count` ids, or continues the call that is parked at the door. kIssued: call() has
  // exactly those. kRefused: its refusal is the answer. kWait, unless this is the last attempt: the
  // call is parked at the door.
  Verdict Ask(std::string_view tag, int64_t count, Form form, DoorCall& door);

  // Why this peer may not request ids of the tag, whether the tag exists or not. Empty: it may.
  std::optional<Refusal> WhyNotPermitted(std::string_view tag, const DoorCall& door);

  // Counts a refusal that was found before the issuer was called, and makes it the answer.
  void Refuse(Refusal refusal);

  // The last answered call.
  const IssueCall& call() const { return *call_; }

  std::string_view NameOf(std::string_view tag) const { return tag.empty() ? default_tag_ : tag; }

 private:
  // No call is parked, and no rights are to be checked.
  bool MayBeShort(const DoorCall& door) const { return !door.parked && !rights_; }
  IssueCall& Fresh();
  Verdict Answer(Verdict verdict, DoorCall& door);

  Issuer& issuer_;
  DeskCounters& counters_;
  const Method method_;
  const std::string default_tag_;
  std::optional<TagRights::Reader> rights_;  // none: every client may take ids of all tags
  std::shared_ptr<IssueCall> call_;          // reused for the next call unless it is parked
};

}  // namespace firn::front
