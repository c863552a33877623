#include "server/peers/peer_links.h"

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <pthread.h>

#include "common/log/log.h"
#include "server/front/server_front.h"
#include "tests/server/front/issuing_fixture.h"
#include "tests/support/process.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

constexpr std::string_view kSlowName = "slow.invalid";
std::atomic<int> resolving = 0;
std::atomic<bool> resolves = false;  // it ends

}  // namespace
}  // namespace firn

// Replaces the C library's function.
int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  if (name != nullptr && name == firn::kSlowName) {
    ++firn::resolving;
    while (!firn::resolves) firn::SleepFor(firn::Milliseconds(1));
    --firn::resolving;
    return EAI_NONAME;
  }
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(name, service, hints, found);
}

namespace firn {
namespace {

// The port of a server that owns the tag `order`.
class OwnerPort final : public front::ServerControl {
 public:
  explicit OwnerPort(std::optional<front::TlsFiles> tls = {}) : tls_(std::move(tls)) {
    Start(static_cast<uint16_t>(FreePort()));
  }

  // Closes all connections, and opens the same port again.
  void Restart() { Restart(tls_); }
  void Restart(std::optional<front::TlsFiles> tls) {
    tls_ = std::move(tls);
    const uint16_t port = front_->port();
    front_.reset();
    Start(port);
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(front_->port()); }
  uint64_t connections() const {
    return front_->sums().protocols[front::ProtocolKind::kThrift].connections;
  }

  std::atomic<int64_t> next{1};
  std::atomic<bool> hangs = false;

 private:
  void Start(uint16_t port) {
    front::ServerFrontOptions options;
    options.listen.port = port;
    options.listen.tls = tls_;
    options.admin.emplace();
    options.take_owned = [this](const PeerTake& take) -> Result<Range> {
      if (take.secret != "secret" || take.tag != "order") return Range{};
      while (hangs) SleepFor(Milliseconds(1));
      const int64_t begin = next.fetch_add(take.count);
      return Range{begin, begin + take.count};
    };
    front_.emplace(std::move(options), issuing_.issuer, issuing_.view, *this, SystemClock());
    if (!front_->Start().ok()) Die("the owner's port was not opened");
  }

  Status GoOffline() override { return {}; }
  Status GoOnline() override { return {}; }

  std::optional<front::TlsFiles> tls_;
  front::Issuing issuing_;
  std::optional<front::ServerFront> front_;
};

class PeerLinksTest : public testing::Test {
 protected:
  explicit PeerLinksTest(Milliseconds kept = PeerLinks::kKept, Milliseconds silent = kPatience)
      : links_(std::nullopt, kept, silent) {}
  Result<Range> Take(const std::string& address, const OwnerLink::Count& count,
                     const std::string& secret = "secret") {
    std::promise<Result<Range>> answer;
    links_.Take(address, {secret, "order", "form"}, count,
                [&answer](const Result<Range>& range) { answer.set_value(range); });
    return answer.get_future().get();
  }
  Result<Range> Take(const OwnerPort& owner) {
    return Take(owner.address(), [] { return 1; });
  }

  OwnerPort first_, second_;
  PeerLinks links_;
};

class ForgetfulPeerLinksTest : public PeerLinksTest {
 protected:
  ForgetfulPeerLinksTest() : PeerLinksTest(Milliseconds(0)) {}
};

class ImpatientPeerLinksTest : public PeerLinksTest {
 protected:
  ImpatientPeerLinksTest() : PeerLinksTest(PeerLinks::kKept, PeerLinks::kAnswer) {}
};

TEST_F(PeerLinksTest, RequestsTheCountThatIsNeededWhenItIsSent) {
  EXPECT_EQ(*Take(first_.address(), [] { return 3; }), (Range{1, 4}));
  EXPECT_EQ(*Take(first_.address(), [this] { return first_.next.load(); }), (Range{4, 8}));
  EXPECT_EQ(first_.connections(), 1U);
}

TEST_F(PeerLinksTest, ReturnsAnEmptyRangeIfTheCallerMustRetry) {
  EXPECT_EQ(*Take(
                first_.address(), [] { return 3; }, "another"),
            Range{});
  EXPECT_EQ(*Take("127.0.0.1:1", [] { return 3; }), Range{}) << "no server listens there";
}

TEST_F(PeerLinksTest, KeepsItsConnectionsToTwoOwners) {
  for (int64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(*Take(first_), (Range{i, i + 1}));
    EXPECT_EQ(*Take(second_), (Range{i, i + 1}));
  }
  EXPECT_EQ(first_.connections(), 1U);
  EXPECT_EQ(second_.connections(), 1U);
}

TEST_F(ForgetfulPeerLinksTest, ClosesAnIdleConnectionWhenItConnectsToANewAddress) {
  EXPECT_EQ(*Take(first_), (Range{1, 2}));
  int port = 0;  // no server listens there
  EXPECT_TRUE(Eventually(kPatience, [&] {
    EXPECT_EQ(*Take("127.0.0.1:" + std::to_string(++port), [] { return 1; }), Range{});
    return first_.connections() == 0;
  }));
  EXPECT_EQ(*Take(first_), (Range{2, 3}));
}

TEST_F(PeerLinksTest, SendsATakeAgainIfTheConnectionHadBeenClosed) {
  EXPECT_EQ(*Take(first_), (Range{1, 2}));
  first_.Restart();
  EXPECT_EQ(*Take(first_), (Range{2, 3}));
}

TEST_F(PeerLinksTest, SendsATakeOnceToAnOwnerThatDoesNotAnswer) {
  EXPECT_EQ(*Take(first_), (Range{1, 2}));
  int sent = 0;
  first_.hangs = true;
  EXPECT_EQ(*Take(first_.address(), [&sent] { return ++sent; }), Range{});
  first_.hangs = false;
  EXPECT_EQ(sent, 1);
}

// Otherwise an owner would lose its partitions because it is overloaded.
TEST_F(PeerLinksTest, CountsAnOwnerThatAnswersLateAsReachable) {
  EXPECT_EQ(*Take(first_), (Range{1, 2}));
  first_.hangs = true;
  EXPECT_EQ(*Take(first_), Range{});
  EXPECT_EQ(*Take(first_), Range{}) << "the first answer is still missing";
  EXPECT_EQ(links_.Unreachable(), "");
  first_.hangs = false;
  EXPECT_TRUE(Eventually(kPatience, [&] { return !Take(first_)->empty(); }));
  EXPECT_EQ(links_.Unreachable(), "");
  EXPECT_EQ(first_.connections(), 1U) << "a new connection would add to its load";
}

TEST_F(PeerLinksTest, UsesALateAnswer) {
  // A busy machine may pause for longer than callers wait.
  EXPECT_TRUE(Eventually(kPatience, [this] {
    first_.hangs = true;
    const std::jthread later([this] {
      const BootMs until = TestNow() + PeerLinks::kAnswer + Milliseconds(200);
      EXPECT_TRUE(Eventually(kPatience, [&] { return TestNow() > until; }));
      first_.hangs = false;
    });
    return !Take(first_)->empty();
  }));
}

TEST_F(PeerLinksTest, NamesAnOwnerThatRefusesConnections) {
  EXPECT_EQ(*Take("127.0.0.1:1", [] { return 1; }), Range{}) << "no server listens there";
  EXPECT_TRUE(Eventually(kPatience, [&] { return links_.Unreachable() == "127.0.0.1:1"; }));
}

TEST_F(ImpatientPeerLinksTest, NamesAnOwnerThatStaysSilent) {
  EXPECT_EQ(*Take(first_), (Range{1, 2}));
  EXPECT_EQ(*Take(second_), (Range{1, 2}));
  EXPECT_EQ(links_.Unreachable(), "");
  first_.hangs = true;
  EXPECT_EQ(*Take(first_), Range{});
  EXPECT_TRUE(Eventually(kPatience, [&] { return links_.Unreachable() == first_.address(); }));
  first_.hangs = false;
  EXPECT_TRUE(Eventually(kPatience, [&] { return first_.connections() == 0; }));
  EXPECT_TRUE(Eventually(kPatience, [&] { return !Take(first_)->empty(); }));
  EXPECT_TRUE(Eventually(kPatience, [&] { return links_.Unreachable().empty(); }));
}

TEST_F(PeerLinksTest, AnswersTakesAfterItsEnd) {
  links_.Stop();
  EXPECT_EQ(*Take(first_), Range{});
}

TEST_F(PeerLinksTest, DoesNotWaitForANameToBeResolvedWhenItStops) {
  resolves = false;
  std::atomic<bool> answered = false;
  links_.Take(
      std::string(kSlowName) + ":1", {.secret = "secret", .tag = "order", .form = "form"},
      [] { return 1; }, [&answered](const Result<Range>&) { answered = true; });
  EXPECT_TRUE(Eventually(kPatience, [] { return resolving == 1; }));
  links_.Stop();
  EXPECT_EQ(resolving, 1);
  resolves = true;
  EXPECT_TRUE(Eventually(kPatience, [] { return resolving == 0; }));
  EXPECT_FALSE(answered);
}

TEST_F(PeerLinksTest, SurvivesAShortageOfMemory) {
  EXPECT_EQ(*Take(first_), (Range{1, 2}));
  EXPECT_EQ(*Take(first_.address(), []() -> int64_t { throw std::bad_alloc(); }), Range{});
  EXPECT_EQ(*Take(first_), (Range{2, 3}));
}

TEST_F(PeerLinksTest, LogsOnceThatThreadsAreShort) {
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 50), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  static std::atomic<int> lines;
  SendLogTo([](const LogEntry& entry) { lines += entry.event == "peer_unreachable" ? 1 : 0; });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(*Take(first_), Range{});
  SendLogTo(nullptr);
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  EXPECT_EQ(lines, 1);
  EXPECT_EQ(*Take(first_), (Range{1, 2}));
}

// The certificates of two servers, and of a server of another authority.
class PeerTlsTest : public testing::Test {
 protected:
  PeerTlsTest() {
    ours_.Sign("owner", "IP:127.0.0.1");
    ours_.Sign("other", "IP:127.0.0.1");
    foreign_.Sign("owner", "IP:127.0.0.1");
  }
  static front::TlsFiles FilesOf(const TlsAuthority& authority, bool requires_certificate) {
    return {.cert = authority.File("owner.crt"),
            .key = authority.File("owner.key"),
            .client_ca = requires_certificate ? authority.File("ca.crt") : ""};
  }
  PeerTls own() const {
    return {.cert = ours_.File("other.crt"),
            .key = ours_.File("other.key"),
            .ca = ours_.File("ca.crt")};
  }
  // Returns how many numbers a take gets. `tls`: what the owner's beat says.
  static int64_t Take(PeerLinks& links, const OwnerPort& owner, std::optional<bool> tls) {
    std::promise<int64_t> answer;
    links.Take(
        owner.address(), {.secret = "secret", .tag = "order", .form = "form", .tls = tls},
        [] { return 3; },
        [&answer](const Result<Range>& range) { answer.set_value(range->size()); });
    return answer.get_future().get();
  }

  TlsAuthority ours_{"ours"}, foreign_{"foreign"};
};

TEST_F(PeerTlsTest, ServersWithTlsAuthenticateEachOther) {
  const OwnerPort owner(FilesOf(ours_, true));
  PeerLinks links(own(), PeerLinks::kKept, kPatience);
  EXPECT_EQ(Take(links, owner, true), 3);
  EXPECT_EQ(Take(links, owner, {}), 3) << "the owner is of an earlier version";
}

TEST_F(PeerTlsTest, TrustsNoOtherAuthority) {
  const OwnerPort owner(FilesOf(foreign_, false));
  PeerLinks links(own(), PeerLinks::kKept, kPatience);
  EXPECT_EQ(Take(links, owner, true), 0);
  EXPECT_TRUE(Eventually(kPatience, [&] { return links.Unreachable() == owner.address(); }));
}

TEST_F(PeerTlsTest, ConnectsAsTheOwnerDoesWhileTheClusterIsSwitched) {
  OwnerPort owner;
  PeerLinks plain(std::nullopt, PeerLinks::kKept, kPatience);
  PeerLinks encrypts(own(), PeerLinks::kKept, kPatience);
  for (int round = 0; round < 2; ++round) {
    owner.Restart({});
    EXPECT_EQ(Take(plain, owner, false), 3);
    EXPECT_EQ(Take(encrypts, owner, false), 3);
    owner.Restart(FilesOf(ours_, false));
    EXPECT_EQ(Take(plain, owner, true), 3);
    EXPECT_EQ(Take(encrypts, owner, true), 3);
  }
}

}  // namespace
}  // namespace firn
