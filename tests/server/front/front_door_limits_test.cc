#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "tests/server/front/front_door_rig.h"
#include "thrift/gen/Peer.h"

// Limits on the resources of one peer, and of all peers together.

namespace firn::front {
namespace {

using std::string_literals::operator""s;

// Waits until the front's coarse clock has advanced by this time.
void LetPass(Milliseconds time) {
  const BootMs begin = SystemClock().Boot();
  ASSERT_TRUE(Eventually(10 * time, [&] { return SystemClock().Boot() - begin > time; }));
}

TEST_F(FrontDoorTest, ClosesConnectionsBeyondTheLimitAndServesTheOthers) {
  issuing_.limits.connections_max = 2;
  Open();
  std::optional<Peer> first(door_->port());
  Peer second(door_->port());
  EXPECT_EQ(IdFor(*first), Number(1));
  EXPECT_EQ(IdFor(second), Number(2));
  Peer third(door_->port());
  EXPECT_TRUE(third.SeesClose());
  EXPECT_TRUE(Closes(CloseCause::kTooMany));
  first.reset();
  EXPECT_TRUE(Closes(CloseCause::kPeer));
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, ClosesTheOldestIncompleteRequestAtTheConnectionLimit) {
  issuing_.limits.connections_max = 3;
  Open();
  Peer good(door_->port());
  EXPECT_EQ(IdFor(good), Number(1));
  Peer older(door_->port());
  ASSERT_TRUE(older.Send("\0\0\0"s));
  LetPass(Milliseconds(300));
  Peer newer(door_->port());
  ASSERT_TRUE(newer.Send("\0\0\0"s));
  LetPass(Milliseconds(300));
  ExpectGoodClientIsServed();
  EXPECT_TRUE(older.SeesClose());
  EXPECT_TRUE(Closes(CloseCause::kHalfRequest));
  EXPECT_GT(IdFor(good), 0) << "a connection without an incomplete request stays open";
}

TEST_F(FrontDoorTest, ClosesTheOldestFirstWhenSeveralArriveAtOnce) {
  issuing_.limits.connections_max = 5;
  Open();
  Peer good(door_->port());
  EXPECT_EQ(IdFor(good), Number(1));
  std::deque<std::optional<Peer>> incomplete;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(incomplete.emplace_back(std::in_place, door_->port())->Send("\0\0\0"s));
    LetPass(Milliseconds(200));
  }
  Peer first(door_->port());
  EXPECT_GT(IdFor(first), 0);
  EXPECT_TRUE(incomplete[0]->SeesClose());
  incomplete[1].reset();  // it closes by itself: the next in line is [2]
  ASSERT_TRUE(Eventually(kPatience, [&] { return door_->totals().open() == 4; }));
  Peer second(door_->port()), third(door_->port());
  EXPECT_GT(IdFor(second), 0);
  EXPECT_GT(IdFor(third), 0);
  EXPECT_TRUE(incomplete[2]->SeesClose());
  Peer fourth(door_->port());
  EXPECT_GT(IdFor(fourth), 0);
  EXPECT_TRUE(incomplete[3]->SeesClose());
  EXPECT_GT(IdFor(good), 0);
}

TEST_F(FrontDoorTest, ClosesASilentPeerWhenItIsFull) {
  issuing_.limits.connections_max = 3;
  Open();
  Peer good(door_->port());
  EXPECT_EQ(IdFor(good), Number(1));
  Peer silent(door_->port()), another(door_->port());
  ASSERT_TRUE(Eventually(kPatience, [&] { return door_->totals().open() == 3; }));
  LetPass(Milliseconds(300));
  ExpectGoodClientIsServed();
  EXPECT_TRUE(silent.SeesClose());
  EXPECT_TRUE(Closes(CloseCause::kIdle));
  EXPECT_GT(IdFor(good), 0) << "a peer that has been served keeps its place";
}

TEST_F(FrontDoorTest, LimitsConnectionsPerAddress) {
  issuing_.limits.connections_per_peer_max = 2;
  Open();
  std::optional<Peer> first(door_->port());
  Peer second(door_->port());
  EXPECT_EQ(IdFor(*first), Number(1));
  EXPECT_EQ(IdFor(second), Number(2));
  Peer third(door_->port());
  EXPECT_TRUE(third.SeesClose());
  EXPECT_TRUE(Closes(CloseCause::kTooManyOfPeer));
  Peer neighbour(door_->port(), "127.0.0.2");
  EXPECT_EQ(IdFor(neighbour), Number(3));
  first.reset();
  EXPECT_TRUE(Closes(CloseCause::kPeer));
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, ClosesTheLongestIdleConnectionOfThePeerThatHasMost) {
  issuing_.limits.connections_max = 5;
  Open();
  std::deque<Peer> most;
  for (int i = 0; i < 3; ++i) {
    EXPECT_GT(IdFor(most.emplace_back(door_->port(), "127.0.0.2")), 0);
    LetPass(Milliseconds(200));
  }
  Peer other(door_->port(), "127.0.0.3"), another(door_->port(), "127.0.0.3");
  EXPECT_GT(IdFor(other), 0);
  EXPECT_GT(IdFor(another), 0);
  EXPECT_GT(IdFor(most[0]), 0) << "the second of them is idle for longer";
  LetPass(Milliseconds(200));
  ExpectGoodClientIsServed();
  EXPECT_TRUE(most[1].SeesClose());
  EXPECT_TRUE(Closes(CloseCause::kTooManyOfPeer));
  EXPECT_TRUE(Closes(CloseCause::kPeer));
  LetPass(Milliseconds(200));
  Peer third(door_->port());
  EXPECT_GT(IdFor(third), 0);
  Peer refused(door_->port(), "127.0.0.2");
  EXPECT_TRUE(refused.SeesClose()) << "its peer has as many as the others";
  EXPECT_TRUE(Closes(CloseCause::kTooMany));
  for (Peer* peer : {&most[0], &most[2], &other, &another, &third}) EXPECT_GT(IdFor(*peer), 0);
}

std::string TakeOfServer(const std::string& secret) {
  const auto out = std::make_shared<apache::thrift::transport::TMemoryBuffer>();
  wire::OwnedTake take;
  take.secret = secret;
  wire::PeerClient(std::make_shared<apache::thrift::protocol::TBinaryProtocol>(out))
      .send_takeOwned(take);
  return ThriftCalls::WithLength(out->getBufferAsString());
}

Result<Range> TakeWithSecret(const PeerTake& take) {
  if (take.secret != "secret") return NotFound("it is not the owner");
  return Range{};
}

bool IsAnswered(Peer& server, const std::string& secret = "secret") {
  return server.Send(TakeOfServer(secret)) && !server.ReceiveFrame().empty();
}

TEST_F(FrontDoorTest, ReservesPlacesForTakesOfOtherServers) {
  issuing_.limits.connections_max = 4;
  issuing_.backend.take_owned = TakeWithSecret;
  Open();
  door_->Reserve(1);
  std::deque<Peer> clients;
  for (int i = 0; i < 3; ++i) EXPECT_GT(IdFor(clients.emplace_back(door_->port())), 0);
  for (uint64_t closed = 1; closed <= 2; ++closed) {
    Peer client(door_->port());
    if (closed == 1) {
      EXPECT_GT(IdFor(client), 0);
    } else {
      EXPECT_TRUE(IsAnswered(client, "another"));
    }
    EXPECT_TRUE(client.SeesClose()) << "it is in the place of a server";
    EXPECT_TRUE(Closes(CloseCause::kTooMany, closed));
  }
  Peer server(door_->port());
  EXPECT_TRUE(IsAnswered(server));
  Peer late(door_->port());
  EXPECT_TRUE(late.SeesClose());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(IsAnswered(server));
  for (Peer& client : clients) EXPECT_GT(IdFor(client), 0);
}

TEST_F(FrontDoorTest, AClientInAPlaceOfAServerIsAnsweredWithoutWaiting) {
  issuing_.limits.connections_max = 2;
  issuing_.limits.issue_wait_ms = 60'000;
  issuing_.slow->waits = true;
  Open();
  door_->Reserve(1);
  const Peer first(door_->port());
  Peer client(door_->port());
  EXPECT_THROW(IdFor(client), wire::Refusal);
  EXPECT_TRUE(client.SeesClose());
}

TEST_F(FrontDoorTest, AClientThatDoesNotCloseKeepsNoPlaceOfAServer) {
  issuing_.limits.connections_max = 2;
  issuing_.limits.half_request_ms = 600'000;
  issuing_.backend.take_owned = TakeWithSecret;
  Open();
  door_->Reserve(1);
  Peer first(door_->port()), reads_nothing(door_->port(), "127.0.0.2");
  EXPECT_GT(IdFor(first), 0);
  reads_nothing.ReadSlowly();
  ThriftCalls calls;
  const auto large = [](wire::IdServiceClient& client) { client.send_getIds("order", 100'000); };
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(reads_nothing.Send(calls.Frame(large)));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    Peer server(door_->port(), "127.0.0.3");
    return server.RawPeer::Send(TakeOfServer("secret")) && server.Receive(4).size() == 4;
  }));
  EXPECT_GT(IdFor(first), 0);
}

TEST_F(FrontDoorTest, AServerGetsAPlaceAlthoughItsAddressHasTooManyConnections) {
  issuing_.limits.connections_per_peer_max = 1;
  issuing_.backend.take_owned = TakeWithSecret;
  Open();
  door_->Reserve(1);
  Peer client(door_->port()), server(door_->port());
  EXPECT_GT(IdFor(client), 0);
  EXPECT_TRUE(IsAnswered(server));
  EXPECT_TRUE(IsAnswered(server));
  Peer late(door_->port());
  EXPECT_TRUE(late.SeesClose());
}

TEST_F(FrontDoorTest, AServerLeavesItsPlaceToAClientIfPlacesAreReserved) {
  issuing_.limits.connections_max = 4;
  issuing_.backend.take_owned = TakeWithSecret;
  Open();
  door_->Reserve(1);
  Peer server(door_->port());
  EXPECT_TRUE(IsAnswered(server));
  std::deque<Peer> clients;
  for (int i = 0; i < 3; ++i) EXPECT_GT(IdFor(clients.emplace_back(door_->port())), 0);
  Peer late(door_->port());
  EXPECT_TRUE(late.SeesClose());
  for (Peer& client : clients) EXPECT_GT(IdFor(client), 0);
}

TEST_F(FrontDoorTest, ClosesNoConnectionOfAServerForAClient) {
  issuing_.limits.connections_max = 3;
  issuing_.backend.take_owned = TakeWithSecret;
  Open();
  Peer server(door_->port(), "127.0.0.2");
  EXPECT_TRUE(IsAnswered(server));
  LetPass(Milliseconds(200));
  Peer longest(door_->port(), "127.0.0.2"), other(door_->port(), "127.0.0.2");
  EXPECT_GT(IdFor(longest), 0);
  LetPass(Milliseconds(200));
  EXPECT_GT(IdFor(other), 0);
  LetPass(Milliseconds(200));
  ExpectGoodClientIsServed();
  EXPECT_TRUE(longest.SeesClose());
  EXPECT_TRUE(IsAnswered(server));
}

TEST_F(FrontDoorTest, LimitsUnsentOutputOfAllConnections) {
  issuing_.limits.output_total_bytes_max = 3 * 1024 * 1024;
  issuing_.limits.half_request_ms = 600'000;
  Open();
  std::vector<std::unique_ptr<Peer>> peers;
  ThriftCalls calls;
  for (int i = 0; i < 6; ++i) {
    auto& peer = peers.emplace_back(std::make_unique<Peer>(door_->port()));
    peer->ReadSlowly();
    for (int k = 0; k < 10; ++k) {
      ASSERT_TRUE(peer->Send(
          calls.Frame([](wire::IdServiceClient& c) { c.send_getIds("slow", 100'000); })));
    }
  }
  EXPECT_TRUE(
      Eventually(kPatience, [&] { return door_->totals().closed_by(CloseCause::kUnread) >= 2; }));
  ExpectGoodClientIsServed();
}

// A call whose frame is almost as large as permitted.
std::string LargestCall() {
  std::string body = "\x80\1\0\1\0\0\0\5getId\0\0\0\1\x0b\0\1\0\0\0\4slow"s;
  for (int i = 0; i < 63; ++i) body += "\x0b\0\x63\0\0\4\0"s + std::string(1024, 'x');
  return ThriftCalls::WithLength(body + "\0"s);
}

TEST_F(FrontDoorTest, AnIdleConnectionKeepsNoBuffers) {
  constexpr size_t kPeers = 60;
  Open({.io_threads = 2});
  std::vector<std::unique_ptr<Peer>> peers;
  ThriftCalls calls;
  const std::string large = LargestCall(), small = calls.GetId("slow");
  for (size_t i = 0; i < kPeers; ++i) {
    Peer& peer = *peers.emplace_back(std::make_unique<Peer>(door_->port()));
    ASSERT_TRUE(peer.Send(i % 2 == 0 ? large : small));
    EXPECT_GT(calls.Answer(peer.ReceiveFrame()).recv_getId(), 0);
  }
  const auto memory = [&] { return door_->totals().buffer_bytes; };
  LetPass(Milliseconds(500));  // until the memory of all is counted
  EXPECT_TRUE(Eventually(kPatience, [&] { return memory() == 0; })) << memory();
  for (const std::string& again : {small, large, small}) {
    for (const auto& peer : peers) {
      ASSERT_TRUE(peer->Send(again)) << "the connection still serves requests";
      EXPECT_GT(calls.Answer(peer->ReceiveFrame()).recv_getId(), 0);
    }
  }
  peers.clear();
  EXPECT_TRUE(Eventually(kPatience, [&] { return memory() == 0; }));
}

TEST_F(FrontDoorTest, LimitsMemoryOfAllIncompleteRequests) {
  constexpr size_t kPeers = 40;
  issuing_.limits.output_total_bytes_max = 1024 * 1024;
  issuing_.limits.half_request_ms = 600'000;
  Open();
  std::vector<std::unique_ptr<Peer>> peers;
  const std::string large = LargestCall();
  for (size_t i = 0; i < kPeers; ++i) {
    Peer& peer = *peers.emplace_back(std::make_unique<Peer>(door_->port()));
    ASSERT_TRUE(peer.Send(large.substr(0, large.size() - 1)));
  }
  EXPECT_TRUE(Eventually(kPatience, [&] {
    const Totals totals = door_->totals();
    return totals.closed_by(CloseCause::kHalfRequest) >= kPeers / 2 &&
           totals.buffer_bytes <= issuing_.limits.output_total_bytes_max;
  }));
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, ClosesIdleConnectionsAndIncompleteRequests) {
  issuing_.limits.idle_ms = 300;
  issuing_.limits.half_request_ms = 200;
  Open();
  Peer idle(door_->port()), half(door_->port());
  ASSERT_TRUE(half.Send("\0\0\0"s));
  EXPECT_TRUE(half.SeesClose());
  EXPECT_TRUE(idle.SeesClose());
  EXPECT_TRUE(Closes(CloseCause::kHalfRequest));
  EXPECT_TRUE(Closes(CloseCause::kIdle));
}

TEST_F(FrontDoorTest, StopsReadingFromAPeerThatNeverReads) {
  // Longer than making the answers takes; otherwise the peer is closed before enough answers wait.
  issuing_.limits.half_request_ms = 2'000;
  Open();
  Peer peer(door_->port());
  peer.ReadSlowly();
  ThriftCalls calls;
  std::string many;
  for (int i = 0; i < 20; ++i) {
    many += calls.Frame([](wire::IdServiceClient& c) { c.send_getIds("slow", 100'000); });
  }
  ASSERT_TRUE(peer.Send(many));
  EXPECT_TRUE(Closes(CloseCause::kUnread));
  // 16 MB were requested; about 1 MB waited, plus the socket's own buffer.
  EXPECT_GT(door_->totals().output_paused, 0u);
  EXPECT_LT(issuing_.slow->next, 1'500'000);
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, RecoversAfterItRanOutOfDescriptors) {
  issuing_.limits.spare_descriptors = 0;
  Open();
  ExpectGoodClientIsServed();
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  // Peers and server share a process: leave only as many descriptors as the peers need.
  const int lowest_free = dup(0);
  close(lowest_free);
  constexpr int kPeers = 6;
  std::vector<std::unique_ptr<Peer>> peers;
  const rlimit low{static_cast<rlim_t>(lowest_free + kPeers + 1), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (int i = 0; i < kPeers; ++i) peers.push_back(std::make_unique<Peer>(door_->port()));
  EXPECT_TRUE(Eventually(kPatience, [&] { return door_->totals().accept_failed > 0; }));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  for (const auto& peer : peers) {
    if (peer->connected()) {
      EXPECT_GT(IdFor(*peer), 0) << "a waiting connection is served";
    }
  }
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, ServesOthersDespiteThousandsOfIncompleteRequests) {
  constexpr size_t kPeers = 3000;
  Open({.io_threads = 2});
  std::vector<std::unique_ptr<Peer>> peers;
  const std::string call = ThriftCalls().GetId("slow");
  for (size_t i = 0; i < kPeers; ++i) {
    peers.push_back(std::make_unique<Peer>(door_->port()));
    ASSERT_TRUE(peers.back()->Send(call.substr(0, 1 + i % (call.size() - 1))));
  }
  ExpectGoodClientIsServed();
  EXPECT_TRUE(Eventually(kPatience, [&] { return door_->totals().open() >= kPeers; }));
  peers.clear();
  EXPECT_TRUE(Eventually(kPatience, [&] { return door_->totals().open() == 0; }));
  ExpectGoodClientIsServed();
}

}  // namespace
}  // namespace firn::front
