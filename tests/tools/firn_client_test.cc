// Tests the verbs that use the client library, on real servers with a directory registry.

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

using Words = std::vector<std::string>;

// Two servers on a directory registry, shared by all cases.
struct SharedCluster {
  SharedCluster() {
    for (const std::string name : {"one", "two"}) {
      addresses.push_back("127.0.0.1:" + std::to_string(FreePort()));
      servers.emplace_back(Words{BuiltProgram("firn-server"), "--registry=" + registry,
                                 "--listen=" + addresses.back(),
                                 "--admin_listen=127.0.0.1:" + std::to_string(FreePort()),
                                 "--state_dir=" + (folder / name)},
                           Process::Options{.output_file = folder / (name + ".log")});
    }
  }

  TempDir folder;
  const std::string registry = "dir://" + (folder / "registry");
  std::vector<std::string> addresses;
  std::vector<Process> servers;
};

class FirnClientTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = std::make_unique<SharedCluster>(); }
  static void TearDownTestSuite() { cluster_.reset(); }

  void SetUp() override { ASSERT_TRUE(Serve(2)); }
  void TearDown() override {
    if (HasFailure()) cluster_->folder.Keep();
  }

  // Waits until clients use this many servers.
  static bool Serve(size_t count) {
    return Eventually(kPatience, [&] {
      const Json json = JsonOf(Firn({"servers", "--json"}).out);
      if (json.is_null() || !json.contains("servers")) return false;
      size_t asked = 0;
      for (const Json& server : json.at("servers")) asked += server.at("asked") == true ? 1U : 0U;
      return asked == count;
    });
  }

  static Finished Firn(Words words) {
    const bool asks = words[0] != "explain" &&
                      (words.size() == 1 || words[1].starts_with("-") || words[0] != "servers");
    if (asks) words.insert(words.end(), {"--deadline_ms=30000", "--attempt_ms=10000"});
    if (words[0] != "explain") words.push_back("--registry=" + cluster_->registry);
    return RunFirn(words);
  }
  static Json FirnJson(Words words, int exit_code = 0) {
    words.push_back("--json");
    const Finished finished = Firn(std::move(words));
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err << finished.out;
    return JsonOf(finished.out);
  }

  // Returns the machine ids of the ids that a few clients take.
  static std::set<int> Machines() {
    Words words{"explain"};
    for (int i = 0; i < 5; ++i) words.push_back(FirnJson({"next"}).at("ids").at(0).text());
    std::set<int> machines;
    for (const Json& id : FirnJson(words)) machines.insert(NumberOf<int>(id.at("machine")));
    return machines;
  }

  static const std::string& address(size_t server) { return cluster_->addresses.at(server); }

  inline static std::unique_ptr<SharedCluster> cluster_;
};

TEST_F(FirnClientTest, NextPrintsIdsAndText) {
  const Json taken = FirnJson({"next", "-n", "1000"});
  std::set<std::string> ids;
  for (const Json& id : taken.at("ids")) ids.insert(id.text());
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(FirnJson({"next", "default", "-n", "2", "--text"}).at("ids").size(), 2u);

  const Finished unknown = Firn({"next", "no-such-tag"});
  EXPECT_EQ(unknown.exit_code, 4);
  EXPECT_NE(unknown.err.find("no-such-tag"), std::string::npos) << unknown.err;
  EXPECT_EQ(Firn({"next", "-n", "0"}).exit_code, 2);
  EXPECT_EQ(Firn({"next", "a", "b"}).exit_code, 2);
}

TEST_F(FirnClientTest, NextWithoutAServerPrintsHowToStartOne) {
  for (const char* where : {"--servers=list://127.0.0.1:1", "--registry=dir:///no/such/folder"}) {
    const Finished alone = RunFirn({"next", where, "--deadline_ms=200"});
    EXPECT_NE(alone.exit_code, 0);
    EXPECT_NE(alone.err.find("`firn-server` starts one"), std::string::npos) << alone.err;
  }
  const Finished unknown = Firn({"next", "no-such-tag"});
  EXPECT_EQ(unknown.err.find("firn-server"), std::string::npos) << "a server answered";
}

TEST_F(FirnClientTest, FailsWithTryLaterWithoutAServer) {
  EXPECT_EQ(RunFirn({"next", "--servers=list://127.0.0.1:1", "--deadline_ms=200"}).exit_code, 3);
  EXPECT_EQ(RunFirn({"servers", "--registry=dir:///no/such/folder"}).exit_code, 4);
  EXPECT_EQ(RunFirn({"next", "--servers=nonsense"}).exit_code, 2);
}

TEST_F(FirnClientTest, WatchPrintsRateAndLatency) {
  const std::string out = cluster_->folder / "watch.log";
  Process watch({BuiltProgram("firn"), "next", "--watch", "--registry=" + cluster_->registry},
                {.output_file = out});
  const auto shown = [&] {
    std::ostringstream text;
    text << std::ifstream(out).rdbuf();
    return text.str();
  };
  EXPECT_TRUE(Eventually(kPatience, [&] {
    const std::string text = shown();
    return text.find("ids/s") != std::string::npos && text.find("p99") != std::string::npos;
  })) << shown();
  EXPECT_EQ(Firn({"next", "--watch", "--text"}).exit_code, 2) << "--watch prints no ids";
  watch.Signal(SIGTERM);
  EXPECT_EQ(watch.Wait(kPatience), 128 + SIGTERM);
}

TEST_F(FirnClientTest, TakesAServerOfflineAndOnlineAgain) {
  const Json both = FirnJson({"servers"});
  EXPECT_EQ(both.at("servers").size(), 2u);
  EXPECT_TRUE(both.at("servers").at(0).contains("latency_ms"));

  FirnJson({"servers", "offline", address(0)});
  const Json weighed = FirnJson({"servers", "weight", address(0), "7"});
  EXPECT_EQ(weighed.at("offline"), true);
  ASSERT_TRUE(Serve(1));
  EXPECT_EQ(Machines().size(), 1u);

  EXPECT_EQ(FirnJson({"servers", "online", address(0)}).at("weight"), 7);
  ASSERT_TRUE(Serve(2));
  EXPECT_EQ(Firn({"servers", "weight", address(0), "many"}).exit_code, 2);
  EXPECT_EQ(Firn({"servers", "offline", "nonsense"}).exit_code, 2);
}

TEST_F(FirnClientTest, ShowsThatClientsAvoidAServerOfWeightZero) {
  FirnJson({"servers", "weight", address(0), "0"});
  ASSERT_TRUE(Serve(1));
  const Json shown = FirnJson({"servers"});
  for (const Json& server : shown.at("servers")) {
    EXPECT_EQ(server.at("asked"), server.at("address") != address(0));
    EXPECT_EQ(server.at("weight") == 0, server.at("address") == address(0));
  }
  EXPECT_EQ(Machines().size(), 1u);
  FirnJson({"servers", "weight", address(0), "100"});
  ASSERT_TRUE(Serve(2));
}

TEST_F(FirnClientTest, ReportsAServerThatDoesNotAnswer) {
  const std::string gone = "127.0.0.1:" + std::to_string(FreePort());
  const Json json = FirnJson({"servers", "--servers=list://" + address(0) + "," + gone}, 1);
  ASSERT_EQ(json.at("servers").size(), 2u);
  for (const Json& server : json.at("servers")) {
    EXPECT_EQ(server.at("answers"), server.at("address") != gone);
    EXPECT_EQ(server.contains("why"), server.at("address") == gone);
  }
}

TEST_F(FirnClientTest, PrintsTheNumbersTakenBeforeACallFails) {
  const Finished made = RunFirn({"tags", "create", "few", "strategy=dated", "digits=1", "step=1",
                                 "--registry=" + cluster_->registry});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string from = "--servers=list://" + address(0);
  const Finished some = Firn({"next", "few", "-n", "20", "--text", from});
  EXPECT_EQ(some.exit_code, 3) << "the counter restarts tomorrow: " << some.err;
  EXPECT_EQ(std::ranges::count(some.out, '\n'), 9) << some.out;
  EXPECT_NE(some.err.find("9 of 20 were taken"), std::string::npos) << some.err;
  const Finished none = Firn({"next", "few", "-n", "20", "--text", from});
  EXPECT_EQ(none.out, "");
}

TEST_F(FirnClientTest, ExplainsATextOfFieldsByItsTag) {
  const std::string registry = "--registry=" + cluster_->registry;
  const Finished made =
      RunFirn({"tags", "create", "stamp", "strategy=snowflake", "text=S{id:fields}", registry});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  for (const std::string& server : cluster_->addresses) {  // of two machine ids one is not 0
    const std::string from = "--servers=list://" + server;
    const std::string id = FirnJson({"next", from}).at("ids").at(0).text();
    const std::string text = FirnJson({"next", "stamp", "--text", from}).at("ids").at(0).text();
    const Finished read = RunFirn({"explain", text, "--tag=stamp", "--json", registry});
    const Json shown = JsonOf(read.out);
    ASSERT_TRUE(shown.is_array()) << text << read.err;
    const Json& fields = shown.at(0);
    std::string time = fields.at("time").text();
    std::erase_if(time, [](char c) { return c < '0' || c > '9'; });
    EXPECT_EQ(text.substr(0, 19), "S" + time + "-");
    EXPECT_EQ(std::stoi(text.substr(19, 4)), FirnJson({"explain", id}).at(0).at("machine"));
    EXPECT_EQ(std::stoi(text.substr(19, 4)), fields.at("machine"));
    EXPECT_EQ(std::stoi(text.substr(24)), fields.at("sequence"));
  }
}

// Returns the properties of a UUID as Python prints them: version, variant (2 is that of RFC 9562),
// and all bits in hexadecimal.
std::vector<std::string> ReadByOthers(const std::string& uuid, const TempDir& folder) {
  const Finished python =
      RunToEnd({"/usr/bin/python3", "-c",
                "import sys, uuid; u = uuid.UUID(sys.argv[1]); "
                "print(u.version, 2 if u.variant == uuid.RFC_4122 else 0, '%032x' % u.int)",
                uuid});
  std::ofstream(folder / "Read.java") << R"(
    public class Read {
      public static void main(String[] of) {
        java.util.UUID u = java.util.UUID.fromString(of[0]);
        System.out.printf("%d %d %016x%016x%n", u.version(), u.variant(),
                          u.getMostSignificantBits(), u.getLeastSignificantBits());
      }
    })";
  const Finished java = RunToEnd({"java", folder / "Read.java", uuid});
  return {python.out + python.err, java.out + java.err};
}

TEST_F(FirnClientTest, ExplainsAUuidByItsTag) {
  const std::string registry = "--registry=" + cluster_->registry;
  const Finished made =
      RunFirn({"tags", "create", "uuids", "strategy=snowflake", "text={id:uuid7}", registry});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string uuid =
      FirnJson({"next", "uuids", "--text", "--servers=list://" + cluster_->addresses[0]})
          .at("ids")
          .at(0)
          .text();
  const auto by_tag = [&](const std::string& verb) {
    const Finished read = RunFirn({verb, uuid, "--tag=uuids", "--json", registry});
    EXPECT_EQ(read.exit_code, 0) << read.err;
    return JsonOf(read.out).at(0);
  };
  const Json shown = by_tag("explain");
  const auto id = static_cast<uint64_t>(std::stoll(shown.at("id").text()));
  EXPECT_EQ(by_tag("who").at("id"), shown.at("id"));
  const auto ms = NumberOf<uint64_t>(shown.at("time_ms"));
  EXPECT_EQ(std::stoull(uuid.substr(0, 8) + uuid.substr(9, 4), nullptr, 16), ms);

  char bits[33];
  std::snprintf(bits, sizeof bits, "%016lx%016lx", ms << 16 | 7U << 12 | id >> 52,
                uint64_t{1} << 63 | (id & ((uint64_t{1} << 52) - 1)) << 10);
  for (const std::string& read : ReadByOthers(uuid, cluster_->folder)) {
    EXPECT_EQ(read, std::string("7 2 ") + bits + "\n");
  }
  const Finished refused =
      RunFirn({"tags", "create", "numbers", "strategy=segment", "text={id:uuid7}", registry});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("{id:uuid7} is of snowflake tags only"), std::string::npos);
}

TEST_F(FirnClientTest, BenchMeasuresEachKindOfLoad) {
  for (const Words& load :
       {Words{"--threads=2"}, Words{"--depth=8"}, Words{"--batch=10", "--depth=2"},
        Words{"--threads=2", "--rate=100"}, Words{"--local=snowflake", "--threads=2"}}) {
    Words words{"bench", "--seconds=0.3", "--warmup_ms=50"};
    words.insert(words.end(), load.begin(), load.end());
    const Json json = FirnJson(std::move(words));
    EXPECT_GT(NumberOf(json.at("calls")), 0) << load[0];
    EXPECT_EQ(json.at("failed"), 0) << load[0];
    EXPECT_EQ(json.at("duplicates"), 0) << load[0];
    EXPECT_GE(NumberOf(json.at("ids_checked")), NumberOf(json.at("calls"))) << load[0];
    const auto micros = [&json](const char* name) { return std::stod(JsonText(json.at(name))); };
    EXPECT_GE(micros("p99_us"), micros("p50_us")) << load[0];
  }
  EXPECT_EQ(Firn({"bench", "--depth=8", "--rate=100"}).exit_code, 2);
  EXPECT_EQ(Firn({"bench", "--local=nonsense"}).exit_code, 2);
  EXPECT_EQ(Firn({"bench", "no-such-tag"}).exit_code, 4);
}

}  // namespace
}  // namespace firn
