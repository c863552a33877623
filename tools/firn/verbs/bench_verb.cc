#include <cstdio>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gflags/gflags.h>

#include "client/local_ranges.h"
#include "common/base/cat.h"
#include "common/base/files.h"
#include "tools/bench/client_load.h"
#include "tools/firn/client_session.h"
#include "tools/firn/verbs/verbs.h"

DEFINE_int32(threads, 0,
             "Number of threads that call and wait for the answer. 0: the verb's default.");
DEFINE_int32(depth, 0, "Number of asynchronous calls in flight, instead of --threads.");
DEFINE_int32(connections, 2, "Number of connections to each server.");
DEFINE_int32(batch, 1, "Number of ids per call.");
DEFINE_double(seconds, 2, "Duration of the measurement, in seconds.");
DEFINE_int32(warmup_ms, 200, "Duration of the load before the measurement, in milliseconds.");
DEFINE_string(
    local, "",
    "Kind of the tag whose ids are prefetched: snowflake or segment. Empty: no prefetching.");
DEFINE_int32(ids_max, 5'000'000, "Maximum number of ids that are checked for duplicates. 0: none.");
DEFINE_string(ids_file, "",
              "File to which the checked ids are written, one per line. Empty: none.");

DECLARE_double(rate);

namespace firn {
namespace {

constexpr int kBenchThreads = 1;  // without --threads

struct BenchOptions {
  ClientOptions client{};
  ClientLoadPlan load{};
  std::string ids_file{};  // empty: none
};

Result<BenchOptions> ReadBenchOptions(const std::vector<std::string>& words) {
  if (words.size() > 1) return Invalid("name one tag, or none for the servers' default tag");
  const std::string tag = words.empty() ? "" : words.front();
  if (FLAGS_ids_max < 0) return Invalid("--ids_max must be 0 or more");
  BenchOptions options{.load = {.tag = tag,
                                .threads = FLAGS_threads > 0 ? FLAGS_threads : kBenchThreads,
                                .depth = FLAGS_depth,
                                .batch = FLAGS_batch,
                                .rate = FLAGS_rate,
                                .warmup_ms = FLAGS_warmup_ms,
                                .measure_ms = static_cast<int64_t>(FLAGS_seconds * 1000),
                                .ids_max = static_cast<size_t>(FLAGS_ids_max)},
                       .ids_file = FLAGS_ids_file};
  options.client.connections = FLAGS_connections;
  if (FLAGS_local == "snowflake") {
    options.client.local_ranges = LocalRanges({LocalTag::Snowflake(tag)});
  } else if (FLAGS_local == "segment") {
    options.client.local_ranges = LocalRanges({LocalTag::Segment(tag)});
  } else if (!FLAGS_local.empty()) {
    return Invalid("--local must be snowflake or segment");
  }
  return options;
}

Json CountersJson(const ClientCounters& counters) {
  return {{"attempts", counters.attempts},
          {"retries", counters.retries},
          {"retries_denied", counters.retries_denied},
          {"timeouts", counters.timeouts},
          {"refused", counters.refused},
          {"local_taken", counters.local_taken},
          {"local_missed", counters.local_missed},
          {"local_awaited", counters.local_awaited},
          {"local_dropped", counters.local_dropped}};
}

double Us(const ClientLoadReport& report, double quantile) {
  return static_cast<double>(report.record.latency().Quantile(quantile)) / 1000.0;
}

std::string ReportText(const ClientLoadReport& report, uint64_t duplicates) {
  const LoadRecord& record = report.record;
  char text[400];
  std::snprintf(text, sizeof text,
                "%.0f calls/s, %.0f ids/s; p50 %.1f us, p99 %.1f us, p99.9 %.1f us, slowest "
                "%.1f us\n%llu calls, %llu failed; %llu duplicates among %s%zu ids\n",
                report.calls_rate(), report.ids_rate(), Us(report, 0.5), Us(report, 0.99),
                Us(report, 0.999), Us(report, 1), static_cast<unsigned long long>(record.calls()),
                static_cast<unsigned long long>(record.failed()),
                static_cast<unsigned long long>(duplicates), record.kept_all() ? "" : "the first ",
                record.kept());
  std::string all = text;
  if (record.failed() > 0) all += "WRONG: " + record.first_failure() + "\n";
  if (duplicates > 0) all += "WRONG: an id was issued twice\n";
  return all;
}

Json ReportJson(const ClientLoadReport& report, uint64_t duplicates) {
  const LoadRecord& record = report.record;
  return {{"calls_per_s", report.calls_rate()},
          {"ids_per_s", report.ids_rate()},
          {"calls", record.calls()},
          {"failed", record.failed()},
          {"failure", record.first_failure()},
          {"duplicates", duplicates},
          {"ids_checked", record.kept()},
          {"all_ids_checked", record.kept_all()},
          {"p50_us", Us(report, 0.5)},
          {"p99_us", Us(report, 0.99)},
          {"p999_us", Us(report, 0.999)},
          {"max_us", Us(report, 1)}};
}

// Writes the ids to a file, so that several runs can be checked for duplicates together.
Status WriteIds(const std::vector<int64_t>& ids, const std::string& path) {
  constexpr size_t kPieceBytes = 1 << 16;
  FIRN_ASSIGN(const FileHandle file, FileHandle::Open(path, O_WRONLY | O_CREAT | O_TRUNC));
  std::string piece;
  for (const int64_t id : ids) {
    piece += Cat(id, "\n");
    if (piece.size() < kPieceBytes) continue;
    FIRN_TRY(WriteAll(file.fd(), piece, path));
    piece.clear();
  }
  return WriteAll(file.fd(), piece, path);
}

Result<Output> RunBench(const std::vector<std::string>& words) {
  FIRN_ASSIGN(const BenchOptions options, ReadBenchOptions(words));
  FIRN_ASSIGN(const auto client, OpenClient(options.client));
  // The first call discovers the servers; it fails if there is no cluster.
  FIRN_TRY(client->GetId(options.load.tag).status().WithContext("the first call"));
  FIRN_ASSIGN(ClientLoadReport report, RunClientLoad(*client, options.load, SteadyNs));
  const uint64_t duplicates = report.record.CountDuplicates();
  if (!options.ids_file.empty()) {
    FIRN_TRY(WriteIds(report.record.kept_ids(), options.ids_file));
  }
  Output output{.json = ReportJson(report, duplicates),
                .text = ReportText(report, duplicates),
                .wrong = duplicates > 0 || report.record.failed() > 0};
  output.json["counters"] = CountersJson(client->counters());
  return output;
}

}  // namespace

Verb BenchVerb() {
  return {
      .name = "bench",
      .arguments = "[TAG]",
      .summary = "generates load through the client library: rate, latency, duplicates",
      .details =
          "By default one thread calls, each time as soon as its last call is answered. With\n"
          "--rate, all threads together make that many calls per second, and a call's latency\n"
          "counts from the time at which it was due. Exit code 1 if a call failed or an id was\n"
          "issued twice.\n",
      .flags = {"threads", "depth", "connections", "batch", "rate", "seconds", "warmup_ms", "local",
                "ids_max", "ids_file", FIRN_CLIENT_FLAGS},
      .run = RunBench};
}

}  // namespace firn
