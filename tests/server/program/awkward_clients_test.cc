// A whole firn-server under honest but awkward clients, over every protocol, plain and over TLS:
// they read slowly, pause, have small windows, come in bursts, send byte by byte, and shut down
// their side after the last call. Every answer must belong to its call, every id must be the
// server's own, and none may be issued twice.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/id/layout.h"
#include "common/time/clock.h"
#include "tests/server/program/running_server.h"
#include "tests/support/fleet/awkward_client.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

constexpr Milliseconds kClockMin{3'600'000};  // a random number is centuries away
constexpr int kCalls = 200;
constexpr int kManyCalls = 1'000;         // 8 MB of ids
constexpr int32_t kCountMaxOfHttp = 400;  // HTTP answers are longer and slower to read

class AwkwardClientsTest : public testing::Test {
 protected:
  void Start(int machine, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--registry=static:" + std::to_string(machine),
                               "--static_first_start", "--io_threads=2"});
    servers_.push_back(std::make_unique<RunningServer>(dir_ / "server" + std::to_string(machine),
                                                       std::move(flags)));
    ASSERT_TRUE(servers_.back()->BecomesReady()) << servers_.back()->log();
  }

  // Creates one client of each manner for each protocol.
  void Join(const RunningServer& server, const std::string& tls_ca) {
    for (const TongueName tongue :
         {TongueName::kThriftBinary, TongueName::kThriftCompact, TongueName::kHttp}) {
      for (Manner manner : AwkwardManners()) {
        if (tongue == TongueName::kHttp) manner.count = std::min(manner.count, kCountMaxOfHttp);
        clients_.push_back(
            std::make_unique<AwkwardClient>(AwkwardClient::Options{.ports = {server.port()},
                                                                   .tls_ca = tls_ca,
                                                                   .tongue = tongue,
                                                                   .manner = manner,
                                                                   .calls = kCalls,
                                                                   .conversations = 1}));
      }
    }
  }

  void AddIds(std::vector<int64_t>& ids) {
    for (const auto& client : clients_) {
      client->Join();
      for (const std::string& fault : client->faults()) ADD_FAILURE() << fault;
      EXPECT_EQ(client->lost(), 0) << client->name();
      EXPECT_GT(client->answered(), kCalls / 2) << client->name();
      ids.insert(ids.end(), client->ids().begin(), client->ids().end());
    }
    clients_.clear();
  }

  // A client that requests more than a server keeps unsent, and reads nothing until the server has
  // stopped reading from it.
  void JoinWhoOutwaits(const RunningServer& server, const std::string& tls_ca) {
    clients_.push_back(std::make_unique<AwkwardClient>(
        AwkwardClient::Options{.ports = {server.port()},
                               .tls_ca = tls_ca,
                               .manner = {.name = "outwaits the server", .in_flight = kManyCalls},
                               .may_read = [&server] { return Paused(server) > 0; },
                               .calls = kManyCalls,
                               .conversations = 1}));
  }

  // How often the server has stopped reading from a client that does not read.
  static int64_t Paused(const RunningServer& server) {
    return server.Metric("firn_output_paused_total{door=\"public\"}");
  }

  // Whether one of our servers has issued the id, judged by its machine id and its time.
  static bool IsOurs(int64_t id, WallMs now) {
    const Layout layout = Layout::Firn();
    const Result<IdFields> fields = layout.Unpack(id);
    if (!fields.ok()) return false;
    const WallMs at = layout.StartOf(fields->tick);
    const bool machine = fields->machine == MachineId(1) || fields->machine == MachineId(2);
    return machine && at > now - kClockMin && at < now + kClockMin;
  }

  void EndServers() {
    for (const auto& server : servers_) {
      server->process().Signal(SIGTERM);
      EXPECT_EQ(server->process().Wait(kPatience), 0) << server->log();
    }
  }

  TempDir dir_;
  std::vector<std::unique_ptr<RunningServer>> servers_;
  std::vector<std::unique_ptr<AwkwardClient>> clients_;
};

TEST_F(AwkwardClientsTest, GetWholeAnswersInOrder) {
  TlsAuthority authority("ours");
  authority.Sign("server");
  ASSERT_NO_FATAL_FAILURE(Start(1, {}));
  ASSERT_NO_FATAL_FAILURE(Start(2, {"--tls_cert=" + authority.File("server.crt"),
                                    "--tls_key=" + authority.File("server.key")}));
  std::vector<int64_t> ids;
  JoinWhoOutwaits(*servers_[0], "");
  JoinWhoOutwaits(*servers_[1], authority.File("ca.crt"));
  AddIds(ids);
  Join(*servers_[0], "");
  Join(*servers_[1], authority.File("ca.crt"));
  AddIds(ids);
  std::sort(ids.begin(), ids.end());
  int64_t twice = 0, foreign = 0;
  const WallMs now = SystemClock().Wall();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0 && ids[i] == ids[i - 1]) ++twice;
    if (!IsOurs(ids[i], now)) ++foreign;
  }
  EXPECT_EQ(twice, 0) << "of " << ids.size();
  EXPECT_EQ(foreign, 0) << "of " << ids.size();
  EndServers();
}

}  // namespace
}  // namespace firn
