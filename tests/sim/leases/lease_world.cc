#include "tests/sim/leases/lease_world.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "server/lease/kept_lease.h"
#include "tests/sim/sim_sizes.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

constexpr Milliseconds kServiceWithin{10 * 60'000};
constexpr Milliseconds kWaitMax{4 * 3'600'000};

constexpr Milliseconds kDetectedWithin{2 * 60'000};
constexpr uint64_t kSeedOfCopies = 0x9e3779b97f4a7c15, kSeedOfStops = 0xbf58476d1ce4e5b9;

bool NeedsCopies(LeaseMutant mutant) {
  return mutant == LeaseMutant::kOlderTurnBelieved || mutant == LeaseMutant::kWithoutTurns;
}

}  // namespace

LeaseWorld::LeaseWorld(uint64_t seed, LeaseMutant mutant, const SimArguments& arguments)
    : dice_(seed),
      stop_dice_(seed + kSeedOfStops),
      clock_(kSimStart, BootMs(1)),
      registry_clock_(clock_),
      tree_(registry_clock_),
      shared_{.clock = clock_,
              .registry_clock = registry_clock_,
              .tree = tree_,
              .oracle = oracle_,
              .twins = twins_,
              .dice = dice_,
              .mutant = mutant,
              .trace = arguments.trace} {
  DrawSizes();
  DrawCopies(seed);
  operator_.MakeCluster(slots_, lease_share_);
  for (size_t i = 0; i < first_hosts_; ++i) {
    const int index = static_cast<int>(i);
    const size_t leases_max = OneIn(3) ? 1 + dice_.Below(3) : 100;
    hosts_.push_back(std::make_unique<LeaseHost>(shared_, index, ClaimOf(index), leases_max));
    hosts_.back()->disk().claims.has_grant = has_grants_;
    if (clocks_differ_) hosts_.back()->clock().StepWall(UpTo(8'000) - Milliseconds(4'000));
    hosts_.back()->Start(true);
  }
  for (size_t i = 0; i < first_programs_; ++i) {
    programs_.push_back(std::make_unique<LeaseProgram>(shared_, net_, static_cast<int>(i)));
    if (clocks_differ_) programs_.back()->clock().StepWall(UpTo(5'000));
  }
}

void LeaseWorld::DrawSizes() {
  static constexpr int64_t kWindowsMs[] = {20'000, 30'000, 60'000};
  static constexpr const char* kLayouts[] = {"firn", "firn",
                                             "time:31s machine:10 sequence:22 epoch:2024-01-01"};
  const auto below = [this](uint64_t n) { return static_cast<int>(dice_.Below(n)); };
  shared_.layout = *Layout::Parse(kLayouts[dice_.Below(3)]);
  shared_.window = Milliseconds(kWindowsMs[dice_.Below(3)]);
  // A mutant needs contention for machine ids, and none of the faults that do not affect it.
  is_honest_ = shared_.mutant == LeaseMutant::kNone;
  first_hosts_ = is_honest_ ? 1 + dice_.Below(4) : 2 + dice_.Below(3);
  first_programs_ = is_honest_ ? 1 + dice_.Below(6) : 3 + dice_.Below(4);
  // Few slots, so that slots pass from lease to lease and servers claim slots for leases.
  const bool needs_losses =
      shared_.mutant == LeaseMutant::kNotInFolder || shared_.mutant == LeaseMutant::kBoundsAlone;
  const bool few = is_honest_ ? OneIn(2) : !needs_losses;
  const size_t servers = few ? first_hosts_ : 2 * first_hosts_ + 1;
  slots_ = static_cast<uint32_t>(servers + 1 + dice_.Below(is_honest_ ? 2 * first_programs_ : 2));
  lease_share_ = needs_losses || (is_honest_ && OneIn(2)) ? 50 : 75;
  wanted_steps_ = 500 + below(2'500);
  fault_every_ = 8 + dice_.Below(is_honest_ ? 80 : 20);
  if (NeedsCopies(shared_.mutant)) fault_every_ += 30;  // both copies must continue to run
  shared_.copies = NeedsCopies(shared_.mutant) || (is_honest_ && OneIn(3));
  loses_data_ = needs_losses || (is_honest_ && OneIn(3));
  clocks_differ_ = shared_.mutant == LeaseMutant::kEndedWhileOpen || OneIn(2);
  has_grants_ = !needs_losses && !OneIn(3);
  if (shared_.mutant == LeaseMutant::kForgetsStop) {
    fault_every_ = 1'000'000;  // StrikeStop only
    return;
  }
  const bool needs_lost_answers = shared_.mutant == LeaseMutant::kBeforeTheWrite;
  if (OneIn(4) && !needs_lost_answers) return;  // a registry without faults
  shared_.rates = {.refused = below(30),
                   .request_lost = needs_lost_answers ? 150 : below(40),
                   .answer_lost = below(60),
                   .late = below(60),
                   .delayed = below(500),
                   .notice_lost = 0,
                   .delay_max = Milliseconds(10 + below(500)),
                   .late_max = Milliseconds(100 + below(10'000)),
                   .time_limit = Milliseconds(200 + below(2'000))};
}

// Has its own random numbers, so that worlds without copies of servers do not change.
void LeaseWorld::DrawCopies(uint64_t seed) {
  static constexpr int64_t kRoutesMs[] = {5'000, 20'000, 300'000};
  SeededEntropy dice(seed + kSeedOfCopies);
  const bool is_needed = shared_.mutant == LeaseMutant::kTwinsUnnoticed;
  // There is no guarantee if the registry loses data before a copy is detected.
  shared_.copies_servers = is_needed || (is_honest_ && !loses_data_ && dice.Below(2) == 0);
  shared_.generations = shared_.copies_servers && !is_needed && dice.Below(2) == 0;
  shared_.route = Milliseconds(is_needed ? kRoutesMs[2] : kRoutesMs[dice.Below(3)]);
  const bool forgets = shared_.mutant == LeaseMutant::kForgetsStop;
  loses_stops_ = forgets || (is_honest_ && !loses_data_ && !shared_.copies_servers &&
                             stop_dice_.Below(3) == 0);
}

ClaimOptions LeaseWorld::ClaimOf(int index) const {
  const std::string name = "s" + std::to_string(index);
  ClaimOptions options{.identity = {.owner = name, .endpoint = name, .host = name, .build = "sim"},
                       .layout = shared_.layout};
  options.window = shared_.window;
  options.session_timeout = Milliseconds(10'000);
  return options;
}

// --- time and ordinary life ----------------------------------------------------------------------

void LeaseWorld::Run() {
  while (steps_ < wanted_steps_) Step();
  EndFaults();
  if (!is_honest_ && shared_.mutant != LeaseMutant::kResumesLate) return;
  DemandService();
  if (!shared_.copied.empty()) DemandDetection();
  if (!shared_.copies_servers && !shared_.copies) DemandExtension();
}

void LeaseWorld::Step() {
  ++steps_;
  PassTime();
  const bool is_put_back = !shared_.first_reader.empty();
  if (OneIn(fault_every_) && !is_put_back) Strike();
  if (loses_stops_ && !is_put_back) StrikeStop();
  if (shared_.gap && clock_.Boot() >= restore_at_) operator_.Restore();
  if (shared_.copies_servers) WakeCopies();
  net_.Round();
  for (const auto& host : hosts_) {
    if (host->paused_until > clock_.Boot()) continue;
    const bool may_start =
        (!is_put_back || shared_.first_reader == host->address()) && host.get() != stopped_;
    if (!host->running() && may_start && OneIn(100)) {
      host->Start(is_put_back || (!outage_ && !OneIn(6)));
    }
    if (!host->connected() && !outage_ && OneIn(50)) host->Reconnect();
    host->Round();
  }
  for (const auto& program : programs_) RoundOf(*program);
}

void LeaseWorld::RoundOf(LeaseProgram& program) {
  if (program.paused_until > clock_.Boot()) return;
  if (!program.running() && OneIn(50)) program.Start();
  if (!OneIn(3)) program.Round();
}

void LeaseWorld::PassTime() {
  const uint64_t dice = dice_.Below(1'000);
  clock_.Advance(Milliseconds(1) + UpTo(dice < 900 ? 300 : dice < 996 ? 2'000 : 30'000));
  ExpireSessions();
}

// --- the end of all faults -----------------------------------------------------------------------

void LeaseWorld::EndFaults() {
  shared_.Trace("no more faults");
  shared_.rates = {};
  outage_ = false;
  registry_clock_.SetRight();
  net_.EndFaults();
  if (!operator_.IsWhole()) operator_.Restore();
  stopped_ = nullptr;
  for (Asleep& sleeper : asleep_) sleeper.until = {};
  WakeCopies();
  faults_ended_ = clock_.Boot();
  for (const auto& host : hosts_) host->EndFaults();
  for (const auto& program : programs_) program->EndFaults();
}

void LeaseWorld::QuietRound() {
  clock_.Advance(Milliseconds(1) + UpTo(500));
  ExpireSessions();
  // A server that reconnects may freeze the cluster again.
  if (!operator_.IsWhole() && !keeps_frozen_) operator_.Restore();
  net_.Round();
  for (const auto& host : hosts_) {
    host->Start(true);
    host->Round();
  }
  for (const auto& program : programs_) {
    program->Start();
    program->Round();
  }
}

// Requires that every program for which there is a machine id issues ids.
void LeaseWorld::DemandService() {
  const BootMs limit = clock_.Boot() + kServiceWithin + LongestWait();
  const size_t wanted = ProgramsWanted();
  size_t serving = 0;
  while (clock_.Boot() < limit) {
    QuietRound();
    serving = static_cast<size_t>(
        std::ranges::count_if(programs_, [](const auto& program) { return program->Serves(); }));
    if (serving >= wanted) return;
  }
  throw Violation(
      5, std::to_string(serving) + " programs issue ids, and not " + std::to_string(wanted));
}

// Requires that no two servers still hold the same claim or lease.
void LeaseWorld::DemandDetection() {
  while (clock_.Boot() < faults_ended_ + kDetectedWithin) QuietRound();
  std::map<std::string, std::string> holders;  // by claim
  for (const auto& host : hosts_) {
    for (const std::string& claim : host->Claims()) {
      const auto [holder, is_new] = holders.emplace(claim, host->address());
      if (!is_new) throw Violation(6, "two copies of " + holder->second + " hold the " + claim);
    }
  }
}

// Returns the bound up to which the next process of its server extends the program's lease. Nullopt
// if no state folder contains the lease as the registry shows it.
std::optional<WallMs> LeaseWorld::FinalBoundOf(const LeaseProgram& program) const {
  for (const auto& host : hosts_) {
    for (const KeptBound& one : host->KeptLeases()) {
      const auto lease = ParseKeptLease(one.lease);
      const auto slot = tree_.Peek(SlotPath(one.slot));
      if (!lease || lease->id != program.lease() || !slot) continue;
      const SlotRecord record = *ParseSlotRecord(slot->data);
      const bool is_whole = record.nonce == one.claim && record.bound >= one.bound &&
                            slot->stat.version >= one.version;
      if (is_whole) return lease->lowered ? one.bound : record.bound;
    }
  }
  return std::nullopt;
}

// Returns the programs whose leases their servers still know. A server whose time is ahead of the
// program's may have ended the lease and reported that to the program.
std::vector<LeaseProgram*> LeaseWorld::Lessees() const {
  std::vector<LeaseProgram*> lessees;
  for (const auto& program : programs_) {
    const bool is_known = program->running() && std::ranges::any_of(hosts_, [&](const auto& host) {
                            return host->HasLeaseOf(program->name());
                          });
    if (is_known) lessees.push_back(program.get());
  }
  return lessees;
}

// Requires that after a restart in a frozen cluster, every program issues ids up to its lease's
// bound.
void LeaseWorld::DemandExtension() {
  const auto pass = [this](Milliseconds time) {
    for (const BootMs end = clock_.Boot() + time; clock_.Boot() < end;) QuietRound();
  };
  pass(Milliseconds(15'000));
  operator_.Freeze();
  keeps_frozen_ = true;
  // Until servers notice the freeze, a clean stop lowers the bounds that the next process knows.
  const bool cleanly = OneIn(2);
  pass(UpTo(2'000) + (cleanly ? shared_.window / 5 : Milliseconds(0)));
  const std::vector<LeaseProgram*> lessees = Lessees();
  for (const auto& host : hosts_) {
    cleanly ? host->Stop() : host->Kill();
    for (; host->running(); host->Round()) clock_.Advance(Milliseconds(1));
  }
  std::map<LeaseProgram*, WallMs> bounds;
  std::map<LeaseProgram*, std::string> leases;
  for (LeaseProgram* const program : lessees) {
    const auto bound = program->Serves() ? FinalBoundOf(*program) : std::nullopt;
    if (!bound) continue;
    bounds[program] = *bound;
    leases[program] = program->lease();
  }
  pass(Milliseconds(7'000));
  const Milliseconds margin(shared_.layout.tick_ms() + 2'000);
  for (const BootMs end = clock_.Boot() + shared_.window; clock_.Boot() < end; QuietRound()) {
    for (const auto& [program, bound] : bounds) {
      const bool is_replaced = program->lease() != leases.at(program);  // by a late answer
      if (is_replaced || program->id_time() + margin >= bound) continue;
      Require(program->Serves(), 8, "a lease is not extended up to its bound");
      shared_.Count("extensions after a frozen restart");
    }
  }
  keeps_frozen_ = false;
}

// Returns the number of programs that must be served. If no other machine id is free, a server
// takes one of those for leases and keeps it.
size_t LeaseWorld::ProgramsWanted() const {
  const size_t for_leases = operator_.SlotsForLeases();
  size_t leases_max = 0;
  std::set<std::string> addresses;
  for (const auto& host : hosts_) {
    // Requests to several copies reach the first one.
    if (addresses.insert(host->address()).second) leases_max += host->leases_max();
  }
  return std::min({programs_.size(), for_leases - std::min(for_leases, hosts_.size()), leases_max});
}

// Returns the time until all future bounds have passed.
Milliseconds LeaseWorld::LongestWait() const {
  Milliseconds longest{0};
  for (uint32_t worker = 0; worker < slots_; ++worker) {
    const auto node = tree_.Peek(SlotPath({0, worker}));
    if (node.has_value()) {
      longest = std::max(longest, ParseSlotRecord(node->data)->bound - clock_.Wall());
    }
  }
  return std::min(longest, kWaitMax);
}

// --- reports -------------------------------------------------------------------------------------

SimCounts LeaseWorld::Counts() {
  shared_.counts["steps"] = steps_;
  shared_.counts["machine ids passed on"] = oracle_.passed_on();
  return {shared_.counts.begin(), shared_.counts.end()};
}

std::string LeaseWorld::text() const {
  return std::to_string(first_hosts_) + " servers, " + std::to_string(first_programs_) +
         " programs, " + std::to_string(slots_) + " slots, " + std::to_string(lease_share_) +
         " % for leases, window " + std::to_string(shared_.window.count()) + " ms, layout " +
         shared_.layout.text();
}

}  // namespace firn
