// Runs two clients with servers that stall, send wrong answers, close connections, stop and
// restart, while the lists change. Half of the runs end with calls in progress. Runs one seed after
// another until the time limit. TroubleLedger checks the calls, and Leftovers the destruction of
// the clients.
//
//     client_trouble [--seed N] [--seconds N] [--threads_max N]

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "client/client.h"
#include "client/local_ranges.h"
#include "common/base/cat.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "tests/client/executor.h"
#include "tests/client/fake_server.h"
#include "tests/client/leftovers.h"
#include "tests/client/scheduling.h"
#include "tests/client/told_source.h"
#include "tests/client/trouble_ledger.h"
#include "tests/support/process.h"

namespace firn {
namespace {

using Kind = Behaviour::Kind;
using CallPtr = TroubleLedger::CallPtr;

constexpr Milliseconds kRound{2'000};

template <typename T, size_t n>
T OneOf(const T (&all)[n], Entropy& entropy) {
  return all[entropy.Below(n)];
}
bool OneIn(uint64_t n, Entropy& entropy) { return entropy.Below(n) == 0; }
int UpTo(int most, Entropy& entropy) {
  return static_cast<int>(entropy.Below(static_cast<uint64_t>(most) + 1));
}

class Trouble {
 public:
  Trouble(uint64_t seed, int threads_max, int64_t ids_above)
      : threads_max_(threads_max), entropy_(seed), ledger_(servers_[0].address(), ids_above) {}

  // Runs everything. Returns a line for each fault.
  std::string Run();
  const TroubleLedger& ledger() const { return ledger_; }

 private:
  struct Customer {
    ServerSource::Listener tell{};
    Milliseconds attempt_limit{0};
    std::optional<Client> client{};
  };

  ClientOptions Options(Customer& customer);
  void TellList(Customer& customer);
  Behaviour AnyBehaviour();
  void Begin();
  // Injects faults. The first server stays healthy.
  void Happen();
  void Ask(const std::stop_token& stop, uint64_t seed);
  void AskOne(Entropy& entropy);
  // Waits until no call is in progress. Returns a line for each counter that still shows one.
  std::string AwaitIdle();
  void End();

  const int threads_max_;
  SeededEntropy entropy_;
  std::array<FakeServer, 5> servers_;
  std::array<bool, 5> down_{};
  TroubleLedger ledger_;
  Scheduling scheduling_;
  const Leftovers leftovers_;
  std::optional<Executor> executor_;
  std::array<Customer, 2> customers_;
};

ClientOptions Trouble::Options(Customer& customer) {
  ClientOptions options;
  options.servers = "told";
  options.open_source = ToldSource::Opener(customer.tell);
  options.tls = FakeServer::Tls();
  options.servers_max = OneOf({0, 1, 2}, entropy_);
  options.attempt_limit = Milliseconds(OneOf({20, 80, 600}, entropy_));
  options.attempts_max = 16;
  options.connections = 1 + UpTo(3, entropy_);
  if (OneIn(2, entropy_)) options.local_ranges = LocalRanges({LocalTag::Segment("local")});
  if (OneIn(2, entropy_)) {
    options.callbacks = [this](std::function<void()> task) { executor_->Add(std::move(task)); };
  }
  return options;
}

void Trouble::TellList(Customer& customer) {
  ServerList list{.servers = {},
                  .cluster = {.uuid = FakeServer::kUuid, .name = "fake", .layout = "firn"}};
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (i > 0 && OneIn(4, entropy_)) continue;
    list.servers.push_back({.address = servers_[i].address(),
                            .weight = 1 + UpTo(200, entropy_),
                            .disabled = i > 0 && OneIn(8, entropy_),
                            .incarnation = i > 0 && OneIn(8, entropy_) ? "another" : ""});
  }
  customer.tell(list);
}

Behaviour Trouble::AnyBehaviour() {
  constexpr Kind kAll[] = {Kind::kServe,   Kind::kSilent,   Kind::kReset,         Kind::kClose,
                           Kind::kHalf,    Kind::kDrip,     Kind::kGarbage,       Kind::kForeign,
                           Kind::kUnaware, Kind::kNoMethod, Kind::kOtherLayout,   Kind::kHttp,
                           Kind::kZeroIds, Kind::kFarTime,  Kind::kWrongCount,    Kind::kTwice,
                           Kind::kEmpty,   Kind::kRepeat,   Kind::kOtherSequence, Kind::kRefuse,
                           Kind::kRefuse,  Kind::kServe,    Kind::kSilent,        Kind::kSilent};
  constexpr Reason kMendedElsewhere[] = {Reason::kNotReady, Reason::kClock,     Reason::kOverloaded,
                                         Reason::kDraining, Reason::kStoreDown, Reason::kExhausted};
  return {.kind = OneOf(kAll, entropy_),
          .delay = Milliseconds(OneIn(2, entropy_) ? 0 : UpTo(100, entropy_)),
          .reason = OneOf(kMendedElsewhere, entropy_),
          .retry_after = Milliseconds(UpTo(100, entropy_)),
          .only_tag = OneIn(2, entropy_) ? "order" : "",
          .another_may_help = true,
          .in_status = OneIn(3, entropy_)};
}

void Trouble::Happen() {
  const auto i = 1 + static_cast<size_t>(UpTo(3, entropy_));
  switch (UpTo(7, entropy_)) {
    case 0:
      return servers_[i].CloseConnections();
    case 1:
    case 2:
      down_[i] ? servers_[i].Up() : servers_[i].Down();
      down_[i] = !down_[i];
      return;
    case 3:
      return TellList(customers_[entropy_.Below(customers_.size())]);
    case 4:
      return servers_[i].Behave(Kind::kServe);
    default:
      return servers_[i].Behave(AnyBehaviour());
  }
}

template <typename T>
void IdsOf(const T& got, std::vector<int64_t>& ids) {
  if constexpr (std::is_same_v<T, int64_t>) {
    ids.push_back(got);
  } else if constexpr (std::is_same_v<T, std::string>) {
    // The client does not check the form of a text, so the text may be invalid.
    if (got != "0") ids.push_back(std::atoll(got.c_str()));
  } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    ids = got;
  } else {
    for (const IdRun& run : got) {
      for (int64_t i = 0; i < run.count; ++i) ids.push_back(run.At(i));
    }
  }
}

// Makes one call, blocking or with a callback, with a deadline of 1 ms to 1 s, or a long one.
void Trouble::AskOne(Entropy& entropy) {
  Customer& customer = customers_[entropy.Below(customers_.size())];
  Client& client = *customer.client;
  const bool patient = OneIn(4, entropy);
  const Milliseconds time(patient ? 20'000 : 1 << UpTo(10, entropy));
  const bool later = OneIn(2, entropy) && ledger_.under_way() < 2'000;
  const int what = UpTo(4, entropy), many = 1 + UpTo(20, entropy);
  const bool text = what == 2, local = what == 3;
  const CallPtr record =
      ledger_.Began({.time = time,
                     .patient = patient,
                     .attempt = customer.attempt_limit,
                     .local = local,
                     .timed = !text && !local,
                     .count = text ? std::nullopt : std::optional(what < 2 ? many : 1)});
  const CallOptions call{.deadline = time, .report = &record->report};
  const auto end = [this, record](const auto& result) {
    std::vector<int64_t> ids;
    if (result.ok()) IdsOf(*result, ids);
    ledger_.Ended(*record, result.status(), ids);
  };
  switch (what) {
    case 0:
      return later ? client.GetIds("order", many, end, call)
                   : end(client.GetIds("order", many, call));
    case 1:
      return later ? client.GetRuns("order", many, end, call)
                   : end(client.GetRuns("order", many, call));
    case 2:
      return later ? client.GetText("order", end, call) : end(client.GetText("order", call));
    case 3:
      return later ? client.GetId("local", end, call) : end(client.GetId("local", call));
    default:
      return later ? client.GetId("order", end, call) : end(client.GetId("order", call));
  }
}

void Trouble::Ask(const std::stop_token& stop, uint64_t seed) {
  SeededEntropy entropy(seed);
  Scheduling::Notes notes(scheduling_);
  while (!stop.stop_requested()) {
    AskOne(entropy);
    notes.Add();
  }
}

// Samples the threads that every call needs.
void Trouble::Begin() {
  const std::set<pid_t> before = Threads();
  executor_.emplace();
  for (Customer& customer : customers_) {
    const ClientOptions options = Options(customer);
    customer.attempt_limit = options.attempt_limit;
    customer.client.emplace(options);
  }
  std::set<pid_t> own = Threads();
  for (const pid_t other : before) own.erase(other);
  scheduling_.Watch(own);
  for (Customer& customer : customers_) TellList(customer);
}

std::string Trouble::AwaitIdle() {
  if (!Eventually(kPatience, [this] { return ledger_.under_way() == 0; })) {
    return Cat(ledger_.under_way(), " calls do not end\n");
  }
  std::string busy;
  for (Customer& customer : customers_) {
    const auto seems_busy = [&](const SeenServer& server) { return server.in_flight != 0; };
    const auto all = [&] { return customer.client->cluster().servers; };
    const bool idle =
        Eventually(kPatience, [&] { return std::ranges::none_of(all(), seems_busy); });
    if (!idle) busy += "a server has calls in flight that never end\n";
  }
  return busy;
}

// Resets the servers to their initial state, and drops pending connections.
void Trouble::End() {
  uint64_t retries = 0;
  for (Customer& customer : customers_) retries += customer.client->counters().retries;
  ledger_.ClientsEnd(retries);
  for (Customer& customer : customers_) customer.client.reset();
  executor_.reset();
  for (FakeServer& server : servers_) {
    server.Down();
    server.Up();
  }
}

std::string Trouble::Run() {
  Begin();
  {
    std::vector<std::jthread> threads;
    const int most = OneIn(4, entropy_) ? threads_max_ : std::min(threads_max_, 8);
    for (int i = 1 + UpTo(most - 1, entropy_); i > 0; --i) {
      threads.emplace_back(
          [this, seed = entropy_.Next()](const std::stop_token& stop) { Ask(stop, seed); });
    }
    Scheduling::Notes notes(scheduling_);  // this thread holds the lock of the lists
    const BootMs until = TestNow() + kRound;
    while (TestNow() < until) {
      Happen();
      notes.Add();
      Eventually(Milliseconds(UpTo(30, entropy_)), [] { return false; });
    }
    // Stops all threads at once: a thread's destructor stops and joins only that thread.
    for (std::jthread& thread : threads) thread.request_stop();
  }
  std::string faults = OneIn(2, entropy_) ? AwaitIdle() : "";
  End();
  faults += leftovers_.Faults();
  scheduling_.Stop();
  return faults + ledger_.Faults(scheduling_);
}

uint64_t Argument(int argc, char** argv, std::string_view name, uint64_t otherwise) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (argv[i] == name) return std::strtoull(argv[i + 1], nullptr, 10);
  }
  return otherwise;
}

int Main(int argc, char** argv) {
  uint64_t seed = Argument(argc, argv, "--seed", 1);
  const Milliseconds time(1'000 * static_cast<int64_t>(Argument(argc, argv, "--seconds", 20)));
  const auto threads_max = static_cast<int>(Argument(argc, argv, "--threads_max", 64));
  TroubleLedger::Sum sum;
  const BootMs until = TestNow() + time;
  uint64_t seeds = 0;
  int64_t last_id = 0;
  for (; TestNow() < until; ++seed, ++seeds) {
    Trouble trouble(seed, std::max(threads_max, 1), last_id);
    const std::string faults = trouble.Run();
    sum += trouble.ledger().sum();
    last_id = trouble.ledger().last_id();
    if (faults.empty()) continue;
    std::printf("seed %llu:\n%s", static_cast<unsigned long long>(seed), faults.c_str());
    return 1;
  }
  std::printf("%llu seeds: %s\n", static_cast<unsigned long long>(seeds), sum.ToString().c_str());
  return 0;
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) { return firn::Main(argc, argv); }
