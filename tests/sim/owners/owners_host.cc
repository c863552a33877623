#include "tests/sim/owners/owners_host.h"

#include <algorithm>
#include <utility>

namespace firn {
std::string NumbersPath(size_t partition) { return "/numbers-" + std::to_string(partition); }

OwnersProcess::OwnersProcess(OwnersShared& shared, const Clock& clock, std::string address,
                             Milliseconds window, uint64_t seed,
                             std::unique_ptr<FaultyCoordinator> link, bool watches)
    : shared_(shared),
      clock_(&clock),
      number_(++shared.processes),
      link_(std::move(link)),
      mirror_(link_.get()),
      seam_(mirror_, shared.tree, clock, shared.mutant, watches),
      entropy_(seed),
      owners_(seam_, entropy_, {.address = std::move(address), .window = window},
              [this](size_t partition) { OnEnded(partition); }) {
  mirror_.OnSession([](SessionEvent) {});
  owners_.Want();
  owners_.Permit(true);
}

void OwnersProcess::Tick() {
  owners_.Tick(clock_->Boot());
  for (size_t i = 0; i < kPartitions; ++i) {
    Memory& memory = memory_[i];
    if (memory.unload_at && clock_->Boot() < *memory.unload_at) continue;
    if (memory.unload_at) memory.range = {};
    memory.unload_at.reset();
    memory.shown_term = owners_.term(i).Load();
  }
}

void OwnersProcess::OnEnded(size_t partition) {
  Memory& memory = memory_[partition];
  if (shared_.mutant == OwnersMutant::kUnloadsLate) {
    memory.unload_at = clock_->Boot() + Milliseconds(200);
  } else {
    memory.range = {};
    memory.shown_term = 0;
  }
}

bool OwnersProcess::Holds(size_t partition, uint64_t term) const {
  const OwnedTerm& owned = owners_.term(partition);
  const BootMs now = clock_->Boot();
  switch (shared_.mutant) {
    case OwnersMutant::kUnloadsLate:
      return term != 0 && term == memory_[partition].shown_term && now < owned.until();
    case OwnersMutant::kUntilFromAnswer:
      return term != 0 && term == owned.Load() && now < owned.until() + seam_.latency();
    default:
      return owned.Holds(term, now);
  }
}

bool OwnersProcess::MayTake(size_t partition) const {
  return Holds(partition, memory_[partition].shown_term);
}

// --- ranges --------------------------------------------------------------------------------------

void OwnersProcess::Fetch() {
  for (size_t i = 0; i < shared_.partitions; ++i) {
    Memory& memory = memory_[i];
    if (memory.arrives_at && shared_.clock.Boot() >= *memory.arrives_at) {
      const bool careless = shared_.mutant == OwnersMutant::kEarlierRangeUsed;
      const bool same = memory.arriving_term == owners_.term(i).Load();
      if (same || careless) memory.range = memory.arriving;
      memory.arrives_at.reset();
      memory.fetching = false;
    }
    if (!memory.fetching && memory.range.begin == memory.range.end) FetchOne(i);
  }
}

// A range may be used only in the term in which it was requested. The answer of a slow store may
// arrive in a later term.
void OwnersProcess::FetchOne(size_t partition) {
  const uint64_t term = owners_.term(partition).Load();
  if (term == 0) return;
  memory_[partition].fetching = true;
  const BootMs requested = shared_.clock.Boot();
  const auto done = guard_.Bind([=, this](const Result<Node>& node) {
    if (!node.ok()) {
      memory_[partition].fetching = false;
      return;
    }
    const int64_t high = std::stoll(node->data);
    link_->Multi(
        {Write::Set(NumbersPath(partition), std::to_string(high + kStep), node->stat.version)},
        guard_.Bind([=, this](const WriteOutcome& outcome) {
          Memory& memory = memory_[partition];
          memory.fetching = outcome.status.ok();
          if (!memory.fetching) return;
          const bool slow = shared_.OneIn(8);
          memory.arrives_at =
              shared_.clock.Boot() + Milliseconds(slow ? shared_.dice.Below(8'000) : 0);
          memory.arriving = {high, high + kStep, requested};
          memory.arriving_term = term;
        }));
  });
  link_->Read(NumbersPath(partition), done);
}

// --- calls ---------------------------------------------------------------------------------------

void OwnersProcess::Call() {
  if (threads_.size() < kThreadsMax && shared_.OneIn(3)) {
    threads_.push_back({.partition = shared_.dice.Below(shared_.partitions)});
  }
  if (threads_.empty()) return;
  const size_t which = shared_.dice.Below(threads_.size());
  Thread& thread = threads_[which];
  if (shared_.clock.Boot() < thread.asleep_until) return;
  if (shared_.OneIn(thread.phase == Thread::Phase::kTaken ? 12 : 40)) {
    thread.asleep_until = shared_.clock.Boot() + Milliseconds(shared_.dice.Below(10'000));
    return;
  }
  if (!DoNext(thread)) threads_.erase(threads_.begin() + static_cast<std::ptrdiff_t>(which));
}

// Runs the next step of a call. Returns false if the call has ended.
bool OwnersProcess::DoNext(Thread& thread) {
  using Phase = Thread::Phase;
  const uint64_t term = memory_[thread.partition].shown_term;
  switch (thread.phase) {
    case Phase::kBegun:
      thread.term = term;
      if (term == 0) return false;
      if (shared_.mutant == OwnersMutant::kComparesBefore && !Holds(thread.partition, term)) {
        return false;
      }
      thread.phase = Phase::kLoaded;
      return true;
    case Phase::kLoaded:
      thread.phase = Phase::kTaken;
      return TakeNumber(thread);
    case Phase::kTaken:
      break;
  }
  if (shared_.mutant == OwnersMutant::kLoadsAfter) thread.term = term;
  if (shared_.mutant != OwnersMutant::kComparesBefore && !Holds(thread.partition, thread.term)) {
    return false;
  }
  shared_.oracle.Answer(thread.partition, thread.number, thread.beyond,
                        shared_.of_copies(number_, thread.requested),
                        shared_.beside_rollback(thread.requested));
  return false;
}

bool OwnersProcess::TakeNumber(Thread& thread) {
  Range& range = memory_[thread.partition].range;
  if (range.begin == range.end) return false;
  thread.number = range.begin++;
  thread.requested = range.requested;
  thread.beyond = shared_.beside_copies(range.requested)
                      ? shared_.oracle.HighestOfOthers(thread.partition)
                      : shared_.oracle.Highest(thread.partition);
  return true;
}

void OwnersProcess::GoOn(const OwnersProcess& first, const Clock& clock,
                         std::unique_ptr<FaultyCoordinator> link) {
  clock_ = &clock;
  link_ = std::move(link);
  mirror_.GoOn(*link_);
  entropy_ = SeededEntropy(shared_.dice.Next());
  for (size_t i = 0; i < kPartitions; ++i) {
    memory_[i].range = first.memory_[i].range;
    memory_[i].shown_term = first.memory_[i].shown_term;
  }
  threads_ = first.threads_;
}

// --- the machine ---------------------------------------------------------------------------------

OwnersHost::OwnersHost(OwnersShared& shared, std::string address, int64_t parts_per_million,
                       Milliseconds window)
    : shared_(shared),
      address_(std::move(address)),
      clock_(shared.clock, parts_per_million),
      window_(window) {}

OwnersHost::~OwnersHost() = default;

std::unique_ptr<FaultyCoordinator> OwnersHost::NewLink(const FaultPlan& plan) {
  return std::make_unique<FaultyCoordinator>(std::make_unique<MemoryCoordinator>(shared_.tree),
                                             shared_.clock, plan);
}

void OwnersHost::Start(const FaultPlan& plan, bool copied) {
  paused_ = false;
  permitted_ = true;
  const uint64_t seed = shared_.dice.Next();
  process_ = std::make_unique<OwnersProcess>(shared_, clock_, address_, window_, seed,
                                             NewLink(plan), !copied);
  if (!copied) return;
  follower_ =
      std::make_unique<OwnersProcess>(shared_, clock_, address_, window_, seed, nullptr, false);
  process_->mirror().Lead(follower_->mirror());
}

void OwnersHost::Kill() {
  if (!process_) return;
  std::unique_ptr<FaultyCoordinator> link = process_->TakeLink();
  follower_.reset();
  process_.reset();
  static_cast<MemoryCoordinator&>(link->inner()).Abandon();
  link->Orphan();
  dead_.push_back(std::move(link));
  if (dead_.size() > 4) dead_.erase(dead_.begin());
}

template <typename Function>
void OwnersHost::ForBoth(Function function) {
  function(*process_);
  if (follower_) function(*follower_);
}

void OwnersHost::HandOver() {
  if (!process_) return;
  ForBoth([](OwnersProcess& process) { process.owners().HandOver(); });
}

void OwnersHost::Permit(bool permitted) {
  permitted_ = permitted;
  if (!process_) return;
  ForBoth([&](OwnersProcess& process) { process.owners().Permit(permitted); });
}

void OwnersHost::Round() {
  RoundOfTheDead();
  if (!process_ || paused_) return;
  process_->link()->Dispatch(Milliseconds(0));
  ForBoth([](OwnersProcess& process) { process.Tick(); });
  process_->Fetch();
  for (int i = 0; i < 8; ++i) process_->Call();
  if (process_->owners().handed_over()) Kill();
}

void OwnersHost::RoundOfTheDead() {
  for (const auto& link : dead_) link->Dispatch(Milliseconds(0));
}

void OwnersHost::Copy(OwnersHost& other, const FaultPlan& plan, int64_t parts_per_million) {
  process_->mirror().Part();
  other.address_ = address_;
  other.clock_ = clock_;
  other.clock_.SetRate(parts_per_million);
  other.window_ = window_;
  other.paused_ = false;
  other.permitted_ = permitted_;
  other.process_ = std::move(follower_);
  other.process_->GoOn(*process_, other.clock_, NewLink(plan));
}

std::string OwnersHost::Why(size_t partition) const {
  const Holding holding = process_->owners().At(partition);
  std::string why = "process " + std::to_string(process_->number()) + " on " + address_;
  if (holding.kind == Holding::Kind::kHere) why += " owns it";
  why += " at version " + std::to_string(holding.version) + " until " +
         std::to_string((holding.until - clock_.Boot()).count()) + " ms from now";
  return why + (paused_ ? ", paused" : "") + " " + process_->owners().trouble();
}

void OwnersHost::LoseRequests() {
  for (const auto& link : dead_) link->ForgetLate();
  if (!process_) return;
  FaultyCoordinator& link = *process_->link();
  link.ForgetLate();
  if (!link.connected()) return;
  link.Disconnect();
  link.Reconnect();
}

void OwnersHost::SetPlan(const FaultPlan& plan) {
  if (process_) process_->link()->SetPlan(plan);
}

}  // namespace firn
