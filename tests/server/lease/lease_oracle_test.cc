// Tests programs, servers that lease machine ids to them, and servers that issue ids, under random
// faults in virtual time. An oracle records every tick that was leased or used: no tick of a
// machine id may have two holders.

#include <array>
#include <cstdio>
#include <map>

#include "tests/server/lease/lease_rig.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

constexpr Milliseconds kWindow{30'000};

// The ticks of each machine id that each holder may use or has used. A tick with two holders, even
// at different times, is a failure.
class Oracle {
 public:
  void Extend(uint32_t machine, const std::string& holder, Tick from, Tick until) {
    Cover& cover = covers_[machine].try_emplace(holder, Cover{from, from}).first->second;
    cover.until = std::max(cover.until, until);
    for (const auto& [other, theirs] : covers_[machine]) {
      const bool overlaps = theirs.from < cover.until && cover.from < theirs.until;
      if (other == holder || !overlaps) continue;
      ADD_FAILURE() << "machine id " << machine << ": " << holder << " has " << cover.from << " to "
                    << cover.until << ", and " << other << " has " << theirs.from << " to "
                    << theirs.until;
    }
  }
  // Records that the holder has stopped, and has used no tick at or above `until`.
  void Shrink(uint32_t machine, const std::string& holder, Tick until) {
    Cover& cover = covers_[machine].at(holder);
    cover.until = std::min(cover.until, std::max(cover.from, until));
  }
  // Returns the number of machine ids that several holders have had.
  size_t shared() const {
    size_t count = 0;
    for (const auto& [machine, holders] : covers_) count += holders.size() > 1 ? 1u : 0u;
    return count;
  }

 private:
  struct Cover {
    Tick from, until;
  };
  std::map<uint32_t, std::map<std::string, Cover>> covers_;
};

// A program with its own generator, which follows the rules of leases.
struct Program {
  uint64_t token = 0;  // 0: needs no lease now
  size_t server = 0;
  std::shared_ptr<Replied> asked{};  // in progress
  std::shared_ptr<Replied> renewing{};
  std::optional<LeaseGrant> lease{};
  Tick position{};  // the next tick that it would use
  uint64_t turn = 0, acknowledged = 0;
  Milliseconds clock_off{0};

  void Forget() { *this = {.clock_off = clock_off}; }
};

class LeaseOracleTest : public LeaseTest {
 protected:
  static constexpr size_t kServers = 3, kPrograms = 6, kHosts = 2;

  struct Granter {
    LeaseDisk disk{};
    std::unique_ptr<LeaseServer> server{};
    bool paused = false;
  };

  uint64_t Below(uint64_t n) { return entropy_.Below(n); }
  bool Chance(uint64_t thousandths) { return Below(1'000) < thousandths; }

  void StartGranter(size_t i) {
    LeaseTableOptions options = LeasesOf("s" + std::to_string(i));
    options.claim.window = kWindow;
    options.leases_max = 4;
    options.boot = "boot";
    granters_[i].disk.stalled = granters_[i].disk.fails = false;
    granters_[i].server = std::make_unique<LeaseServer>(tree_, clock_, granters_[i].disk,
                                                        std::move(options), ++seed_);
    granters_[i].server->server.uuid = Meta().uuid;
    granters_[i].paused = false;
  }
  void StartHost(size_t i) {
    ClaimOptions options = Options("h" + std::to_string(i));
    options.window = kWindow;
    hosts_[i] = ClaimKeeperTest::Start(host_disks_[i], options);
  }

  void StartAll(uint64_t seed) {
    entropy_ = SeededEntropy(seed);
    // Two machine ids are not enough for the servers, so they also claim ids reserved for leases.
    MakeClusterWith(8);
    ClusterMeta meta = Meta();
    meta.lease_share = 75;
    Write1(kMetaPath, FormatMeta(meta));
    for (size_t i = 0; i < kServers; ++i) StartGranter(i);
    for (size_t i = 0; i < kHosts; ++i) StartHost(i);
  }

  // --- programs ---------------------------------------------------------------------------------

  Tick ClockOf(const Program& program) {
    return Layout::Firn().TickAt(clock_.Wall() + program.clock_off);
  }

  void Want(Program& program) {
    program.token = ++last_token_;
    program.server = Below(kServers);
    program.clock_off = Milliseconds(static_cast<int64_t>(Below(40'000)) - 20'000);
  }

  void Ask(Program& program) {
    const Milliseconds ahead(static_cast<int64_t>(2'000 + Below(28'000)));
    program.asked = granters_[program.server].server->Ask(program.token, ahead);
  }

  void Renew(Program& program) {
    if (program.turn == program.acknowledged) program.turn = ++last_turn_;
    const Milliseconds ahead(static_cast<int64_t>(2'000 + Below(28'000)));
    LeaseServer& server = *granters_[program.server].server;
    if (Chance(100)) server.Renew(program.lease->lease, program.turn, program.acknowledged, ahead);
    program.renewing =
        server.Renew(program.lease->lease, program.turn, program.acknowledged, ahead);
  }

  void Take(Program& program, const LeaseGrant& terms) {
    oracle_.Extend(terms.machine.value(), terms.lease, terms.from, terms.until);
    program.lease = program.lease.value_or(terms);
    program.lease->until = std::max(program.lease->until, terms.until);
    program.position = std::max(program.position, terms.from);
    ++promises_;
  }

  void TakeReplies(Program& program) {
    if (program.asked && program.asked->reply) {
      const auto replied = std::exchange(program.asked, nullptr);
      if (replied->verdict() == LeaseVerdict::kGranted) {
        Take(program, replied->terms());
      } else if (replied->verdict() != LeaseVerdict::kLater) {
        ++surprises_[replied->reply->verdict];
        program.Forget();
      }
    }
    if (program.renewing && program.renewing->reply) {
      const auto replied = std::exchange(program.renewing, nullptr);
      if (Chance(100)) return;  // the answer is lost, so the turn is repeated
      if (replied->verdict() == LeaseVerdict::kGranted) {
        program.acknowledged = program.turn;
        Take(program, replied->terms());
      } else if (replied->verdict() == LeaseVerdict::kRevoked) {
        ++surprises_[replied->reply->verdict];
        program.Forget();
      }
    }
  }

  // Ends the program's lease after closing its generator. A program whose clock is behind has used
  // the fewest ticks.
  void Leave(Program& program) {
    const LeaseGrant& lease = *program.lease;
    const Tick used = program.position - 1;
    const auto replied = granters_[program.server].server->End(lease.lease, program.turn, used);
    // The program uses no later tick, so other holders may get the ticks above it.
    oracle_.Shrink(lease.machine.value(), lease.lease, used + 1);
    if (replied->reply && replied->verdict() == LeaseVerdict::kEnded) ++left_;
    program.Forget();
  }

  void Act(Program& program) {
    TakeReplies(program);
    if (program.token == 0) {
      if (Chance(200)) Want(program);
      return;
    }
    if (!program.lease) {
      if (!program.asked && Chance(300)) Ask(program);
      return;
    }
    const Tick now = std::max(ClockOf(program), program.position);
    if (now < program.lease->until) program.position = now + 1;
    if (Chance(3)) return program.Forget();  // killed
    if (Chance(3)) return Leave(program);
    if (program.position >= program.lease->until && Chance(20)) return program.Forget();
    if (!program.renewing && Chance(30)) Renew(program);
  }

  // --- servers and the registry -----------------------------------------------------------------

  void Disturb(size_t i) {
    Granter& granter = granters_[i];
    if (Chance(2)) {
      // A clean stop, or kill -9 in the middle of one.
      if (Chance(500)) {
        granter.server->table().Stop(clock_.Boot() + Milliseconds(3'000));
        const uint64_t rounds = Below(20);
        for (uint64_t n = 0; n < rounds; ++n) granter.server->Step();
      }
      return StartGranter(i);
    }
    if (Chance(4)) granter.server->link().Disconnect();
    if (Chance(40)) granter.server->link().Reconnect();
    if (Chance(2)) tree_.Expire(granter.server->session());
    if (Chance(4)) granter.paused = !granter.paused;
    if (granter.paused && Chance(50)) granter.paused = false;
    if (Chance(3)) granter.disk.stalled = true;
    if (Chance(3)) granter.disk.fails = true;
    if (Chance(50)) granter.disk.stalled = granter.disk.fails = false;
    if (Chance(15)) granter.server->link().Script(Verb::kMulti, {Fate::Kind::kAnswerLost, {}, {}});
    if (Chance(15)) granter.server->link().Script(Verb::kMulti, {Fate::Kind::kLate, {}, {}});
    if (Chance(1)) {
      granter.server->id_clock().RaiseTo(
          granter.server->Time().id_time + Milliseconds(static_cast<int64_t>(Below(10'000))),
          clock_.Read());
    }
  }

  void StepHost(size_t i) {
    if (Chance(2)) {
      if (Chance(500)) {
        hosts_[i]->keeper().Release(hosts_[i]->Time());
        for (int n = 0; n < 5; ++n) hosts_[i]->Step();
      }
      const int64_t session = hosts_[i]->session();
      StartHost(i);
      tree_.Expire(session);
    }
    ClaimHost& host = *hosts_[i];
    host.Step();
    const Step step = host.user().Take(1);
    if (step.kind != Step::Kind::kTaken) return;
    const Claim& claim = host.user().claim();
    oracle_.Extend(
        claim.machine().value(),
        "host " + std::to_string(i) + " from " + std::to_string(claim.first_tick().count()),
        step.tick, step.tick + 1);
  }

  void StepAll() {
    clock_.Advance(Milliseconds(static_cast<int64_t>(1 + Below(Chance(5) ? 20'000 : 300))));
    for (size_t i = 0; i < kServers; ++i) {
      if (!granters_[i].paused) granters_[i].server->Step();
      Disturb(i);
    }
    for (size_t i = 0; i < kHosts; ++i) StepHost(i);
    for (Program& program : programs_) Act(program);
  }

  std::array<Granter, kServers> granters_;
  std::array<MemoryDisk, kHosts> host_disks_;
  std::array<std::unique_ptr<ClaimHost>, kHosts> hosts_;
  std::array<Program, kPrograms> programs_;
  Oracle oracle_;
  uint64_t last_token_ = 0, last_turn_ = 0;
  uint64_t promises_ = 0, left_ = 0;
  std::map<LeaseVerdict, uint64_t> surprises_;
};

TEST_F(LeaseOracleTest, NoTickBelongsToTwo) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  StartAll(seed);
  for (int step = 0; step < 20'000 && !HasFailure(); ++step) StepAll();
  std::printf("%llu promises, %llu leases given back, %zu machine ids shared\n",
              static_cast<unsigned long long>(promises_), static_cast<unsigned long long>(left_),
              oracle_.shared());
  EXPECT_FALSE(Meta().frozen) << Meta().reason;
  // Every kind of event occurred often enough.
  EXPECT_GT(promises_, 400u);
  EXPECT_GT(left_, 20u);
  EXPECT_GE(oracle_.shared(), 7u);
}

// A program is copied with its memory. Both copies issue ids, but only below the end that was
// granted before the server detected the copy. The next lease starts above that end.
TEST_F(LeaseOracleTest, CopiesGetNoSecondInterval) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  const LeaseGrant original = Renewed(*server, lease.lease, 1, 0);
  EXPECT_EQ(server->Renew(lease.lease, 2, 0)->verdict(), LeaseVerdict::kRevoked);
  for (uint64_t turn = 3; turn < 10; ++turn) {
    EXPECT_EQ(server->Renew(lease.lease, turn, turn - 1)->verdict(), LeaseVerdict::kRevoked);
    Run(Milliseconds(1'000), *server);
  }
  Run(Milliseconds(60'000), *server);
  const LeaseGrant next = Grant(*server, 2);
  EXPECT_EQ(next.worker, lease.worker);
  EXPECT_GE(next.from, original.until);
}

}  // namespace
}  // namespace firn
