#include "server/flags/options.h"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include "server/flags/command_line.h"
#include "server/flags/flag_help.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

using Flags = std::initializer_list<std::pair<const char*, std::string>>;

// Reads the flags of a command line, separately for each test.
class ServerOptionsTest : public testing::Test {
 protected:
  Result<ServerOptions> Read(Flags flags) {
    const gflags::FlagSaver saver;
    gflags::SetCommandLineOption("state_dir", (dir_ / "state").c_str());
    for (const auto& [name, value] : flags) {
      EXPECT_FALSE(gflags::SetCommandLineOption(name, value.c_str()).empty()) << name;
    }
    return ReadServerOptions();
  }
  ServerOptions Good(Flags flags) {
    auto read = Read(flags);
    EXPECT_TRUE(read.ok()) << read.status();
    return *std::move(read);
  }
  std::string Faults(Flags flags) { return Read(flags).status().message(); }

  std::string Write(const std::string& name, const std::string& text, int mode) {
    const std::string path = dir_ / name;
    std::ofstream(path) << text;
    std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode));
    return path;
  }

  TempDir dir_;
};

TEST_F(ServerOptionsTest, PassesMachineIdFlagsToTheClaim) {
  const ServerOptions read = Good({{"claim_window_ms", "120000"},
                                   {"probation_ms", "700"},
                                   {"restore_probation_ms", "7100"},
                                   {"static_clock_ok", "true"},
                                   {"offline_start", "false"},
                                   {"zk_skew_max_ms", "2500"},
                                   {"session_timeout_ms", "4000"},
                                   {"rack", "7"},
                                   {"worker", "900"}});
  const ClaimOptions& claim = read.node.claim;
  EXPECT_EQ(claim.window, Milliseconds(120'000));
  EXPECT_EQ(claim.probation, Milliseconds(700));
  EXPECT_EQ(claim.restore_probation, Milliseconds(7'100));
  EXPECT_TRUE(read.place.static_clock_ok);
  EXPECT_FALSE(claim.offline_start);
  EXPECT_EQ(claim.skew_max, Milliseconds(2'500));
  EXPECT_EQ(read.place.session_timeout, Milliseconds(4'000));
  EXPECT_EQ(claim.rack, 7u);
  EXPECT_EQ(claim.worker, 900u);
  EXPECT_TRUE(claim.Check().ok()) << claim.Check();
}

TEST_F(ServerOptionsTest, RequiresARegistryIfOtherHostsReachTheServer) {
  for (const Flags& elsewhere :
       {Flags{{"listen", "10.0.0.7:7609"}}, Flags{{"advertise", "10.0.0.7:7609"}},
        Flags{{"listen", "[::]:7609"}, {"advertise", "[::1]:7609"}},
        Flags{{"admin_listen", "0.0.0.0:7610"}}}) {
    EXPECT_NE(Faults(elsewhere).find("--registry is required"), std::string::npos);
  }
  EXPECT_EQ(Faults({{"listen", "10.0.0.7:7609"}, {"embedded", "true"}}), "");
  EXPECT_EQ(Faults({{"listen", "10.0.0.7:7609"}, {"registry", "zk://h:2181/firn/x"}}), "");
  EXPECT_EQ(Faults({{"listen", "127.0.0.9:7609"}}), "");
  EXPECT_EQ(Faults({{"listen", "[::1]:7609"}, {"admin_listen", "[::1]:7610"}}), "");
  EXPECT_NE(Faults({{"registry", "zk://h:2181/firn/x"}, {"embedded", "true"}}), "");
}

TEST_F(ServerOptionsTest, PassesClockFlagsToTheIdClock) {
  const IdClockOptions clock =
      Good({{"clock_policy", "strict"}, {"clock_jump_max_ms", "0"}}).node.id_clock;
  EXPECT_EQ(clock.policy, ClockPolicy::kStrict);
  EXPECT_EQ(clock.jump_max, Milliseconds(0));
}

TEST_F(ServerOptionsTest, DefaultsEqualThoseOfTheClaimAndTheClock) {
  const ServerOptions read = Good({});
  EXPECT_EQ(read.node.claim.window, ClaimOptions{}.window);
  EXPECT_EQ(read.node.claim.probation, ClaimOptions{}.probation);
  EXPECT_EQ(read.node.claim.offline_start, ClaimOptions{}.offline_start);
  EXPECT_EQ(read.node.claim.skew_max, ClaimOptions{}.skew_max);
  EXPECT_EQ(read.node.id_clock.jump_max, IdClockOptions{}.jump_max);
  EXPECT_EQ(read.listen.limits.list_ids_max, front::Limits{}.list_ids_max);
}

TEST_F(ServerOptionsTest, RefusesNumbersOutsideTheirRange) {
  for (const auto& [name, value] : Flags{{"claim_window_ms", "999"},
                                         {"claim_window_ms", "21600001"},
                                         {"probation_ms", "-1"},
                                         {"restore_probation_ms", "-1"},
                                         {"zk_skew_max_ms", "0"},
                                         {"clock_jump_max_ms", "-1"},
                                         {"rack", "1024"},
                                         {"machine_ids", "0"},
                                         {"machine_ids", "17"},
                                         {"worker", "1024"},
                                         {"list_ids_max", "0"}}) {
    EXPECT_NE(Faults({{name, value}}).find("--" + std::string(name)), std::string::npos)
        << name << "=" << value;
  }
}

TEST_F(ServerOptionsTest, RefusesSeveralMachineIdsIfTheyAreAssignedByHand) {
  EXPECT_EQ(Good({}).place.machine_ids, 1u);
  EXPECT_EQ(Good({{"machine_ids", "4"}}).place.machine_ids, 4u);
  EXPECT_NE(Faults({{"machine_ids", "2"}, {"worker", "3"}})
                .find("--machine_ids must be 1 where a worker is named"),
            std::string::npos);
  EXPECT_NE(Faults({{"machine_ids", "2"}, {"registry", "static:3"}})
                .find("--machine_ids must be 1 with static:"),
            std::string::npos);
}

TEST_F(ServerOptionsTest, ReadsTokensOnlyFromAPrivateFile) {
  const std::string tokens = "secret=order,user\nother=order\n";
  const auto read = Good({{"tinyid_token_file", Write("tokens", tokens, 0600)}}).tinyid_tokens;
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->at("secret").size(), 2u);
  EXPECT_NE(Faults({{"tinyid_token_file", Write("odd", "# mine\n\nsecret\n", 0600)}})
                .find("line 3 is not <token>=<tag>,<tag>"),
            std::string::npos);
  EXPECT_NE(
      Faults({{"tinyid_token_file", Write("open", tokens, 0644)}}).find("--tinyid_token_file"),
      std::string::npos);
  // A file without tokens permits nothing; without a file no token is required.
  EXPECT_TRUE(Good({{"tinyid_token_file", Write("none", "", 0600)}}).tinyid_tokens.has_value());
  EXPECT_FALSE(Good({}).tinyid_tokens.has_value());
}

TEST_F(ServerOptionsTest, ReadsCredentialsOnlyFromAPrivateFile) {
  EXPECT_EQ(Good({{"registry_auth_file", Write("auth", "me:word\n", 0600)}}).place.credentials,
            "me:word");
  const std::string faults = Faults({{"registry_auth_file", Write("open", "me:word\n", 0640)}});
  EXPECT_NE(faults.find("--registry_auth_file"), std::string::npos) << faults;
  EXPECT_EQ(faults.find("word"), std::string::npos) << faults;
}

TEST_F(ServerOptionsTest, RequiresZooKeeperForDubbo) {
  EXPECT_FALSE(Good({}).dubbo);
  const ServerOptions read = Good({{"dubbo", "true"},
                                   {"registry", "zk://127.0.0.1:1/firn/x"},
                                   {"dubbo_make_id_order", "machine_first"}});
  EXPECT_EQ(read.dubbo, front::VestaOrder::kMachineFirst);
  EXPECT_NE(Faults({{"dubbo", "true"}}).find("--dubbo requires a registry in ZooKeeper"),
            std::string::npos);
  EXPECT_NE(Faults({{"dubbo_make_id_order", "random"}}).find("time_first, machine_first"),
            std::string::npos);
}

TEST_F(ServerOptionsTest, RequiresAnAddressThatClientsCanReach) {
  for (const char* any : {"0.0.0.0:7609", "[::]:7609", "[::ffff:0.0.0.0]:7609"}) {
    const Flags base = {{"registry", "zk://h:2181/firn/x"}};
    EXPECT_NE(Faults({*base.begin(), {"listen", any}}).find("--listen"), std::string::npos) << any;
    EXPECT_NE(Faults({*base.begin(), {"advertise", any}}).find("--advertise"), std::string::npos);
    EXPECT_EQ(Faults({*base.begin(), {"listen", any}, {"advertise", "10.0.0.7:7609"}}), "") << any;
    EXPECT_EQ(Faults({*base.begin(), {"listen", any}, {"advertise", "firn-1:7609"}}), "") << any;
  }
}

TEST_F(ServerOptionsTest, ReadsTheUnixSocketAndItsPermissions) {
  const std::string path = dir_ / "firn.sock";
  EXPECT_EQ(Good({}).listen.unix_path, "");
  EXPECT_EQ(Good({}).listen.unix_mode, 0660u);
  EXPECT_EQ(Good({{"listen_unix", path}}).listen.unix_path, path);
  EXPECT_EQ(Good({{"listen_unix_mode", "606"}}).listen.unix_mode, 0606u);
  for (const char* mode : {"", "rw", "0668", "01777", "66 "}) {
    EXPECT_NE(Faults({{"listen_unix_mode", mode}}).find("listen_unix_mode"), std::string::npos)
        << mode;
  }
  EXPECT_NE(Faults({{"listen_unix", dir_ / "missing/firn.sock"}}).find("does not exist"),
            std::string::npos);
  EXPECT_NE(Faults({{"listen_unix", dir_ / std::string(107, 'a')}}).find("at most 107 bytes"),
            std::string::npos);
}

TEST_F(ServerOptionsTest, ReportsAHostNameInListenAndNoOtherFault) {
  const std::string faults = Faults({{"listen", "localhost:7609"}});
  EXPECT_NE(faults.find("--listen"), std::string::npos) << faults;
  EXPECT_NE(faults.find("'localhost' is a name"), std::string::npos) << faults;
  EXPECT_EQ(faults.find("--application"), std::string::npos) << faults;
  EXPECT_NE(Faults({{"admin_listen", "localhost:7610"}}).find("--admin_listen"), std::string::npos);
}

TEST_F(ServerOptionsTest, NamesTheFlagsThatEncryptionRequires) {
  EXPECT_NE(Faults({{"tls_key", "k"}}).find("--tls_cert and --tls_key go together"),
            std::string::npos);
  const std::string admin = Faults({{"admin_tls_key", "k"}, {"admin_tls_client_ca", "ca"}});
  EXPECT_NE(admin.find("--admin_tls_cert and --admin_tls_key go together"), std::string::npos)
      << admin;
  EXPECT_NE(admin.find("--admin_tls_client_ca needs --admin_tls_cert"), std::string::npos) << admin;
  const std::string names = Faults({{"rights_file", dir_ / "names"}});
  EXPECT_NE(names.find("--rights_file needs --tls_client_ca"), std::string::npos) << names;
  EXPECT_NE(names.find(dir_ / "names"), std::string::npos) << names;
}

TEST_F(ServerOptionsTest, ReadsUsersAndRightsOfTheRedisProtocol) {
  const std::string users = Write("users", "alice:word\n", 0600);
  const std::string rights = Write("rights", "redis:alice order\n", 0644);
  const ServerOptions options = Good({{"redis_auth_file", users}, {"rights_file", rights}});
  EXPECT_TRUE(options.redis);
  EXPECT_EQ(options.redis_auth_file, users);
  EXPECT_EQ(options.rights_file, rights);
  const auto expect = [](const std::string& faults, const char* fault) {
    EXPECT_NE(faults.find(fault), std::string::npos) << faults;
    EXPECT_EQ(faults.find("word"), std::string::npos) << faults;
  };
  expect(Faults({{"rights_file", rights}}),
         "--rights_file needs --tls_client_ca or --redis_auth_file");
  expect(Faults({{"redis_auth_file", users}, {"redis", "false"}}),
         "--redis_auth_file needs --redis");
  expect(Faults({{"redis_auth_file", rights}}), "--redis_auth_file");
}

TEST_F(ServerOptionsTest, NamesEveryInvalidFileAtOnce) {
  const std::string faults = Faults({{"tls_cert", dir_ / "no.crt"},
                                     {"tls_key", dir_ / "no.key"},
                                     {"history_file", dir_ / "no/history"},
                                     {"key_dir", dir_ / "keys"},
                                     {"tinyid_token_file", dir_ / "tokens"},
                                     {"registry_auth_file", dir_ / "auth"},
                                     {"stores_file", dir_ / "stores"},
                                     {"default_strategy", "snowfake"}});
  for (const char* flag : {"--tls_cert", "--history_file", "--key_dir", "--tinyid_token_file",
                           "--registry_auth_file", "--stores_file", "--default_strategy"}) {
    EXPECT_NE(faults.find(flag), std::string::npos) << flag << ": " << faults;
  }
}

class CommandLineTest : public ServerOptionsTest {
 protected:
  Status Check(const std::string& text) {
    const std::string flag = "--flagfile=" + Write("flags", text, 0644);
    const char* const words[] = {"firn-server", flag.c_str()};
    const gflags::FlagSaver saver;
    retired_.clear();
    return ReadCommandLine(2, words, retired_);
  }

  RetiredFlags retired_;
};

TEST_F(CommandLineTest, AcceptsFlagsSwitchesAndComments) {
  EXPECT_EQ(Check("# a comment\n\n  --rack=3\n-worker=4\r\n--offline_start\n--nooffline_start\n"
                  "--registry=zk://a:1,b:2/firn/x"),
            Status());
}

TEST_F(CommandLineTest, NamesUnknownFlagsWithTheirPlace) {
  const std::pair<const char*, const char*> rows[] = {
      {"--registy=zk://h:1/firn/x", "--registy"},
      {"registry=zk://h:1/firn/x", "registry=zk"},
      {"--registry zk://h:1/firn/x", "--registry zk"},
      {"--registry", "no value"},
      {"--norack", "--norack"},
      {"firn-server", "firn-server"},
      {"--", "'--'"}};
  for (const auto& [line, word] : rows) {
    const Status refused = Check(std::string("--rack=3\n") + line + "\n");
    EXPECT_EQ(refused.code(), Code::kInvalid) << line;
    EXPECT_NE(refused.message().find("flags:2: "), std::string::npos) << refused;
    EXPECT_NE(refused.message().find(word), std::string::npos) << refused;
  }
}

TEST_F(CommandLineTest, NamesEveryFaultAtOnce) {
  const Status refused = Check("--registy=x\n--rack\n--claim_window_ms=abc\n");
  for (const char* fault : {"flags:1: '--registy'", "flags:2: '--rack' has no value",
                            "flags:3: --claim_window_ms is 'abc', which is no int32"}) {
    EXPECT_NE(refused.message().find(fault), std::string::npos) << refused;
  }
}

TEST_F(CommandLineTest, ReadsTheEnvironment) {
  ASSERT_EQ(setenv("FLAGS_rack", "much", 1), 0);
  ASSERT_EQ(setenv("FLAGS_fromenv", "fromenv", 1), 0);
  const std::pair<const char*, const char*> rows[] = {
      {"--tryfromenv=worker,rack", "FLAGS_rack: --rack is 'much'"},
      {"--fromenv=worker", "--fromenv: the environment has no FLAGS_worker"},
      {"--tryfromenv=registy", "'--registy' is not a flag"},
      {"--fromenv=fromenv", "'--fromenv' is not a flag"}};
  for (const auto& [line, fault] : rows) {
    EXPECT_NE(Check(line).message().find(fault), std::string::npos) << Check(line);
  }
  ASSERT_EQ(setenv("FLAGS_rack", "2", 1), 0);
  EXPECT_EQ(Check("--tryfromenv=worker,rack"), Status());
  for (const char* name : {"FLAGS_rack", "FLAGS_fromenv"}) unsetenv(name);
}

TEST_F(CommandLineTest, AcceptsAValueAsTheNextArgument) {
  const auto check = [this](std::vector<const char*> words) {
    words.insert(words.begin(), "firn-server");
    const gflags::FlagSaver saver;
    return ReadCommandLine(static_cast<int>(words.size()), words.data(), retired_);
  };
  EXPECT_EQ(check({"--rack", "3", "--offline_start", "--worker=4"}), Status());
  EXPECT_NE(check({"--offline_start", "false"}).message().find("'false'"), std::string::npos);
  EXPECT_NE(check({"--registy", "x"}).message().find("--registy"), std::string::npos);
  EXPECT_NE(check({"--rack"}).message().find("no value"), std::string::npos);
  EXPECT_EQ(check({"--frame_bytes_max", "9", "--rack", "3"}), Status()) << "a retired flag";
  EXPECT_FALSE(check({"--", "x"}).ok());
}

TEST_F(CommandLineTest, ReadsFlagFilesNamedInFlagFiles) {
  const std::string inner = Write("inner", "--rack=1\n--colour=blue\n", 0644);
  const Status refused = Check("--flagfile=" + inner + "\n");
  EXPECT_NE(refused.message().find("inner:2: "), std::string::npos) << refused;
  EXPECT_NE(Check("--flagfile=" + (dir_ / "flags")).message().find("include each other"),
            std::string::npos);
  EXPECT_NE(Check("--flagfile=/nowhere").message().find("/nowhere"), std::string::npos);
}

TEST_F(CommandLineTest, WarnsOnceOfARetiredFlagAndIgnoresIt) {
  EXPECT_EQ(Check("--rack=3\n--turn_us_max=much\n--turn_us_max=5\n--clock_alarm_ms\n"), Status());
  EXPECT_EQ(retired_["turn_us_max"],
            dir_ / "flags:2: --turn_us_max is retired and has no effect; remove it");
  ASSERT_EQ(setenv("FLAGS_runs_ids_max", "much", 1), 0);
  EXPECT_EQ(Check("--fromenv=runs_ids_max\n--tryfromenv=turn_us_max"), Status());
  EXPECT_TRUE(retired_.contains("runs_ids_max"));
  EXPECT_EQ(retired_.size(), 1u) << "turn_us_max is not set";
}

// A server that ignored it would give every client the right to every tag.
TEST_F(CommandLineTest, ReadsARenamedFlagUnderItsNewName) {
  EXPECT_FALSE(Check("--rights_file=x\n--tls_names_file=names\n").ok()) << "set one of them";
  EXPECT_NE(Check("--tls_names_file\n").message().find("no value"), std::string::npos);
  const gflags::FlagSaver saver;
  const char* const words[] = {"firn-server", "--tls_names_file=names", "--rights_file="};
  EXPECT_EQ(ReadCommandLine(3, words, retired_), Status());
  EXPECT_EQ(gflags::GetCommandLineFlagInfoOrDie("rights_file").current_value, "names");
}

TEST(FlagHelpTest, PutsEveryServerFlagIntoOneGroup) {
  std::multiset<std::string> grouped;
  for (const FlagGroup& group : FlagGroups()) {
    grouped.insert(group.flags.begin(), group.flags.end());
  }
  std::vector<gflags::CommandLineFlagInfo> all;
  gflags::GetAllFlags(&all);
  for (const auto& flag : all) {
    const bool ours =
        flag.filename.find("/server/") != std::string::npos || flag.filename.starts_with("server/");
    const size_t groups = grouped.count(flag.name);
    EXPECT_TRUE(ours ? groups == 1 : groups <= 1) << flag.name;
  }
}

TEST(FlagHelpTest, DescribesEachFlagInSentencesWithAUnit) {
  std::vector<gflags::CommandLineFlagInfo> all;
  gflags::GetAllFlags(&all);
  const std::pair<std::string_view, std::string_view> units[] = {{"_ms", "milliseconds"},
                                                                 {"_bytes_max", "bytes"}};
  for (const auto& flag : all) {
    if (flag.filename.find("server/flags/") == std::string::npos) continue;
    EXPECT_TRUE(std::isupper(flag.description.front())) << flag.name;
    EXPECT_TRUE(flag.description.ends_with('.')) << flag.name;
    for (const auto& [suffix, unit] : units) {
      if (!flag.name.ends_with(suffix) && !flag.name.ends_with(std::string(suffix) + "_max"))
        continue;
      EXPECT_NE(flag.description.find(unit), std::string::npos) << flag.name;
    }
  }
}

TEST(FlagHelpTest, ListsRegistryFirstAndOmitsLibraryFlags) {
  const std::string page = FlagHelp();
  const size_t registry = page.find("  --registry=..."), limits = page.find("\nLimits:");
  ASSERT_NE(registry, std::string::npos) << page;
  EXPECT_LT(registry, page.find("  --listen=...")) << page;
  EXPECT_LT(page.find("  --stores_file=..."), limits) << page;
  EXPECT_EQ(page.find("logtostderr"), std::string::npos) << page;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

}  // namespace
}  // namespace firn
