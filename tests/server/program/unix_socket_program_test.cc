// A real server on a Unix socket, and the C++ client.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "client/client.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/program/running_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

class UnixSocketProgramTest : public testing::Test {
 protected:
  RunningServer Start(std::vector<std::string> flags = {}) {
    flags.push_back("--listen_unix=" + path());
    return {dir_ / "state", std::move(flags)};
  }
  std::string path() const { return dir_ / "firn.sock"; }
  static ClientOptions Options(const std::string& servers) {
    return {
        .servers = servers, .deadline = Milliseconds(20'000), .attempt_limit = Milliseconds(5'000)};
  }
  std::string Get(const std::string& target) const {
    front::RawPeer peer(path());
    peer.Send("GET " + target + " HTTP/1.0\r\n\r\n");
    return peer.ReceiveAll();
  }

  TempDir dir_;
};

TEST_F(UnixSocketProgramTest, ServesClientsBeforeAndAfterAKillAndRemovesTheFileAtACleanEnd) {
  RunningServer server = Start();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_NE(server.log().find("Unix socket " + path()), std::string::npos) << server.log();
  Client client(Options("list://unix:" + path()));
  EXPECT_GT(client.GetId("default").value_or(0), 0) << client.GetId("default").status();
  server.Kill();
  EXPECT_TRUE(std::filesystem::exists(path()));
  server.StartAgain();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_GT(client.GetId("default").value_or(0), 0) << client.GetId("default").status();
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(kPatience), 0) << server.log();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path())));
}

TEST_F(UnixSocketProgramTest, FailsOverFromTheSocketToThePort) {
  RunningServer server = Start();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  ClientOptions both = Options("list://unix:" + path() + "," + server.address());
  Client client(both);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(client.GetId("default").ok());
  const auto servers = client.cluster().servers;
  ASSERT_EQ(servers.size(), 2u);
  for (const SeenServer& seen : servers) EXPECT_GT(seen.answered, 0u) << seen.known.address;
  std::filesystem::remove(path());
  Client late(both);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(late.GetId("default").ok());
}

TEST_F(UnixSocketProgramTest, ListsOnlyNetworkAddresses) {
  RunningServer server = Start();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  std::string list;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    list = Get("/v1/servers");
    return list.find(server.address()) != std::string::npos;
  })) << list;
  EXPECT_EQ(list.find("unix"), std::string::npos) << list;
  // A client that discovers the servers through the socket uses their network addresses.
  Client client(Options("firn://unix:" + path()));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    const Result<int64_t> id = client.GetId("default");
    const auto servers = client.cluster().servers;
    return id.ok() && servers.size() == 1 && servers[0].known.address == server.address();
  }));
}

TEST_F(UnixSocketProgramTest, GrantsNoRightsOfACertificate) {
  TlsAuthority authority("firn");
  authority.Sign("server", "IP:127.0.0.1");
  authority.Sign("shop", "DNS:shop.example");
  const std::string rights = dir_ / "rights";
  std::ofstream(rights) << "shop.example *\n";
  RunningServer server = Start(
      {"--tls_cert=" + authority.File("server.crt"), "--tls_key=" + authority.File("server.key"),
       "--tls_client_ca=" + authority.File("ca.crt"), "--rights_file=" + rights});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  ClientOptions options = Options("list://" + server.address());
  options.tls = TlsOptions{.ca = authority.File("ca.crt"),
                           .cert = authority.File("shop.crt"),
                           .key = authority.File("shop.key")};
  EXPECT_GT(Client(options).GetId("default").value_or(0), 0);
  options.servers = "list://unix:" + path();
  const Result<int64_t> id = Client(options).GetId("default");
  EXPECT_NE(id.status().message().find("the client shows no certificate with a name"),
            std::string::npos)
      << id.status();
  EXPECT_NE(Get("/v1/ids/default").find("REJECTED"), std::string::npos);
}

}  // namespace
}  // namespace firn
