#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gflags/gflags.h>
#include <poll.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/time/clock.h"
#include "registry/operate/audit.h"
#include "tools/firn/client_session.h"
#include "tools/firn/drill/drill_record.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/verbs/id_words.h"
#include "tools/firn/verbs/verbs.h"

DEFINE_string(for, "", "Duration: 90s, 10m or 1h. Empty: until Ctrl-C.");
DEFINE_string(svg, "", "File for a plot of rate and latency over time. Empty: none.");
DEFINE_uint64(failed_max, 0, "Number of calls that may fail before the verdict is BROKEN.");

DECLARE_bool(json);
DECLARE_double(rate);
DECLARE_int32(threads);
DECLARE_int32(ids_max);

namespace firn {
namespace {

constexpr double kRate = 100, kRateMax = 10'000;
constexpr int kThreads = 4;
constexpr int64_t kMsMax = int64_t{7} * 24 * 3'600'000;

volatile std::sig_atomic_t ended = 0;

// Makes Ctrl-C end the drill and print its verdict. A second Ctrl-C ends the program.
void EndAtSignals() {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, [](int again) {
      ended = 1;
      std::signal(again, SIG_DFL);
    });
  }
}

// Parses --for. 0: no limit.
Result<int64_t> MsOf(std::string text) {
  if (text.empty()) return int64_t{0};
  const std::string whole = text;
  int64_t unit = 1'000;
  if (text.ends_with('s') || text.ends_with('m') || text.ends_with('h')) {
    if (text.back() == 'm') unit = 60'000;
    if (text.back() == 'h') unit = 3'600'000;
    text.pop_back();
  }
  const auto number = ParseNumber<int64_t>(text);
  if (number && *number > 0 && *number <= kMsMax / unit) return *number * unit;
  return Invalid("--for requires a time such as 90s, 10m or 1h, not '" + whole + "'");
}

// Returns a line typed since the last call, if any. The drill records it as a mark.
std::string LineTyped(bool& open) {
  pollfd typed{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (!open || poll(&typed, 1, 0) <= 0) return {};
  std::string line;
  open = static_cast<bool>(std::getline(std::cin, line));
  return line;
}

struct WatchOptions {
  std::string tag;
  int threads = kThreads;
  double rate = kRate;      // calls per second
  size_t ids_max = 0;       // ids that are checked
  int64_t for_ms = 0;       // 0: until a signal
  uint64_t failed_max = 0;  // calls that may fail
  std::string svg;          // the file for a plot; empty: none
  bool quiet = false;       // prints nothing before the verdict
};

Result<WatchOptions> ReadWatchOptions(const std::vector<std::string>& words) {
  if (words.size() > 1) return Invalid("name one tag, or none for the servers' default tag");
  if (FLAGS_rate < 0 || FLAGS_rate > kRateMax) return Invalid(Cat("--rate must be 0 to ", 10'000));
  if (FLAGS_ids_max < 1) return Invalid("--ids_max must be 1 or more");
  WatchOptions options{.tag = words.empty() ? "" : words.front(),
                       .ids_max = static_cast<size_t>(FLAGS_ids_max),
                       .failed_max = FLAGS_failed_max,
                       .svg = FLAGS_svg,
                       .quiet = FLAGS_json};
  if (FLAGS_threads > 0) options.threads = FLAGS_threads;
  if (FLAGS_rate > 0) options.rate = FLAGS_rate;
  FIRN_ASSIGN(options.for_ms, MsOf(FLAGS_for));
  return options;
}

class Watch {
 public:
  Watch(Client& client, const Layout& layout, const WatchOptions& options)
      : client_(client), options_(options), record_(layout, options.ids_max) {
    plan_.tag = options.tag;
    plan_.threads = options.threads;
    plan_.rate = options.rate;
    plan_.warmup_ms = 0;
    plan_.measure_ms = 1'000;
    // Each thread has room for all calls of a second.
    plan_.ids_max = (static_cast<size_t>(plan_.rate) + 16) * static_cast<size_t>(plan_.threads);
  }

  Status Run() {
    const int64_t begun = SteadyNs();
    bool typing = true;
    while (ended == 0) {
      const double at_s = static_cast<double>(SteadyNs() - begun) / 1e9;
      if (options_.for_ms > 0 && at_s * 1000 >= static_cast<double>(options_.for_ms)) break;
      if (const std::string line = LineTyped(typing); !line.empty()) Mark(at_s, line);
      MarkServers(at_s);
      FIRN_ASSIGN(const ClientLoadReport report, RunClientLoad(client_, plan_, SteadyNs));
      // A second's record and the marks made during it both carry the time of its end.
      const double end_s = static_cast<double>(SteadyNs() - begun) / 1e9;
      record_.Add(end_s, report, SystemClock().Wall());
      Tell();
    }
    MarkServers(static_cast<double>(SteadyNs() - begun) / 1e9);
    return {};
  }
  DrillRecord& record() { return record_; }

 private:
  void Mark(double at_s, const std::string& what) {
    record_.Mark(at_s, what);
    if (!options_.quiet) std::cout << "  " << what << "\n";
  }
  // Adds marks for the changes of the client's list of servers since the last call.
  void MarkServers(double at_s) {
    std::map<std::string, std::string> now;
    for (const SeenServer& server : client_.cluster().servers) {
      now[server.known.address] = HealthName(server.health);
    }
    for (const auto& [address, health] : now) {
      const auto before = servers_.find(address);
      const bool is_new = before == servers_.end();
      if (record_.seconds().empty() || (!is_new && before->second == health)) continue;
      Mark(at_s, Cat(address, is_new ? " was added: " : " is ", health));
    }
    for (const auto& [address, health] : servers_) {
      if (!now.contains(address)) Mark(at_s, address + " was removed");
    }
    servers_ = std::move(now);
  }
  void Tell() const {
    if (options_.quiet) return;
    const DrillSecond& second = record_.seconds().back();
    char line[160];
    std::snprintf(
        line, sizeof line,
        "%6.0f s %8.1f calls/s   p50 %.3f ms   p99 %.3f ms   longest %.3f ms   failed %llu",
        second.at_s, second.calls_a_second, second.p50_ms, second.p99_ms, second.longest_ms,
        static_cast<unsigned long long>(second.failed));
    std::cout << line << std::endl;
  }

  Client& client_;
  const WatchOptions options_;
  ClientLoadPlan plan_;
  DrillRecord record_;
  std::map<std::string, std::string> servers_;
};

// Returns the faults that an audit finds, if the drill uses a registry.
std::vector<std::string> AuditFaults() {
  const std::string where = ChosenServers();
  if (!where.starts_with("zk://") && !where.starts_with("dir://")) return {};
  auto session = RegistrySession::Open();
  if (!session.ok()) return {std::string(session.status().message())};
  const auto audit = ReadAudit(session->registry(), SystemClock().Wall());
  return audit.ok() ? audit->Faults() : std::vector{std::string(audit.status().message())};
}

std::vector<std::string> Broken(const DrillRecord& record, uint64_t duplicates,
                                uint64_t failed_max) {
  std::vector<std::string> broken;
  if (duplicates > 0) broken.push_back(Cat(duplicates, " ids were issued more than once"));
  if (record.out_of_order() > 0) {
    broken.push_back(Cat(record.out_of_order(), " ids are lower than an id of an earlier second"));
  }
  if (record.failed() > failed_max)
    broken.push_back(Cat(record.failed(), " calls failed, more than --failed_max=", failed_max));
  if (record.ids() == 0) broken.push_back("no call was answered with an id");
  if (!record.kept_all()) broken.push_back("not all ids were checked; raise --ids_max");
  for (const std::string& fault : AuditFaults()) broken.push_back("firn audit: " + fault);
  return broken;
}

Json SecondsJson(const DrillRecord& record) {
  Json seconds = Json::array();
  for (const DrillSecond& second : record.seconds()) {
    seconds.push_back({{"at_s", second.at_s},
                       {"calls_per_s", second.calls_a_second},
                       {"calls", second.calls},
                       {"failed", second.failed},
                       {"p50_ms", second.p50_ms},
                       {"p99_ms", second.p99_ms},
                       {"longest_ms", second.longest_ms}});
  }
  return seconds;
}

Json VerdictJson(const DrillRecord& record, uint64_t duplicates) {
  Json json{{"ids_checked", record.ids()},
            {"all_ids_checked", record.kept_all()},
            {"duplicates", duplicates},
            {"order_checked", record.judged()},
            {"out_of_order", record.out_of_order()},
            {"calls", record.calls()},
            {"failed", record.failed()},
            {"failure", record.reasons().empty() ? "" : record.reasons().begin()->first},
            {"max_us", record.longest_ms() * 1000},
            {"machines", Json::array()},
            {"failures", Json::array()},
            {"marks", Json::array()}};
  for (const auto& [number, machine] : record.machines()) {
    json["machines"].push_back({{"machine", number},
                                {"ids", machine.ids},
                                {"first_s", machine.first_s},
                                {"last_s", machine.last_s}});
  }
  for (const auto& [why, seconds] : record.reasons()) {
    json["failures"].push_back({{"why", why}, {"seconds", seconds}});
  }
  for (const DrillMark& mark : record.marks()) {
    json["marks"].push_back({{"at_s", mark.at_s}, {"what", mark.what}});
  }
  json["seconds"] = SecondsJson(record);
  return json;
}

std::string VerdictText(const DrillRecord& record, uint64_t duplicates,
                        const std::vector<std::string>& broken) {
  std::string text = Cat("ids           ", record.ids(), ", ", duplicates, " duplicates\n",
                         "order         ", record.out_of_order(), " of ", record.judged(),
                         " lower than an id of an earlier second\n", "calls failed  ",
                         record.failed(), " of ", record.calls(), "\n");
  for (const auto& [why, seconds] : record.reasons()) {
    text += Cat("              in ", seconds, " seconds: ", why, "\n");
  }
  char longest[64];
  std::snprintf(longest, sizeof longest, "longest call  %.1f ms\n", record.longest_ms());
  text += longest;
  for (const auto& [number, machine] : record.machines()) {
    text += Cat("machine id    ", number, ": ", machine.ids, " ids, from second ",
                static_cast<int64_t>(machine.first_s), " to ", static_cast<int64_t>(machine.last_s),
                "\n");
  }
  text += broken.empty() ? "verdict       every promise was kept\n" : "verdict       BROKEN\n";
  for (const std::string& what : broken) text += "WRONG: " + what + "\n";
  return text;
}

Status Save(const std::string& path, const std::string& text) {
  FIRN_ASSIGN(const FileHandle file, FileHandle::Open(path, O_WRONLY | O_CREAT | O_TRUNC));
  return WriteAll(file.fd(), text, path);
}

Result<Output> RunWatch(const std::vector<std::string>& words) {
  FIRN_ASSIGN(const WatchOptions options, ReadWatchOptions(words));
  FIRN_ASSIGN(const LayoutChoice choice, ChosenLayout());
  FIRN_ASSIGN(const auto client, OpenClient());
  FIRN_TRY(client->GetId(options.tag).status().WithContext("the first call"));
  EndAtSignals();
  Watch watch(*client, choice.layout, options);
  FIRN_TRY(watch.Run());
  DrillRecord& record = watch.record();
  const uint64_t duplicates = record.CountDuplicates();
  const std::vector<std::string> broken = Broken(record, duplicates, options.failed_max);
  if (!options.svg.empty()) {
    const std::string title =
        Cat(broken.empty() ? "Every promise was kept" : "BROKEN", ": ", record.ids(), " ids, ",
            duplicates, " duplicates, ", record.failed(), " of ", record.calls(), " calls failed");
    FIRN_TRY(Save(options.svg, DrillPicture(record, title)));
  }
  Output output{.json = VerdictJson(record, duplicates),
                .text = VerdictText(record, duplicates, broken),
                .wrong = !broken.empty()};
  output.json["kept"] = broken.empty();
  output.json["broken"] = broken;
  return output;
}

}  // namespace

Verb DrillVerb() {
  Verb watch{
      .name = "watch",
      .arguments = "[TAG]",
      .summary = "takes ids of a running cluster while you break it, and checks every id",
      .details =
          "By default, makes 100 calls per second on four threads (--rate, --threads), and\n"
          "prints a line per second. Ctrl-C or --for ends it with a verdict: duplicate ids,\n"
          "ids out of order, failed calls, the longest call, and when each machine id issued.\n"
          "A line that you type becomes a mark; so does each change of the client's servers.\n"
          "Only ids with a time, by --layout, are checked for order. With --registry, the\n"
          "verdict includes an audit. Exit code 1 if a promise was broken.\n",
      .flags = {"for", "svg", "failed_max", "rate", "threads", "ids_max", "layout", "rack_bits",
                "timeout_ms", FIRN_CLIENT_FLAGS},
      .run = RunWatch};
  return {.name = "drill", .summary = "checks every id while something breaks", .below = {watch}};
}

}  // namespace firn
