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

// Events at the servers after the startup phase.
enum class ReachStory : uint8_t {
  kQuiet,
  kOneChange,  // an operator takes one server offline
  kRolling,    // all are restarted, a fiftieth at a time
  kRackDies,   // a tenth fail at once; the registry detects it when their sessions expire
  kAllStart    // the servers are healthy; all clients start in one second
};

struct ReachSizes {
  uint32_t servers = 1000;
  uint32_t clients = 100'000;
  double calls = 0.5;  // calls of each client per second
};

// Servers and clients of firn://seed,seed,seed in virtual time. Runs the client's code that decides
// which list to use (SeedList), when to request it again (AskPace) and which server to pick (Lots).
// Runs the server's code that decides when clients must ask again (front::AskAgain) and how often
// to read the registry (ServerRoll). Answers arrive at once.
class ReachWorld {
 public:
  ReachWorld(ReachSizes sizes, ReachStory story, uint64_t seed);
  ~ReachWorld();
  ReachWorld(const ReachWorld&) = delete;
  ReachWorld& operator=(const ReachWorld&) = delete;

  void Run();

  // The seconds from the beginning of the story.
  const std::vector<Second>& seconds() const { return seconds_; }
  // Times from each change until each client has a list that contains it.
  const Times& known() const { return known_; }
  uint64_t changes() const { return static_cast<uint64_t>(registry_.version() - 1); }
  // The connections at the end: of all servers, and the maximum of a single server.
  uint64_t connections() const;
  uint64_t connections_most() const;
  // The number of clients without the latest list, and of calls that found no server.
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
  // A server starts or stops, or its entry in the list changes.
  struct Strike {
    Micros at;
    uint32_t server;
    bool up, listed, last;  // last: of several that the registry reports as one change
  };

  void Begin();
  void Plan();
  void PlanRestart(uint32_t server, Micros at, bool last);
  void DoStrikes(Micros now);
  void EndSecond();
  void Happen(const Event& event);
  void Ask(OneClient& client, Micros now);
  void Call(OneClient& client, Micros now);
  // Returns a server that responds, or null; counts the servers that were down.
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

// Returns the size of an answer with this number of servers; 0: of an answer without a list.
uint64_t AnswerBytes(size_t servers);

}  // namespace firn
