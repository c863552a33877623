// Tests ZooKeeper behind stunnel on both ends, with exactly the configuration in
// registry/zk/README.md.

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tests/drill/drill.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

// Returns the configuration blocks of the page, in order.
std::vector<std::string> ConfigurationsOfPage() {
  std::ifstream file(std::string(FIRN_SOURCE_DIR) + "/registry/zk/README.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  std::vector<std::string> blocks;
  constexpr std::string_view kBegin = "```ini\n", kEnd = "```";
  for (size_t at = 0; (at = page.find(kBegin, at)) != std::string::npos;) {
    at += kBegin.size();
    const size_t end = page.find(kEnd, at);
    blocks.push_back(page.substr(at, end - at));
    at = end;
  }
  return blocks;
}

class LockedEnsembleDrill : public Drill {
 protected:
  static constexpr int kMembers = 3;

  void SetUp() override {
    const std::vector<std::string> blocks = ConfigurationsOfPage();
    ASSERT_EQ(blocks.size(), 2u) << "the page must show one for ZooKeeper, and one for Firn";
    before_zookeeper_ = blocks[0];
    before_firn_ = blocks[1];
    StartEnsemble(kMembers);
    for (TlsAuthority* authority : {&ours_, &theirs_}) {
      authority->Sign("firn");
      for (int i = 1; i <= kMembers; ++i) {
        authority->Sign("zk" + std::to_string(i), "DNS:zk" + std::to_string(i) + ".example");
      }
    }
    for (int i = 0; i < kMembers; ++i) {
      tls_ports_.push_back(FreePort());
      doors_.push_back(FreePort());
    }
    for (int i = 0; i < kMembers; ++i) StartBeforeMember(i);
    StartBeforeFirn("firn", ours_, doors_);
    ASSERT_TRUE(Eventually(kPatience, [&] { return Audit(doors_).exit_code == 0; }))
        << Audit(doors_).err << Log("firn") << Log("zk1");
  }

  // Starts stunnel with the configuration, adapted to this machine's addresses and files.
  void StartStunnel(const std::string& name, std::string text,
                    const std::map<std::string, std::string>& places) {
    for (const auto& [of_page, here] : places) {
      ASSERT_NE(text.find(of_page), std::string::npos) << "the page does not name " << of_page;
      text = std::regex_replace(text, std::regex(of_page), here);
    }
    std::ofstream(folder(name + ".conf")) << "foreground = yes\npid =\n" << text;
    stunnels_.insert_or_assign(name, Process({"stunnel4", folder(name + ".conf")},
                                             {.output_file = folder(name + ".log")}));
  }
  void StartBeforeMember(int member) {
    const std::string name = "zk" + std::to_string(member + 1);
    StartStunnel(name, before_zookeeper_,
                 {{"/etc/firn/tls/zk1", ours_.File(name)},
                  {"/etc/firn/tls/ca.crt", ours_.File("ca.crt")},
                  {"accept = 2281", "accept = 127.0.0.1:" + std::to_string(tls_ports_[At(member)])},
                  {"127.0.0.1:2181", "127.0.0.1:" + std::to_string(ensemble().port(member))}});
  }
  // Starts stunnel with an endpoint for each member, and certificates of `authority`.
  void StartBeforeFirn(const std::string& name, const TlsAuthority& authority,
                       const std::vector<int>& doors) {
    std::map<std::string, std::string> places{{"/etc/firn/tls/firn", authority.File("firn")},
                                              {"/etc/firn/tls/ca.crt", ours_.File("ca.crt")}};
    for (int i = 0; i < kMembers; ++i) {
      const std::string number = std::to_string(i + 1);
      places["127.0.0.1:1218" + number] = "127.0.0.1:" + std::to_string(doors[At(i)]);
      places["zk" + number + ".example:2281"] = "127.0.0.1:" + std::to_string(tls_ports_[At(i)]);
    }
    StartStunnel(name, before_firn_, places);
  }
  void KillStunnel(const std::string& name) { stunnels_.erase(name); }

  static std::string Through(const std::vector<int>& doors) {
    std::string hosts;
    for (const int door : doors) {
      hosts += (hosts.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(door));
    }
    return "zk://" + hosts + kClusterPath;
  }
  static Finished Audit(const std::vector<int>& doors) {
    return RunFirn({"audit", "--timeout_ms=5000", "--registry=" + Through(doors)});
  }
  std::string Log(const std::string& name) const {
    std::ifstream file(folder(name + ".log"));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // A renewal writes to the registry, so the holder is connected to a member.
  testing::AssertionResult Renews(Claimant& holder) {
    const int64_t version = VersionOf(*holder.machine());
    return Waits(holder, "renewed", [&] { return VersionOf(*holder.machine()) > version + 1; });
  }

  static size_t At(int member) { return static_cast<size_t>(member); }

  TlsAuthority ours_{"ours"}, theirs_{"theirs"};
  std::string before_zookeeper_, before_firn_;
  std::vector<int> tls_ports_, doors_;  // ports of each member's stunnel, and on Firn's host
  std::map<std::string, Process> stunnels_;
};

TEST_F(LockedEnsembleDrill, SurvivesTheEndOfStunnelsAndOfTheLeader) {
  Claimant& holder = Launch("a", {.registry = Through(doors_), .window = Milliseconds(20'000)});
  Claimant& other = Launch("b", {.registry = Through(doors_), .window = Milliseconds(20'000)});
  ASSERT_TRUE(Serves(holder));
  ASSERT_TRUE(Serves(other));
  const auto machine = holder.machine();
  const BootMs began = TestNow();

  // Kills one after the other, so that the ones in use are included.
  for (int i = 0; i < kMembers; ++i) {
    KillStunnel("zk" + std::to_string(i + 1));
    ASSERT_TRUE(Renews(holder)) << "without the stunnel of member " << i;
    ASSERT_TRUE(Renews(other)) << "without the stunnel of member " << i;
    StartBeforeMember(i);
  }

  const auto leader = ensemble().Leader();
  ASSERT_TRUE(leader.has_value());
  ensemble().Kill(*leader);  // its stunnel still accepts connections, which fail
  ASSERT_TRUE(Waits(holder, "saw another leader", [&] {
    const auto now = ensemble().Leader();
    return now.has_value() && *now != *leader;
  }));
  ASSERT_TRUE(Renews(holder));
  ASSERT_TRUE(Renews(other));
  ASSERT_TRUE(IssuesMore(holder));
  ASSERT_TRUE(IssuesMore(other));

  EXPECT_FALSE(holder.RefusedSince(began)) << holder.Log();
  EXPECT_EQ(holder.machine(), machine);
  EXPECT_NE(other.machine(), machine);
  Figure("longest stall since", holder.LongestStallSince(began));
}

TEST_F(LockedEnsembleDrill, IssuesWithoutItsStunnelAndReconnectsWithIt) {
  Claimant& holder = Launch("a", {.registry = Through(doors_)});
  ASSERT_TRUE(Serves(holder));
  const auto machine = holder.machine();
  KillStunnel("firn");
  ASSERT_TRUE(Waits(holder, "was cut off", [&] { return !holder.status().connected; }));
  ASSERT_TRUE(IssuesMore(holder));
  StartBeforeFirn("firn", ours_, doors_);
  ASSERT_TRUE(Waits(holder, "was connected", [&] { return holder.status().connected; }));
  ASSERT_TRUE(IssuesMore(holder));
  EXPECT_EQ(holder.machine(), machine);
}

TEST_F(LockedEnsembleDrill, RefusesClientsWithoutACertificateOfItsAuthority) {
  std::vector<int> doors;
  for (int i = 0; i < kMembers; ++i) doors.push_back(FreePort());
  StartBeforeFirn("stranger", theirs_, doors);
  // The foreign client's stunnel runs and has tried.
  ASSERT_TRUE(Eventually(kPatience, [&] {
    Audit(doors);
    return Log("zk1").find("certificate verify failed") != std::string::npos;
  })) << Log("stranger");
  EXPECT_NE(Audit(doors).exit_code, 0);
  EXPECT_EQ(Audit(doors_).exit_code, 0);
  Claimant& holder = Launch("a", {.registry = Through(doors_)});
  ASSERT_TRUE(Serves(holder));
  ASSERT_TRUE(IssuesMore(holder));
}

}  // namespace
}  // namespace firn
