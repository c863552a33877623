#include "tests/sim/reach/reach_world.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "server/front/server_front.h"
#include "thrift/gen/IdService.h"

namespace firn {
namespace {

using client::AskPace;
using client::SeedList;

constexpr Micros kSecond{1'000'000};
constexpr Micros kSettled = 180 * kSecond;  // until startup effects have ended
constexpr Micros kNotice = 2 * kSecond;     // from the removal of a server from the list to its
                                            // stop
constexpr Micros kAway = 10 * kSecond;      // time for which a server is down
constexpr Micros kSession = 10 * kSecond;   // until the registry detects that a server has died
constexpr uint32_t kSeeds = 3;

// Returns the list as the client's source receives it. One entry represents all servers, because
// the version identifies the list.
ToldServers Told(int64_t version, bool known, Micros age, Milliseconds ask_again) {
  ToldServers told{.version = version,
                   .age = std::chrono::duration_cast<Milliseconds>(age),
                   .ask_again = ask_again};
  if (!known) told.list = ServerList{.servers = {{.address = "all:1"}}};
  return told;
}

}  // namespace

uint64_t AnswerBytes(size_t servers) {
  wire::ServerList list;
  list.__set_cluster_uuid("6f1b0c7e-1f3a-4c55-9d0e-0123456789ab");
  list.__set_application("shop");
  if (servers > 0) {
    wire::ServerEntry entry;
    entry.__set_address("firn-0815.shop.example:7609");
    list.__set_servers(std::vector<wire::ServerEntry>(servers, entry));
  }
  const auto buffer = std::make_shared<apache::thrift::transport::TMemoryBuffer>();
  apache::thrift::protocol::TBinaryProtocol protocol(buffer);
  list.write(&protocol);
  return buffer->available_read();
}

struct ReachWorld::OneServer {
  bool up = true, listed = true;
  uint64_t connections = 0;
  uint64_t asked = 0, bytes = 0, calls = 0, opened = 0;  // in this second
};

struct ReachWorld::OneClient {
  SeedList list{std::vector<KnownServer>{{.address = "seed:1"}}};
  AskPace pace;
  Micros ask_at{0};
  std::vector<bool> connected;
  std::vector<uint32_t> out;  // servers that have not responded since the last list
};

ReachWorld::ReachWorld(ReachSizes sizes, ReachStory story, uint64_t seed)
    : sizes_(sizes),
      story_(story),
      entropy_(seed),
      registry_(sizes.servers),
      servers_(sizes.servers),
      clients_(sizes.clients) {
  std::vector<uint32_t> all(sizes.servers);
  std::iota(all.begin(), all.end(), 0U);
  registry_.Change(-10 * kSecond, all);
  all.resize(std::min(kSeeds, sizes.servers));
  seeds_ = std::make_unique<const Listed>(Micros(0), std::move(all));
}

ReachWorld::~ReachWorld() = default;

Micros ReachWorld::Drawn(Micros below) {
  return Micros(static_cast<int64_t>(entropy_.Below(static_cast<uint64_t>(below.count()))));
}

void ReachWorld::Begin() {
  const bool at_once = story_ == ReachStory::kAllStart;
  told_from_ = at_once ? Micros(0) : kSettled;
  end_ = told_from_ + 150 * kSecond;
  Plan();
  for (uint32_t i = 0; i < clients_.size(); ++i) {
    clients_[i].connected.resize(servers_.size());
    const Micros start = Drawn(at_once ? kSecond : 60 * kSecond);
    AskAt(clients_[i], start);
    if (sizes_.calls > 0) events_.push({start, i, true});
  }
}

void ReachWorld::PlanRestart(uint32_t server, Micros at, bool last) {
  strikes_.push_back({at, server, true, false, last});
  strikes_.push_back({at + kNotice, server, false, false, false});
  strikes_.push_back({at + kNotice + kAway, server, true, true, last});
}

void ReachWorld::Plan() {
  const Micros begin = kSettled + 10 * kSecond;
  const uint32_t batch = std::max(sizes_.servers / 50, 1U);
  const uint32_t rack = std::max(sizes_.servers / 10, 1U);
  switch (story_) {
    case ReachStory::kQuiet:
    case ReachStory::kAllStart:
      return;
    case ReachStory::kOneChange:
      strikes_ = {{begin, sizes_.servers - 1, true, false, true}};
      return;
    case ReachStory::kRackDies:
      for (uint32_t i = 0; i < rack; ++i) {
        const uint32_t server = sizes_.servers - 1 - i;
        strikes_.push_back({begin, server, false, true, false});
        strikes_.push_back({begin + kSession, server, false, false, i + 1 == rack});
      }
      break;
    case ReachStory::kRolling:
      for (uint32_t i = 0; i < sizes_.servers; ++i) {
        PlanRestart(i, begin + (kNotice + kAway + 3 * kSecond) * (i / batch),
                    i % batch == batch - 1 || i + 1 == sizes_.servers);
      }
      end_ =
          begin + (kNotice + kAway + 3 * kSecond) * ((sizes_.servers - 1) / batch) + 150 * kSecond;
      break;
  }
  std::stable_sort(strikes_.begin(), strikes_.end(),
                   [](const Strike& a, const Strike& b) { return a.at < b.at; });
}

void ReachWorld::DoStrikes(Micros now) {
  for (; next_strike_ < strikes_.size() && strikes_[next_strike_].at <= now; ++next_strike_) {
    const Strike& strike = strikes_[next_strike_];
    OneServer& server = servers_[strike.server];
    if (server.up && !strike.up) {
      server.connections = 0;
      for (OneClient& client : clients_) client.connected[strike.server] = false;
    }
    server.up = strike.up;
    server.listed = strike.listed;
    if (!strike.last) continue;
    std::vector<uint32_t> listed;
    for (uint32_t i = 0; i < servers_.size(); ++i) {
      if (servers_[i].listed) listed.push_back(i);
    }
    registry_.Change(strike.at, std::move(listed));
  }
}

void ReachWorld::EndSecond() {
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    OneServer& one = servers_[i];
    if (one.up) {
      ++second_.up;
      second_.registry_reads += registry_.ReadsOf(i, second_ends_ - 2 * kSecond);
    }
    second_.asked_most = std::max(second_.asked_most, one.asked);
    second_.bytes_most = std::max(second_.bytes_most, one.bytes);
    second_.calls_most = std::max(second_.calls_most, one.calls);
    second_.opened_most = std::max(second_.opened_most, one.opened);
    one.asked = one.bytes = one.calls = one.opened = 0;
  }
  if (second_ends_ > told_from_) seconds_.push_back(second_);
  second_ = {};
  second_ends_ += kSecond;
}

void ReachWorld::Run() {
  Begin();
  while (!events_.empty() && events_.top().at < end_) {
    const Event event = events_.top();
    events_.pop();
    while (event.at >= second_ends_) EndSecond();
    DoStrikes(event.at);
    Happen(event);
  }
}

void ReachWorld::Happen(const Event& event) {
  OneClient& client = clients_[event.client];
  if (event.call) {
    Call(client, event.at);
    const Micros every(static_cast<int64_t>(1e6 / sizes_.calls));
    events_.push({event.at + every / 2 + Drawn(every), event.client, true});
  } else if (event.at == client.ask_at) {  // otherwise an earlier request has replaced it
    Ask(client, event.at);
  }
}

void ReachWorld::AskAt(OneClient& client, Micros at) {
  client.ask_at = at;
  events_.push({at, static_cast<uint32_t>(&client - clients_.data()), false});
}

ReachWorld::OneServer* ReachWorld::Reach(OneClient& client, Micros now) {
  const int64_t version = client.list.version();
  const Listed& listed = version == 0 ? *seeds_ : registry_.List(version);
  const auto may = [&](size_t at) {
    const auto& out = client.out;
    return std::find(out.begin(), out.end(), listed.servers[at]) == out.end();
  };
  for (bool troubled = false;; troubled = true) {
    const size_t at = listed.lots.Draw(may, entropy_);
    if (at == client::Lots::kNone) return nullptr;
    const uint32_t which = listed.servers[at];
    OneServer& server = servers_[which];
    if (server.up) {
      if (client.connected[which]) return &server;
      client.connected[which] = true;
      ++server.connections;
      ++server.opened;
      ++second_.opened;
      return &server;
    }
    client.out.push_back(which);
    const Micros soon = now + AskPace::AfterTrouble(entropy_);
    if (soon < client.ask_at) AskAt(client, soon);
    if (!troubled) ++second_.met_trouble;
  }
}

void ReachWorld::Call(OneClient& client, Micros now) {
  OneServer* const server = Reach(client, now);
  if (server == nullptr) {
    ++lost_calls_;
    client.out.clear();
    return;
  }
  ++server->calls;
  ++second_.calls;
}

void ReachWorld::Ask(OneClient& client, Micros now) {
  client.ask_at = Micros::max();
  OneServer* const server = Reach(client, now);
  if (server != nullptr) return Hear(client, static_cast<uint32_t>(server - servers_.data()), now);
  client.list.OnNoAnswer();
  client.out.clear();
  AskAt(client, now + client.pace.AfterSilence(entropy_));
}

void ReachWorld::Hear(OneClient& client, uint32_t which, Micros now) {
  OneServer& server = servers_[which];
  const int64_t had = client.list.version(), version = registry_.VersionAt(which, now);
  const bool known = version == had;
  static const uint64_t kKnown = AnswerBytes(0), kEach = AnswerBytes(1'001) - AnswerBytes(1);
  const uint64_t bytes =
      kKnown + (known ? 0 : kEach * registry_.List(version).servers.size() / 1'000);
  ++server.asked;
  ++second_.asked;
  server.bytes += bytes;
  second_.bytes += bytes;
  const Milliseconds again = front::AskAgain(server.connections, entropy_);
  if (client.list.Hear(Told(version, known, now - registry_.LookedAt(which, now), again), now)) {
    client.out.clear();
    for (int64_t v = had + 1; had > 0 && v <= version; ++v)
      known_.Add(now - registry_.List(v).since);
  }
  AskAt(client, now + client.pace.AfterAnswer(again));
}

uint64_t ReachWorld::connections() const {
  uint64_t sum = 0;
  for (const OneServer& server : servers_) sum += server.connections;
  return sum;
}

uint64_t ReachWorld::connections_most() const {
  uint64_t most = 0;
  for (const OneServer& server : servers_) most = std::max(most, server.connections);
  return most;
}

uint64_t ReachWorld::behind() const {
  return static_cast<uint64_t>(std::count_if(
      clients_.begin(), clients_.end(),
      [this](const OneClient& client) { return client.list.version() != registry_.version(); }));
}

}  // namespace firn
