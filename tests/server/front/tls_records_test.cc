#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "server/front/net/front_door.h"
#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/support/tls_authority.h"

namespace firn::front {
namespace {

using std::string_literals::operator""s;

constexpr size_t kHeader = 5;  // of a record: its type, version (two bytes) and length (two bytes)

// A client after its handshake, whose records a test can damage.
class SealingPeer {
 public:
  SealingPeer(uint16_t port, int version)
      : peer_(port), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_max_proto_version(context_.get(), version);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_bio(ssl_.get(), came_, goes_);
    while (SSL_connect(ssl_.get()) != 1 && peer_.Send(Sealed()) && Take()) {
    }
    peer_.Send(Sealed());
  }

  bool connected() const { return SSL_is_init_finished(ssl_.get()) == 1; }
  bool Send(std::string_view bytes) { return peer_.Send(bytes); }
  void FinishSending() { peer_.FinishSending(); }

  // Returns `bytes`, encrypted as a record.
  std::string Seal(std::string_view bytes) {
    SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    return Sealed();
  }
  // Returns a KeyUpdate record that also requests one from the server.
  std::string SealKeyUpdate() {
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED);
    SSL_do_handshake(ssl_.get());
    return Sealed();
  }

  // Returns a part of the answer; empty at the end.
  std::string Open() {
    char some[4096];
    do {
      ERR_clear_error();
      const int n = SSL_read(ssl_.get(), some, sizeof some);
      if (n > 0) return {some, static_cast<size_t>(n)};
      if (SSL_get_error(ssl_.get(), n) != SSL_ERROR_WANT_READ) return {};
    } while (Take());
    return {};
  }
  // Returns the alert with which Open() has ended; 0: none.
  static int Alert() {
    const int reason = ERR_GET_REASON(ERR_peek_last_error());
    return reason > SSL_AD_REASON_OFFSET ? reason - SSL_AD_REASON_OFFSET : 0;
  }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  std::string Sealed() {
    char* bytes = nullptr;
    const auto size = BIO_get_mem_data(goes_, &bytes);
    const std::string all(bytes, static_cast<size_t>(std::max<long>(size, 0)));
    BIO_reset(goes_);
    return all;
  }
  // Waits for a byte.
  bool Take() {
    const std::string byte = peer_.Receive(1);
    return BIO_write(came_, byte.data(), static_cast<int>(byte.size())) == 1;
  }

  RawPeer peer_;
  const std::unique_ptr<SSL_CTX, Free> context_;
  BIO* const came_ = BIO_new(BIO_s_mem());  // this and the next are ssl_'s
  BIO* const goes_ = BIO_new(BIO_s_mem());
  std::unique_ptr<SSL, Free> ssl_;
};

class TlsRecordsTest : public testing::TestWithParam<int> {
 protected:
  TlsRecordsTest() {
    authority_.Sign("server");
    FrontDoorOptions options;
    options.limits = issuing_.limits;
    options.tls = TlsFiles{authority_.File("server.crt"), authority_.File("server.key")};
    door_.emplace(options, SystemClock(), [this] {
      ProtocolSet set;
      set.thrift_binary =
          MakeThriftProtocol(ThriftCoding::kBinary, issuing_.backend, issuing_.counters);
      return set;
    });
    EXPECT_TRUE(door_->Start().ok());
  }

  std::unique_ptr<SealingPeer> Peer() {
    return std::make_unique<SealingPeer>(door_->port(), GetParam());
  }
  static bool IsServed(SealingPeer& peer) {
    return peer.Send(peer.Seal(ThriftCalls().GetId("slow"))) && !peer.Open().empty();
  }

  TlsAuthority authority_{"records"};
  Issuing issuing_;
  std::optional<FrontDoor> door_;
};

INSTANTIATE_TEST_SUITE_P(Versions, TlsRecordsTest, testing::Values(TLS1_2_VERSION, TLS1_3_VERSION));

TEST_P(TlsRecordsTest, DamagedRecordsEndTheConnectionWithAnAlert) {
  using Damage = std::function<void(std::string&)>;
  const auto flip = [](size_t at) {
    return [at](std::string& record) { record.at(at) = static_cast<char>(record.at(at) ^ 0x41); };
  };
  const std::vector<Damage> damages{
      flip(0),                                       // the type
      flip(1),                                       // the version
      [](std::string& record) { record[3] = 127; },  // longer than any record may be
      flip(kHeader),                                 // the first encrypted byte
      flip(kHeader + 9),                             // a byte in the middle
      [](std::string& record) { record.back() = static_cast<char>(record.back() + 1); },
      [](std::string& record) { record += record; },              // a repeated record
      [](std::string& record) { record[4] = 3, record[3] = 0; },  // too short
      [](std::string& record) {
        record.insert(0, "\x16\x03\x03\0\4\1\0\0\0"s);
      },  // a new handshake
      [](std::string& record) { record = "GET /genid HTTP/1.1\r\n\r\n"; }};
  const std::unique_ptr<SealingPeer> good = Peer();
  for (size_t i = 0; i < damages.size(); ++i) {
    SCOPED_TRACE(i);
    const std::unique_ptr<SealingPeer> peer = Peer();
    ASSERT_TRUE(IsServed(*peer));
    std::string record = peer->Seal(ThriftCalls().GetId("slow"));
    damages[i](record);
    ASSERT_TRUE(peer->Send(record));
    while (!peer->Open().empty()) {
    }
    EXPECT_NE(SealingPeer::Alert(), 0);
    EXPECT_TRUE(IsServed(*good));
  }
}

TEST_P(TlsRecordsTest, TruncatedRecordsEndTheConnectionWithoutAnAnswer) {
  const std::unique_ptr<SealingPeer> peer = Peer();
  ASSERT_TRUE(IsServed(*peer));
  const std::string record = peer->Seal(ThriftCalls().GetId("slow"));
  ASSERT_TRUE(peer->Send(std::string_view(record).substr(0, record.size() - 1)));
  peer->FinishSending();
  EXPECT_EQ(peer->Open(), "");
}

TEST_P(TlsRecordsTest, KeyUpdatesDoNotDelayOtherConnections) {
  if (GetParam() != TLS1_3_VERSION) GTEST_SKIP() << "KeyUpdate exists only in TLS 1.3";
  const std::unique_ptr<SealingPeer> good = Peer(), eager = Peer();
  std::string updates;
  for (int i = 0; i < 1'000; ++i) updates += eager->SealKeyUpdate();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(eager->Send(updates)) << i;
    ASSERT_TRUE(IsServed(*good));
    updates.clear();
    for (int k = 0; k < 1'000; ++k) updates += eager->SealKeyUpdate();
  }
}

}  // namespace
}  // namespace firn::front
