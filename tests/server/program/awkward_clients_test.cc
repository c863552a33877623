// A whole firn-server under honest clients with awkward manners, in every language that it speaks,
// plain and over TLS: they read slowly, pause, have small windows, come in bursts, send byte for
// byte, and shut their side behind their last call. Every answer belongs to its call, every id is
// the server's own, and none comes twice, to whichever of them.

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

constexpr Milliseconds kClockMin{3'600'000};  // garbage is centuries away
constexpr int kCalls = 200;
constexpr int kManyCalls = 1'000;         // eight megabytes of ids
constexpr int32_t kCountMaxOfHttp = 400;  // which is longer, and slower to read

class AwkwardClientsTest : public testing::Test {
 protected:
  void Start(int machine, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--registry=static:" + std::to_string(machine),
                               "--static_first_start", "--io_threads=2"});
    servers_.push_back(std::make_unique<RunningServer>(dir_ / "server" + std::to_string(machine),
                                                       std::move(flags)));
    ASSERT_TRUE(servers_.back()->BecomesReady()) << servers_.back()->log();
  }

  // One of each manner in each language.
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

  // Somebody who asks for more than a server keeps unsent, and reads nothing before the server has
  // stopped reading from him.
  void JoinWhoOutwaits(const RunningServer& server, const std::string& tls_ca) {
    clients_.push_back(std::make_unique<AwkwardClient>(
        AwkwardClient::Options{.ports = {server.port()},
                               .tls_ca = tls_ca,
                               .manner = {.name = "outwaits the server", .in_flight = kManyCalls},
                               .may_read = [&server] { return Paused(server) > 0; },
                               .calls = kManyCalls,
                               .conversations = 1}));
  }

  // How often it has stopped reading from somebody who does not read.
  static int64_t Paused(const RunningServer& server) {
    return server.Metric("firn_output_paused_total{door=\"public\"}");
  }

  // That a server of ours has issued it, by its machine id and its time.
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

TEST_F(AwkwardClientsTest, GetWholeAnswersInOrderAndNoIdTwice) {
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
