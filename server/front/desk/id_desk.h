#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/front/desk/desk_counters.h"
#include "server/front/net/protocol.h"
#include "server/issue/issuer.h"

namespace firn::front {

// Where the requests of one door (Thrift, or HTTP) on one IO thread become ids. It knows how a
// call waits: with the attempt that the protocol was given, and back again at the next one.
// Used by one IO thread; allocates nothing for calls that do not wait.
class IdDesk {
 public:
  // All must outlive it. An empty tag in a request means `default_tag`.
  IdDesk(Issuer& issuer, DeskCounters& counters, Method method, std::string default_tag);
  ~IdDesk();

  // The short way for one id. False, with no trace, when there is anything to say: then Ask.
  bool One(std::string_view tag, int64_t* id) {
    const Tag* found = issuer_.Resolve(NameOf(tag));
    if (found == nullptr || !issuer_.TryOne(*found, method_, id)) return false;
    counters_.CountIssued(*found, 1);
    return true;
  }

  // Asks for `count` ids, or goes on with what was parked in the attempt. kIssued: runs() has
  // exactly those. kRefused: refusal() is the answer. kWait, unless the attempt is the last: the
  // call is parked in the attempt, to be asked again in again_us().
  Verdict Ask(std::string_view tag, int64_t count, Form form, Attempt& attempt);

  // Counts a refusal that was found before anybody was asked, and makes it the answer.
  Verdict Refuse(Refusal refusal);

  const Runs& runs() const;
  void AppendText(int64_t id, WallMs now,
                  std::string& out) const;  // one of runs(), as its tag has it
  const Refusal& refusal() const { return *refusal_; }
  int64_t again_us() const { return again_us_; }

  std::string_view NameOf(std::string_view tag) const { return tag.empty() ? default_tag_ : tag; }

 private:
  class Call;

  void Begin(const Request& request);
  Verdict Answer(Verdict verdict, Attempt& attempt);

  Issuer& issuer_;
  DeskCounters& counters_;
  const Method method_;
  const std::string default_tag_;
  std::unique_ptr<Call> call_;  // the one at hand; used again for the next unless it is parked
  Refusal own_refusal_;
  const Refusal* refusal_ = nullptr;
  int64_t again_us_ = 0;
};

}  // namespace firn::front
