// Incomplete handshakes: their cost, and their effect on other connections.

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "server/front/net/front_door.h"
#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/support/process.h"
#include "tests/support/tls_authority.h"

namespace firn::front {
namespace {

using std::string_literals::operator""s;

class TlsHelloTest : public testing::Test {
 protected:
  void Open() {
    ours_.Sign("server");
    issuing_.limits.half_request_ms = 600'000;
    FrontDoorOptions options;
    options.limits = issuing_.limits;
    options.tls = TlsFiles{ours_.File("server.crt"), ours_.File("server.key")};
    door_.emplace(options, SystemClock(), [this] {
      ProtocolSet set;
      set.thrift_binary =
          MakeThriftProtocol(ThriftCoding::kBinary, issuing_.backend, issuing_.counters);
      return set;
    });
    ASSERT_TRUE(door_->Start().ok());
  }
  void ExpectGoodClientIsServed() {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    RawPeer peer(door_->port(), "127.0.0.3", context.get());
    EXPECT_TRUE(peer.Send(ThriftCalls().GetId("slow")));
    EXPECT_EQ(peer.Receive(4).size(), 4u);
  }
  bool IsAnswered(RawPeer& peer) { return peer.Receive(6).substr(5) == "\x02"; }
  uint64_t Memory() { return door_->totals().buffer_bytes; }

  TlsAuthority ours_{"ours"};
  Issuing issuing_;
  std::optional<FrontDoor> door_;
};

// A ClientHello without a key, which the server answers with a HelloRetryRequest. `early`: it
// announces early data.
std::string ClientHelloWithoutKey(bool early = false) {
  std::string hello = ClientHello();
  const auto number = [&](size_t at) {
    return static_cast<size_t>(static_cast<uint8_t>(hello[at]) << 8 |
                               static_cast<uint8_t>(hello[at + 1]));
  };
  const auto set = [&](size_t at, size_t value) {
    hello[at] = static_cast<char>(value >> 8);
    hello[at + 1] = static_cast<char>(value);
  };
  const size_t sessions = 9 + 2 + 32, ciphers = sessions + 1 + 32,
               methods = ciphers + 2 + number(ciphers);
  const size_t extensions = methods + 2;
  size_t at = extensions + 2;
  while (number(at) != TLSEXT_TYPE_key_share) at += 4 + number(at + 2);
  const size_t key = number(at + 4);
  hello.erase(at + 6, key);
  set(at + 4, 0);
  const std::string more = early ? "\0\x2a\0\0"s : "";
  hello += more;
  set(at + 2, number(at + 2) - key);
  for (const size_t length : {extensions, size_t{7}, size_t{3}}) {
    set(length, number(length) - key + more.size());
  }
  return hello;
}

// The beginning of a ClientHello of 131,000 bytes.
const std::string kLargeHello = "\x16\x03\x01\x40\x00\x01\x01\xff\xb8\x03\x03"s;

TEST_F(TlsHelloTest, RefusesALargeClientHelloAtOnce) {
  Open();
  RawPeer peer(door_->port());
  ASSERT_TRUE(peer.Send(kLargeHello));
  EXPECT_TRUE(peer.SeesClose());

  RawPeer second(door_->port());
  ASSERT_TRUE(second.Send(ClientHelloWithoutKey()));
  EXPECT_TRUE(IsAnswered(second)) << "a HelloRetryRequest";
  ASSERT_TRUE(second.Send("\x14\x03\x03\x00\x01\x01"s + kLargeHello));
  EXPECT_TRUE(second.SeesClose());

  RawPeer slow(door_->port());
  std::string many = "\x16\x03\x01\x00\x06\x01\x00\x3f\x00\x03\x03"s;
  for (int i = 0; i < 4'000; ++i) many += "\x16\x03\x01\x00\x01x"s;
  slow.Send(many);
  EXPECT_TRUE(slow.SeesClose()) << "its records' headers count";
  EXPECT_TRUE(
      Eventually(kPatience, [&] { return door_->totals().closed_by(CloseCause::kTls) == 3; }));
}

// These records are skipped, or end the handshake. OpenSSL gets no part of the ClientHello after
// them.
TEST_F(TlsHelloTest, RefusesALargeClientHelloBehindOtherRecords) {
  Open();
  for (const std::string& record :
       {"\x15\x03\x01\x00\x02\x01\x5a"s, "\x14\x03\x01\x00\x01\x01"s, "\x16\x03\x01\x00\x00"s}) {
    const auto closed = [&] { return door_->totals().closed_by(CloseCause::kTls); };
    const uint64_t before = closed();
    RawPeer peer(door_->port());
    ASSERT_TRUE(peer.Send(record));
    ASSERT_TRUE(Eventually(kPatience, [&] { return Memory() > 0 || closed() > before; }));
    peer.Send(kLargeHello);
    EXPECT_TRUE(peer.SeesClose()) << static_cast<int>(record[0]);
    ASSERT_TRUE(Eventually(kPatience, [&] { return Memory() == 0; }));
  }
  RawPeer early(door_->port());
  ASSERT_TRUE(early.Send(ClientHelloWithoutKey(true)));
  EXPECT_TRUE(IsAnswered(early)) << "a HelloRetryRequest";
  ASSERT_TRUE(early.Send("\x17\x03\x03\x00\x20"s + std::string(32, 'x') + kLargeHello));
  EXPECT_TRUE(early.SeesClose());
}

TEST_F(TlsHelloTest, ServesAClientHelloThatArrivesInPieces) {
  Open();
  const std::string hello = ClientHello();
  for (const size_t torn : {size_t{1}, size_t{5}, size_t{6}, size_t{9}, hello.size() - 1}) {
    RawPeer peer(door_->port());
    ASSERT_TRUE(peer.Send(hello.substr(0, torn)));
    ASSERT_TRUE(Eventually(kPatience, [&] { return door_->totals().buffer_bytes > 0; }));
    ASSERT_TRUE(peer.Send(hello.substr(torn)));
    EXPECT_TRUE(IsAnswered(peer)) << torn << ": a ServerHello";
  }
  std::string two = hello.substr(0, 3) + "\0\2"s + hello.substr(5, 2) + hello;
  two.erase(7 + 5, 2);
  two[7 + 3] = static_cast<char>((hello.size() - 7) >> 8);
  two[7 + 4] = static_cast<char>(hello.size() - 7);
  RawPeer peer(door_->port());
  ASSERT_TRUE(peer.Send(two));
  EXPECT_TRUE(IsAnswered(peer)) << "of two records";
}

TEST_F(TlsHelloTest, CountsHandshakesAsMemory) {
  constexpr size_t kPeers = 40, kEach = 40 * 1024;
  Open();
  const std::string hello = ClientHello();
  std::deque<RawPeer> peers;
  for (size_t i = 0; i < kPeers; ++i) {
    ASSERT_TRUE(peers.emplace_back(door_->port()).Send(hello.substr(0, hello.size() - 1)));
  }
  EXPECT_TRUE(Eventually(kPatience, [&] { return Memory() > 0; }));
  EXPECT_LT(Memory(), kPeers * kEach / 4) << "an incomplete ClientHello costs its buffer only";
  for (RawPeer& peer : peers) ASSERT_TRUE(peer.Send(hello.substr(hello.size() - 1)));
  EXPECT_TRUE(Eventually(kPatience, [&] { return Memory() >= kPeers * kEach; })) << Memory();
  ExpectGoodClientIsServed();
}

TEST_F(TlsHelloTest, ClosesHandshakesOfThePeerThatHasMost) {
  constexpr size_t kPeers = 40;
  issuing_.limits.output_total_bytes_max = 1024 * 1024;
  Open();
  const std::string hello = ClientHello();
  RawPeer good(door_->port(), "127.0.0.2");
  ASSERT_TRUE(good.Send(hello));
  std::deque<RawPeer> peers;
  for (size_t i = 0; i < kPeers; ++i) ASSERT_TRUE(peers.emplace_back(door_->port()).Send(hello));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    const Totals totals = door_->totals();
    return totals.closed_by(CloseCause::kTls) >= kPeers / 2 &&
           totals.buffer_bytes <= issuing_.limits.output_total_bytes_max;
  }));
  ExpectGoodClientIsServed();
  EXPECT_TRUE(IsAnswered(good));
  const uint64_t before = door_->totals().closed_by(CloseCause::kTls);
  EXPECT_TRUE(good.Send("\x15\x03\x03\x00\x02\x02\x28"s)) << "an alert";
  EXPECT_TRUE(Eventually(
      kPatience, [&] { return door_->totals().closed_by(CloseCause::kTls) == before + 1; }));
}

}  // namespace
}  // namespace firn::front
