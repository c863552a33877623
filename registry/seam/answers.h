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

// The callback of a request, of any verb.
using AnyDone = std::variant<Coordinator::ReadDone, Coordinator::ListDone, Coordinator::SyncDone,
                             Coordinator::WriteDone>;

// The answer to a request, of any verb.
using Answer = std::variant<Result<Node>, Result<std::vector<std::string>>, Status, WriteOutcome>;

// Messages from a coordinator's own thread to its control thread: the answer to the request with
// that token, and the notification of a watch.
struct Answered {
  uint64_t token;
  Answer answer;
};
struct Noticed {
  uint64_t watch;
};

// Delivers an answer. An answer of another verb ends the process.
void Tell(const AnyDone& done, Answer answer);

// Answers a failed request: every verb's answer can carry a status.
void AnswerFailure(const AnyDone& done, Status status);

// Answers a request whose outcome cannot be determined: kUnknown for a write; kUnavailable for a
// read, because a read can always be repeated.
void AnswerLost(const AnyDone& done, const std::string& why);

// The requests that have been sent and not answered, with their deadlines. Every request has the
// same time limit, so the oldest is due first.
// Thread-compatible: a coordinator's control thread owns it.
class RequestTable {
 public:
  using Token = uint64_t;

  // Tokens rise and are never used twice.
  Token Add(AnyDone done, BootMs deadline);

  // Removes a request and returns it; empty if it has been answered already.
  std::optional<AnyDone> Take(Token token);

  // Removes and returns, oldest first, every request that is due, or every request.
  std::vector<std::pair<Token, AnyDone>> TakeDue(BootMs now);
  std::vector<AnyDone> TakeAll();

  // When the oldest is due; empty if there is none.
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
