#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/lease/lease_table.h"
#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {

// The file of a server's leases, which outlives its processes. A test injects faults by its
// members.
struct LeaseDisk {
  std::string text{};
  bool stalled = false;
  bool fails = false;
  int writes = 0;
};

// A process's view of a LeaseDisk. A write completes in a later Step.
class DiskLeaseMemory final : public LeaseMemory {
 public:
  explicit DiskLeaseMemory(LeaseDisk& disk) : disk_(disk) {}

  void Keep(std::string text, Kept done) override {
    if (done_) Die("two writes of leases at once");
    text_ = std::move(text);
    done_ = std::move(done);
  }
  void Step() {
    if (!done_ || disk_.stalled) return;
    if (!disk_.fails) disk_.text = text_;
    ++disk_.writes;
    std::exchange(done_, {})(disk_.fails ? Unavailable("no space on the disk") : Status());
  }

 private:
  LeaseDisk& disk_;
  std::string text_;
  Kept done_;
};

inline std::string TokenOf(uint64_t number) { return Nonce(7, number).text(); }

// A reply that may arrive later.
struct Replied {
  std::optional<LeaseReply> reply{};

  LeaseVerdict verdict() const {
    if (!reply) Die("there is no reply");
    return reply->verdict;
  }
  const LeaseGrant& terms() const {
    if (!reply || reply->verdict != LeaseVerdict::kGranted) {
      Die("no lease: " + (reply ? reply->message : "no reply"));
    }
    return reply->terms;
  }
};

// A server that grants leases, in virtual time. The destructor acts like kill -9.
class LeaseServer {
 public:
  LeaseServer(MemoryTree& tree, const VirtualClock& clock, LeaseDisk& disk,
              LeaseTableOptions options, uint64_t seed)
      : clock_(clock), entropy_(seed), memory_(disk) {
    auto inner = std::make_unique<MemoryCoordinator>(tree);
    inner_ = inner.get();
    link_ = std::make_unique<FaultyCoordinator>(std::move(inner), clock);
    ClaimHooks hooks;
    hooks.event = [this](const ClaimEvent& event) { alarms_.push_back(event.text); };
    if (const auto kept = ParseKeptBounds(disk.text); kept.ok()) options.claim.kept = *kept;
    table_ = std::make_unique<LeaseTable>(std::move(options), *link_, entropy_, memory_,
                                          std::move(hooks));
    link_->OnSession([this](SessionEvent event) { table_->OnSession(event); });
  }
  ~LeaseServer() { inner_->Abandon(); }

  void Step() {
    link_->Dispatch(Milliseconds(0));
    table_->Tick(Time(), server);
    memory_.Step();
  }

  KeeperTime Time() { return {clock_.Read(), id_clock_.Advance(clock_.Read())}; }

  std::shared_ptr<Replied> Call(LeaseCall call) {
    auto replied = std::make_shared<Replied>();
    table_->Handle(call, [replied](LeaseReply reply) { replied->reply = std::move(reply); });
    return replied;
  }
  std::shared_ptr<Replied> Ask(uint64_t token, Milliseconds ahead = Milliseconds(60'000)) {
    return Call(LeaseAsk{TokenOf(token), "program", ahead, {}, clock_.Wall()});
  }
  std::shared_ptr<Replied> Renew(const std::string& lease, uint64_t turn, uint64_t acknowledged,
                                 Milliseconds ahead = Milliseconds(60'000)) {
    return Call(LeaseRenewal{lease, TokenOf(turn),
                             acknowledged == 0 ? std::string() : TokenOf(acknowledged), ahead,
                             clock_.Wall()});
  }
  std::shared_ptr<Replied> End(const std::string& lease, uint64_t turn,
                               std::optional<Tick> used = {}) {
    return Call(LeaseEnd{lease, turn == 0 ? std::string() : TokenOf(turn), used});
  }

  LeaseTable& table() { return *table_; }
  FaultyCoordinator& link() { return *link_; }
  IdClock& id_clock() { return id_clock_; }
  int64_t session() const { return inner_->session(); }
  const std::vector<std::string>& alarms() const { return alarms_; }

  LeaseTable::Server server{.resumes = true};

 private:
  const VirtualClock& clock_;
  SeededEntropy entropy_;
  IdClock id_clock_;
  DiskLeaseMemory memory_;
  MemoryCoordinator* inner_ = nullptr;
  std::unique_ptr<FaultyCoordinator> link_;
  std::vector<std::string> alarms_;
  std::unique_ptr<LeaseTable> table_;
};

// A cluster in memory with eight slots, four of them for leases, and servers that grant leases.
class LeaseTest : public ClaimKeeperTest {
 protected:
  void SetUp() override { MakeClusterWith(8); }

  LeaseTableOptions LeasesOf(const std::string& name) {
    LeaseTableOptions options;
    options.claim = Options(name);
    options.split = *RackSplit::Make(options.claim.layout, 0);
    options.address = name + ":7609";
    options.leases_max = 100;
    return options;
  }
  std::unique_ptr<LeaseServer> StartServer(LeaseTableOptions options) {
    return std::make_unique<LeaseServer>(tree_, clock_, lease_disk_, std::move(options), ++seed_);
  }
  std::unique_ptr<LeaseServer> StartServer() {
    auto server = StartServer(LeasesOf("s"));
    Run(Milliseconds(10), *server);
    return server;
  }
  void Run(Milliseconds time, LeaseServer& server) {
    const Milliseconds step(time > Milliseconds(200'000) ? 50 : 5);
    for (Milliseconds passed{0}; passed < time; passed += step) {
      clock_.Advance(step);
      server.Step();
    }
  }
  void Run(Milliseconds time, ClaimHost& host) { ClaimKeeperTest::Run(time, host); }

  // Requests a lease with this token and returns its terms.
  LeaseGrant Grant(LeaseServer& server, uint64_t token) {
    const auto replied = server.Ask(token);
    Run(kAMoment, server);
    return replied->terms();
  }
  LeaseGrant Renewed(LeaseServer& server, const std::string& lease, uint64_t turn,
                     uint64_t acknowledged) {
    const auto replied = server.Renew(lease, turn, acknowledged);
    Run(Milliseconds(50), server);
    return replied->terms();
  }
  WallMs StartOf(Tick tick) const { return Layout::Firn().StartOf(tick); }

  LeaseDisk lease_disk_;
};

}  // namespace firn
