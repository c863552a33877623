#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/seam/coordinator.h"

namespace firn {

// Who waits for an answer, whatever the verb.
using AnyDone = std::variant<Coordinator::ReadDone, Coordinator::ListDone, Coordinator::SyncDone,
                             Coordinator::WriteDone>;

// What it gets: each verb's own.
using Answer = std::variant<Result<Node>, Result<std::vector<std::string>>, Status, WriteOutcome>;

// What a coordinator's own thread hands to its control thread: the answer to the request of that
// token, and that a watch has fired.
struct Answered {
  uint64_t token;
  Answer answer;
};
struct Noticed {
  uint64_t watch;
};

// Hands over an answer. An answer of another verb ends the process.
void Tell(const AnyDone& done, Answer answer);

// Answers a request that failed as a whole: every verb's answer can carry a status.
void AnswerFailure(const AnyDone& done, Status status);

// Answers a request whose outcome nobody will learn: kUnknown for a write, kUnavailable for a
// reading verb, for which it makes no difference.
void AnswerLost(const AnyDone& done, const std::string& why);

// The requests that have been sent and not answered, with the moment at which their owner gives
// up on them. Every request has the same time limit, so the oldest is due first.
// Thread-compatible: a coordinator's control thread owns it.
class RequestTable {
 public:
  using Token = uint64_t;

  // Tokens rise and are never used twice.
  Token Add(AnyDone done, BootMs deadline);

  // Takes a request out; empty when it has been answered already.
  std::optional<AnyDone> Take(Token token);

  // Takes out, oldest first, every request that is due, or simply every request.
  std::vector<std::pair<Token, AnyDone>> TakeDue(BootMs now);
  std::vector<AnyDone> TakeAll();

  // When the oldest is due; empty when there is none.
  std::optional<BootMs> NextDue() const;
  size_t size() const { return waiting_.size(); }

 private:
  struct Entry {
    AnyDone done;
    BootMs deadline;
  };

  std::map<Token, Entry> waiting_;
  Token last_ = 0;
};

}  // namespace firn
