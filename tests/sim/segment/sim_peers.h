#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/node/tag_owners.h"
#include "tests/sim/segment/segment_mutants.h"

namespace firn {

// The connections between servers, for takes of numbers from the owner of a tag. Takes and answers
// are delayed. They are lost while two servers are cut off from each other, and wait while a server
// is paused. A take without an answer in time gets an empty range, as from PeerLinks, and may still
// take numbers later.
class SimPeers {
 public:
  using Answer = std::function<Result<Range>(const PeerTake&)>;

  // References must outlive it.
  SimPeers(const Clock& clock, SeededEntropy& dice, SegmentMutant mutant)
      : clock_(clock), dice_(dice), mutant_(mutant) {}

  // Returns the setup of a new process at this address.
  OwnersSetup Setup(const std::string& address);
  // `answer` answers the takes of others until Remove.
  void Add(const std::string& address, Answer answer);
  // The process has ended.
  void Remove(const std::string& address);

  void Pause(const std::string& address, bool paused);
  // Cuts two servers off from each other, until Mend.
  void CutOff(const std::string& a, const std::string& b) { cuts_.insert(std::minmax(a, b)); }
  void Mend() { cuts_.clear(); }

  // Delivers what is due.
  void Run();

 private:
  static constexpr Milliseconds kAnswerTime{500}, kRecent{6'000};

  struct Server {
    int64_t process = 0;  // the latest one at this address
    Answer answer{};      // null: it has ended
    bool paused = false;
    std::map<std::string, BootMs> failed{};  // by address: when a take failed last
  };
  struct Message {
    std::string from;
    int64_t process;
    std::string to;
    PeerTake take;
    OwnerLink::Count count;
    RangeSource::TakeDone done;  // null: its caller has been answered
    BootMs due;
    std::optional<BootMs> sent{};
    std::optional<Result<Range>> range{};
    bool over = false;
  };

  bool IsCut(const Message& message) const {
    return cuts_.contains(std::minmax(message.from, message.to));
  }
  BootMs Soon() { return clock_.Boot() + Milliseconds(dice_.Below(30)); }
  void Advance(Message& message);
  void Send(Message& message);
  void Finish(Message& message, Result<Range> range);

  const Clock& clock_;
  SeededEntropy& dice_;
  const SegmentMutant mutant_;
  std::map<std::string, Server> servers_;  // by address
  std::set<std::pair<std::string, std::string>> cuts_;
  std::deque<Message> messages_;
};

}  // namespace firn
