#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/units.h"
#include "common/time/clock.h"
#include "tools/bench/client_load.h"
#include "tools/firn/client_session.h"
#include "tools/firn/verbs/verbs.h"

DEFINE_int32(n, 1, "Number of ids.");
DEFINE_bool(text, false, "Print ids in the text form of their tag.");
DEFINE_double(rate, 0, "Calls per second. 0: the verb's default.");

DECLARE_bool(watch);

namespace firn {
namespace {

using Words = std::vector<std::string>;

constexpr int32_t kIdsMax = 1'000'000;
constexpr int32_t kIdsOfACall = 100'000;
constexpr double kWatchRate = 10;  // without --rate
// Time for retries: the first numbers of a new tag, for example, may take longer than the deadline
// of a call.
constexpr Milliseconds kPatience{2'000};
constexpr Milliseconds kAgainAfter{100};

struct NextOptions {
  std::string tag{};  // empty: the servers' default tag
  int32_t n = 1;      // number of ids; with --watch, of each call
  bool text = false, watch = false;
  double rate = kWatchRate;  // calls per second of --watch
};

Result<NextOptions> ReadNextOptions(const Words& words) {
  if (words.size() > 1) return Invalid("name one tag, or none for the servers' default tag");
  NextOptions options{.tag = words.empty() ? "" : words.front(),
                      .n = FLAGS_n,
                      .text = FLAGS_text,
                      .watch = FLAGS_watch};
  if (FLAGS_rate > 0) options.rate = FLAGS_rate;
  if (options.n < 1 || options.n > kIdsMax) return Invalid(Cat("-n must be 1 to ", kIdsMax));
  if (options.watch && options.text) return Invalid("--watch prints no ids; omit --text");
  return options;
}

Status Take(Client& client, const NextOptions& options, Words& ids) {
  const auto missing = options.n - static_cast<int32_t>(ids.size());
  if (options.text) {
    FIRN_ASSIGN(std::string text, client.GetText(options.tag));
    ids.push_back(std::move(text));
  } else if (missing == 1) {
    FIRN_ASSIGN(const int64_t id, client.GetId(options.tag));
    ids.push_back(std::to_string(id));
  } else {
    FIRN_ASSIGN(const auto batch, client.GetIds(options.tag, std::min(missing, kIdsOfACall)));
    for (const int64_t id : batch) ids.push_back(std::to_string(id));
  }
  return {};
}

// Returns whether any server accepted a connection, so that at least one server runs.
bool Reached(const Client& client) { return client.counters().connects > 0; }

std::string WatchLine(const ClientLoadReport& report) {
  const auto ms = [&](double quantile) {
    return static_cast<double>(report.record.latency().Quantile(quantile)) / 1e6;
  };
  char line[160];
  std::snprintf(line, sizeof line,
                "%8.1f ids/s   p50 %.3f ms   p99 %.3f ms   slowest %.3f ms   failed %llu",
                report.ids_rate(), ms(0.5), ms(0.99), ms(1),
                static_cast<unsigned long long>(report.record.failed()));
  return line;
}

// Prints a line per second, until interrupted.
Status Watch(Client& client, const NextOptions& options) {
  const ClientLoadPlan plan{.tag = options.tag,
                            .batch = options.n,
                            .rate = options.rate,
                            .warmup_ms = 0,
                            .measure_ms = 1000,
                            .ids_max = 1};
  for (;;) {
    FIRN_ASSIGN(const ClientLoadReport report, RunClientLoad(client, plan, SteadyNs));
    std::cout << WatchLine(report) << "\n";
    if (report.record.failed() > 0) std::cout << "  " << report.record.first_failure() << "\n";
    std::cout << std::flush;
  }
}

Result<Output> RunNext(const Words& words) {
  FIRN_ASSIGN(const NextOptions options, ReadNextOptions(words));
  const auto opened = OpenClient();
  if (!opened.ok()) return WithHint(opened.status());
  const std::unique_ptr<Client>& client = *opened;
  if (options.watch) return Watch(*client, options);

  Words ids;
  Status taken;
  const auto wanted = static_cast<size_t>(options.n);
  const BootMs give_up = SystemClock().Boot() + kPatience;
  while (taken.ok() && ids.size() < wanted) {
    taken = Take(*client, options, ids);
    const bool may_come = taken.code() == Code::kUnavailable && Reached(*client);
    if (!may_come || SystemClock().Boot() >= give_up) continue;
    SleepFor(kAgainAfter);
    taken = {};
  }
  if (taken.code() == Code::kUnavailable && !Reached(*client)) taken = WithHint(taken);
  const std::string& tag = options.tag;
  if (!taken.ok()) taken = taken.WithContext(tag.empty() ? "the default tag" : tag);
  if (ids.empty()) return taken;
  // Print the ids that were taken: the servers will not issue them again.
  if (!taken.ok()) taken = taken.WithContext(Cat(ids.size(), " of ", wanted, " were taken"));
  Output output{.json = Json{{"tag", tag}, {"ids", ids}}, .text = {}, .failed = taken};
  for (const std::string& id : ids) output.text += id + "\n";
  return output;
}

}  // namespace

Verb NextVerb() {
  return {.name = "next",
          .arguments = "[TAG] [-n N]",
          .summary = "takes ids through the client library",
          .details =
              "Without a tag, the servers use their default tag. --watch repeats the call until\n"
              "interrupted, 10 times per second or as --rate says, and prints rate and latency\n"
              "every second.\n",
          .flags = {"n", "text", "watch", "rate", FIRN_CLIENT_FLAGS},
          .run = RunNext};
}

}  // namespace firn
