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

// Where the requests of one door (Thrift, or HTTP) on one IO thread become ids. It knows how a
// call waits: in what its connection keeps, and back again at the next attempt.
// Used by one IO thread; allocates nothing for calls that do not wait.
class IdDesk {
 public:
  // All must outlive it. An empty tag in a request means `default_tag`. `rights`, if there are any,
  // are asked for each call; a call that meets them never goes the short way.
  IdDesk(Issuer& issuer, DeskCounters& counters, Method method, std::string default_tag,
         TagRights* rights = nullptr);

  // The handle of a tag, good as long as the issuer; null: nothing serves it.
  const Tag* Resolve(std::string_view tag) const { return issuer_.Resolve(NameOf(tag)); }

  // The short way for one id. Nothing, with no trace, when there is anything to say: then Ask.
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

  // Asks for `count` ids, or goes on with the call that is parked at the door. kIssued: call() has
  // exactly those. kRefused: its refusal is the answer. kWait, unless this is the last attempt: it
  // is parked at the door.
  Verdict Ask(std::string_view tag, int64_t count, Form form, DoorCall& door);

  // Why this peer may not ask for ids of the tag, whether there is such a tag or not. Nothing: it may.
  std::optional<Refusal> WhyNotPermitted(std::string_view tag, const DoorCall& door);

  // Counts a refusal that was found before anybody was asked, and makes it the answer.
  void Refuse(Refusal refusal);

  // The one that was answered last.
  const IssueCall& call() const { return *call_; }

  std::string_view NameOf(std::string_view tag) const { return tag.empty() ? default_tag_ : tag; }

 private:
  // Nothing is to be gone on with, and nobody is asked who may have what.
  bool MayBeShort(const DoorCall& door) const { return !door.parked && !rights_; }
  IssueCall& Fresh();
  Verdict Answer(Verdict verdict, DoorCall& door);

  Issuer& issuer_;
  DeskCounters& counters_;
  const Method method_;
  const std::string default_tag_;
  std::optional<TagRights::Reader> rights_;  // none: everybody may take ids of all tags
  std::shared_ptr<IssueCall> call_;          // used again for the next unless it is parked
};

}  // namespace firn::front
