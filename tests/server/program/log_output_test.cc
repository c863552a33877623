#include "server/log_output.h"

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/program/running_server.h"
#include "tests/support/json_of.h"

namespace firn {
namespace {

std::vector<LogEntry> entries;

void Keep(const LogEntry& entry) { entries.push_back(entry); }

Json Written(const LogEntry& entry) {
  const std::string line = JsonLogLine(entry, WallMs(1'795'583'117'123));
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
  return JsonOf(line);
}

TEST(LogOutputTest, WritesOneObjectWithStableNames) {
  entries.clear();
  SendLogTo(Keep);
  LogWarning("store_failed").With("tag", "a\"b\n").With("numbers", int64_t{1} << 62)
      << "tag " << 7 << ": a\"b\n";
  LogError("internal").With("reason", "") << "";
  SendLogTo(nullptr);
  LogError("internal").With("tag", "unheard") << "without a sink";
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(Written(entries[0]),
            Json({{"time", "2026-11-25T05:05:17.123Z"},
                  {"level", "warning"},
                  {"event", "store_failed"},
                  {"message", "tag 7: a\"b\n"},
                  {"fields", {{"tag", "a\"b\n"}, {"numbers", int64_t{1} << 62}}},
                  {"source", "log_output_test.cc:" + std::to_string(entries[0].where.line())}}));
  const Json bare = Written(entries[1]);
  EXPECT_EQ(bare.at("level"), "error");
  EXPECT_EQ(bare.at("message"), "");
  EXPECT_EQ(bare.at("fields"), Json::object());
}

// Clients choose names of tags: no bytes of theirs may break a line or an object.
TEST(LogOutputTest, WritesAnObjectForAnyBytes) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  const Json line = Written({Severity::kInfo, {}, bytes, "call_refused", {{"tag", bytes}}});
  EXPECT_EQ(line.at("event"), "call_refused");
  EXPECT_EQ(line.at("message"), line.at("fields").at("tag"));
}

std::vector<Json> LinesOf(const std::string& log) {
  std::vector<Json> lines;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(JsonOf(line));
    EXPECT_FALSE(lines.back().is_null()) << line;
  }
  return lines;
}

std::set<std::string> EventsOf(const std::string& log) {
  std::set<std::string> events;
  for (const Json& line : LinesOf(log)) {
    for (const char* member : {"time", "level", "event", "message", "fields", "source"}) {
      EXPECT_TRUE(line.contains(member)) << line;
    }
    if (line.is_object()) events.insert(line.at("event").text());
  }
  return events;
}

TEST(LogOutputTest, AServerWritesOnlyObjects) {
  TempDir folder;
  RunningServer server(folder / "state", {"--log_format=json"});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(server.Get("/v1/ids/nothing%0Asuch?n=999999999").status, 400);
  EXPECT_NE(server.Get("/v1/ids/..").status, 200);
  server.process().Signal(SIGTERM);
  ASSERT_TRUE(server.process().Wait(Milliseconds(20'000)));
  const std::set<std::string> events = EventsOf(server.log());
  for (const char* event :
       {"listening", "started", "claim_claimed", "readiness_changed", "draining", "drained"}) {
    EXPECT_TRUE(events.contains(event)) << event << " is missing in\n" << server.log();
  }
}

TEST(LogOutputTest, WritesTheTraceOfARefusedCall) {
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  TempDir folder;
  // Even on a busy machine the registry answers in this time that there are no such tags.
  RunningServer server(folder / "state", {"--log_format=json", "--issue_wait_ms=30000"});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  front::RawPeer peer(static_cast<uint16_t>(server.port()));
  // The second call has no trace.
  ASSERT_TRUE(peer.Send("GET /v1/ids/first HTTP/1.1\r\nHost: a\r\nTraceparent: 00-" + trace +
                        "-00f067aa0ba902b7-01\r\n\r\n"
                        "GET /v1/ids/second HTTP/1.0\r\n\r\n"));
  EXPECT_NE(peer.ReceiveAll(), "");
  std::map<std::string, Json> fields_of;
  for (const Json& line : LinesOf(server.log())) {
    if (line.at("event") != "call_refused") continue;
    fields_of.emplace(line.at("fields").at("tag").text(), line.at("fields"));
  }
  ASSERT_EQ(fields_of.size(), 2u) << server.log();
  EXPECT_EQ(fields_of.at("first").at("trace_id"), trace);
  EXPECT_EQ(fields_of.at("first").at("reason"), "UNKNOWN_TAG");
  EXPECT_FALSE(fields_of.at("second").contains("trace_id"));
}

TEST(LogOutputTest, WritesAnUnreachableRegistryAsObjects) {
  TempDir folder;
  RunningServer away(folder / "away", {"--log_format=json", "--registry=zk://127.0.0.1:9/firn/x"});
  ASSERT_TRUE(Eventually(Milliseconds(30'000), [&] { return !away.log().empty(); }));
  EXPECT_FALSE(EventsOf(away.log()).empty());
}

TEST(LogOutputTest, WritesNoLineBelowTheLevel) {
  TempDir folder;
  for (const std::string format : {"text", "json"}) {
    RunningServer server(folder / format, {"--log_level=error", "--log_format=" + format});
    ASSERT_TRUE(server.BecomesReady()) << server.log();
    EXPECT_EQ(server.log(), "") << format << ": nothing has failed";
  }
}

TEST(LogOutputTest, RefusesAnUnknownFormatOrLevel) {
  const Finished refused = RunToEnd(
      {BuiltProgram("firn-server"), "--check_config", "--log_format=xml", "--log_level=loud"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--log_format must be one of text, json"), std::string::npos);
  EXPECT_NE(refused.err.find("--log_level must be one of info, warning, error"), std::string::npos);
}

TEST(LogOutputTest, ReportsAnInvalidConfigurationAsAnObject) {
  const Finished refused =
      RunToEnd({BuiltProgram("firn-server"), "--log_format=json", "--listen=nowhere"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(EventsOf(refused.err), std::set<std::string>{"start_failed"});
}

}  // namespace
}  // namespace firn
