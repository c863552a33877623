#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <string_view>
#include <vector>

#include "client/source/ask_pace.h"
#include "client/source/seed_list.h"
#include "common/time/entropy.h"
#include "tests/sim/reach/reach_figures.h"
#include "tests/sim/reach/reach_registry.h"

namespace firn {

// What happens to the servers after the startup.
enum class ReachStory : uint8_t {
  kQuiet,
  kOneChange,  // an operator takes one out
  kRolling,    // all are restarted, a fiftieth at a time
  kRackDies,   // a tenth fail at once, which the registry knows when their sessions end
  kAllStart    // the servers are healthy; all clients start in one second
};

struct ReachSizes {
  uint32_t servers = 1000;
  uint32_t clients = 100'000;
  double calls = 0.5;  // of each client, per second
};

// Clients of firn://seed,seed,seed and servers, in virtual time. It runs the client's code that
// decides which list counts (SeedList), when to request it again (AskPace) and which server to pick
// (Lots), and the server's code that decides when clients must ask again (front::AskAgain) and how
// often to read the registry (ServerRoll). Answers come at once.
class ReachWorld {
 public:
  ReachWorld(ReachSizes sizes, ReachStory story, uint64_t seed);
  ~ReachWorld();
  ReachWorld(const ReachWorld&) = delete;
  ReachWorld& operator=(const ReachWorld&) = delete;

  void Run();

  // From the beginning of the story.
  const std::vector<Second>& seconds() const { return seconds_; }
  // From each change until a client has a list that contains it.
  const Times& known() const { return known_; }
  uint64_t changes() const { return static_cast<uint64_t>(registry_.version() - 1); }
  // At the end: for all servers, and for the one with the most.
  uint64_t connections() const;
  uint64_t connections_most() const;
  // Clients without the last list, and calls for which no server was left.
  uint64_t behind() const;
  uint64_t lost_calls() const { return lost_calls_; }

 private:
  struct OneServer;
  struct OneClient;
  struct Event {
    Micros at;
    uint32_t client;
    bool call;
    bool operator>(const Event& other) const { return at > other.at; }
  };
  // A server starts or ends, and its entry in the list changes.
  struct Strike {
    Micros at;
    uint32_t server;
    bool up, listed, last;  // the last of those that the registry reports as one change
  };

  void Begin();
  void Plan();
  void PlanRestart(uint32_t server, Micros at, bool last);
  void DoStrikes(Micros now);
  void EndSecond();
  void Happen(const Event& event);
  void Ask(OneClient& client, Micros now);
  void Call(OneClient& client, Micros now);
  // Returns a server that responds, or null; counts servers that are down on the way.
  OneServer* Reach(OneClient& client, Micros now);
  void Hear(OneClient& client, uint32_t server, Micros now);
  void AskAt(OneClient& client, Micros at);
  Micros Drawn(Micros below);

  const ReachSizes sizes_;
  const ReachStory story_;
  SeededEntropy entropy_;
  ReachRegistry registry_;
  std::unique_ptr<const Listed> seeds_;
  std::vector<OneServer> servers_;
  std::vector<OneClient> clients_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Strike> strikes_;
  size_t next_strike_ = 0;
  Micros second_ends_{1'000'000};
  Micros told_from_{0}, end_{0};
  Second second_;
  std::vector<Second> seconds_;
  Times known_;
  uint64_t lost_calls_ = 0;
};

// The bytes of an answer with so many servers, and of one without a list.
uint64_t AnswerBytes(size_t servers);

}  // namespace firn
