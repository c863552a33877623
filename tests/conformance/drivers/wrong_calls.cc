#include "tests/conformance/drivers/wrong_calls.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "client/local_ranges.h"

namespace firn {
namespace {

using Note = std::function<void(const std::string& name, const Status& status)>;

void WrongCallbacks(Client& client, const std::string& too_long, const Note& note) {
  const auto call = [&]<typename T>(const std::string& name, T, auto start) {
    std::promise<Status> ended;
    start([&](Result<T> answer) { ended.set_value(answer.status()); });
    note(name, ended.get_future().get());
  };
  const std::string order = "order";
  call("tag", int64_t{}, [&](auto done) { client.GetId(too_long, done); });
  call("tag", std::string(), [&](auto done) { client.GetText(too_long, done); });
  for (const int count : {0, 100'001, INT_MIN}) {
    call("count", std::vector<int64_t>(), [&](auto done) { client.GetIds(order, count, done); });
    call("runs", std::vector<IdRun>(),
         [&](auto done) { client.GetRuns(order, std::min(count, 0), done); });
  }
  note("tag", client.GetIdLater(too_long).get().status());
}

void WrongOptions(Client& client, const std::string& too_long, const Note& note) {
  const auto options = [&](const std::string& name, auto change) {
    ClientOptions changed{.servers = "list://127.0.0.1:1"};
    change(changed);
    note(name, Client(changed).status());
  };
  for (const int64_t ms : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    options("deadline", [&](auto& one) { one.deadline = Milliseconds(ms); });
    options("attempt_limit", [&](auto& one) { one.attempt_limit = Milliseconds(ms); });
  }
  for (const int number : {-1, INT_MIN, INT_MAX}) {
    options("attempts_max", [&](auto& one) { one.attempts_max = number; });
    options("connections", [&](auto& one) { one.connections = number; });
    options("servers_max", [&](auto& one) { one.servers_max = number; });
  }
  options("tls", [](auto& one) { one.tls = TlsOptions{.cert = "a"}; });
  const LocalTag order = LocalTag::Segment("order"), long_tag = LocalTag::Segment(too_long);
  options("local_ranges", [&](auto& one) { one.local_ranges = LocalRanges({order, order}); });
  options("local_ranges", [&](auto& one) { one.local_ranges = LocalRanges({long_tag}); });
  options("local_ranges", [&](auto& one) {
    std::vector<LocalTag> many;
    for (int i = 0; i < 65; ++i) many.push_back(LocalTag::Segment(std::to_string(i)));
    one.local_ranges = LocalRanges(many);
  });
  const auto lease = [&](const std::string& name, LeaseOptions of) {
    note(name, client.OpenGenerator(std::move(of), Milliseconds(1)).status());
  };
  for (const std::string& name : {std::string(), std::string("a b"), too_long}) {
    lease("name", {.name = name});
  }
  for (const int64_t ms : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
    lease("ahead", {.name = "a", .ahead = Milliseconds(ms)});
  }
}

}  // namespace

Json WrongCalls(Client& client) {
  int failed = 0;
  std::string taken;
  int answered = 0;
  const auto note = [&](const std::string& name, const Status& status) {
    if (!status.ok()) {
      ++failed;
    } else {
      ++answered;
      taken += name + " ";
    }
  };
  const std::string too_long(129, 'a');
  note("tag", client.GetId(too_long).status());
  note("tag", client.GetIds(too_long, 1).status());
  note("tag", client.GetText(too_long).status());
  for (const int count : {0, -1, 100'001, INT_MIN, INT_MAX}) {
    note("count", client.GetIds("order", count).status());
  }
  for (const char* servers : {"", "list://", "list://nowhere", "http://127.0.0.1:1"}) {
    note("servers", Client({.servers = servers}).status());
  }
  for (const int64_t count : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    note("runs", client.GetRuns("order", count).status());
  }
  note("layout", client.Explain(1, too_long).status());
  WrongCallbacks(client, too_long, note);
  WrongOptions(client, too_long, note);
  return {{"answered", answered}, {"failed", failed}, {"failure", taken}};
}

}  // namespace firn
