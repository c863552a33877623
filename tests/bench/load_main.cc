// firn-load: closed-loop load on any server that speaks one of the dialects; prints one line.

#include <csignal>
#include <cstdio>
#include <ctime>
#include <optional>

#include <gflags/gflags.h>

#include "tests/bench/load_client.h"
#include "tools/bench/load_record.h"

DEFINE_string(dialect, "thrift", "thrift, list, runs, resp, http, postgresql, mysql or echo");
DEFINE_string(subject, "default", "the tag, the key, the path, the sequence or the table");
DEFINE_int32(ids, 1, "ids that each request asks for (dialects list and runs)");
DEFINE_string(host, "127.0.0.1", "IPv4 address of the server, or the path of its Unix socket");
DEFINE_int32(port, 7609, "port of the server");
DEFINE_int32(connections, 1, "connections");
DEFINE_int32(depth, 1, "requests in flight on each connection");
DEFINE_int32(warmup_ms, 200, "time that is not measured");
DEFINE_int32(measure_ms, 1000, "time that is measured");
DEFINE_int32(patience_ms, 5000, "no answer at all for so long is a failure");
DEFINE_bool(check, false, "keep every id and fail when one comes twice");
DEFINE_bool(json, false, "print JSON");
DEFINE_bool(dial_anew, false, "a new connection, and with TLS a full handshake, for each request");
DEFINE_bool(tls, false, "speak TLS; without --tls_ca to a server of any certificate");
DEFINE_string(tls_ca, "", "authorities that the server's certificate is to be of, PEM");

namespace {

int64_t NowNs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Each of the two TLS flags enables TLS.
std::optional<firn::LoadTls> ChosenTls() {
  if (!FLAGS_tls && FLAGS_tls_ca.empty()) return std::nullopt;
  return firn::LoadTls{.ca = FLAGS_tls_ca};
}

void Print(const firn::LoadReport& report, uint64_t duplicates) {
  const char* form = FLAGS_json
                         ? "{\"rate\":%.0f,\"answers\":%llu,\"refused\":%llu,\"duplicates\":%llu,"
                           "\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f}\n"
                         : "%.0f a second, %llu answers, %llu refused, %llu duplicates; "
                           "p50 %.1f us, p99 %.1f us, p99.9 %.1f us\n";
  const auto us = [&](double quantile) {
    return static_cast<double>(report.latency.Quantile(quantile)) / 1000.0;
  };
  std::printf(form, report.rate(), static_cast<unsigned long long>(report.answers),
              static_cast<unsigned long long>(report.refused),
              static_cast<unsigned long long>(duplicates), us(0.5), us(0.99), us(0.999));
}

}  // namespace

int main(int argc, char** argv) {
  gflags::SetUsageMessage("closed-loop load; exit 1 on failure or duplicates, 2 on wrong flags");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's writes raise it
  const auto dialect = firn::MakeDialect(FLAGS_dialect, FLAGS_subject, FLAGS_ids);
  if (!dialect.ok()) return std::fprintf(stderr, "%s\n", dialect.status().message().c_str()), 2;
  if (FLAGS_check && FLAGS_ids > 1) return std::fprintf(stderr, "--check keeps single ids\n"), 2;
  const firn::LoadPlan plan{.host = FLAGS_host,
                            .port = static_cast<uint16_t>(FLAGS_port),
                            .connections = FLAGS_connections,
                            .depth = FLAGS_depth,
                            .warmup_ms = FLAGS_warmup_ms,
                            .measure_ms = FLAGS_measure_ms,
                            .patience_ms = FLAGS_patience_ms,
                            .keep_ids = FLAGS_check,
                            .dial_anew = FLAGS_dial_anew,
                            .tls = ChosenTls()};
  auto report = firn::RunLoad(plan, **dialect, NowNs);
  if (!report.ok()) return std::fprintf(stderr, "%s\n", report.status().ToString().c_str()), 1;
  const uint64_t duplicates = firn::CountDuplicates(report->ids);
  Print(*report, duplicates);
  return duplicates == 0 ? 0 : 1;
}
