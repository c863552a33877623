#include "tests/sim/leases/lease_program.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/hex.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

constexpr Milliseconds kLeaveWithin{5'000};
constexpr int64_t kUnreportedMs = 20'000;
constexpr int64_t kTokensAlikeMs = 20'000;

}  // namespace

// A process with its own view of the machine's clocks.
class LeaseProgram::Process final {
 public:
  Process(LeaseProgram& program, uint64_t seed, std::string its_name, Milliseconds ahead,
          bool sends)
      : name(std::move(its_name)),
        clock(program.clock_),
        entropy(seed),
        ids(clock, entropy, /*use_cycles=*/false),
        transport(std::make_shared<Transport>(*this)),
        owner(&program),
        is_second(!sends),
        lessee({.name = name,
                .ahead = ahead,
                .on_lost = [this](const LeaseLoss& loss) { NoteLoss(loss); }},
               ids, entropy, transport, mailbox) {}

  // Sends the process's requests, and records the leases that it releases.
  class Transport final : public LeaseTransport {
   public:
    explicit Transport(Process& process) : process_(process) {}

    void Send(uint64_t number, const LeaseRequest& ask, std::shared_ptr<LeaseOutcomes>) override;

   private:
    Process& process_;
  };

  struct Held {
    LeaseOracle::Holder holder;
    MachineId machine;
    Tick from;
    std::string group;  // name of the claim's group in the oracle
    bool given_back = false;
  };

  void NoteLoss(const LeaseLoss& loss) {
    if (is_second) return;
    const bool gone = loss.kind == LeaseLoss::Kind::kGone;
    owner->shared_.Count(gone ? "lost leases" : "expired leases");
    owner->Trace("has lost its lease: " + loss.why);
  }

  std::string name;
  HostClock clock;
  SeededEntropy entropy;
  LeasedIds ids;
  const std::shared_ptr<LeaseMailbox> mailbox = std::make_shared<LeaseMailbox>();
  const std::shared_ptr<Transport> transport;
  LeaseProgram* owner;
  bool is_second;  // mirrors another process
  Lessee lessee;
  std::map<std::string, Held> leases{};  // all leases that it has had, by id
  std::string current{};                 // id of the newest lease
  Tick until{0};                         // of the newest lease
  Tick highest{0};                       // of its ids
  uint64_t last_number = 0;              // of its requests
  uint64_t shared_number = 0;            // its copy has sent the same requests up to this one
  std::optional<BootMs> ends_at{};
};

// --- requests ------------------------------------------------------------------------------------

void LeaseProgram::Process::Transport::Send(uint64_t number, const LeaseRequest& ask,
                                            std::shared_ptr<LeaseOutcomes>) {
  process_.last_number = std::max(process_.last_number, number);
  if (process_.is_second) return;
  LeaseRequest sent = ask;
  const LeaseShared& shared = process_.owner->shared_;
  if (ask.kind == LeaseRequest::Kind::kRelease) {
    process_.owner->NoteRelease(ask);
    if (shared.mutant == LeaseMutant::kEndedWhileOpen) {
      sent.used = *sent.used - kUnreportedMs / shared.layout.tick_ms();
    }
  } else if (shared.mutant == LeaseMutant::kTokensAlike) {
    const auto drawn = static_cast<uint64_t>(shared.clock.Boot().ms() / kTokensAlikeMs);
    sent.token = ToHex(uint64_t{0}) + ToHex(drawn);
  }
  process_.owner->net_.Send(process_.mailbox, number, std::move(sent));
}

// Records a release. The lease's ids are closed already, so the program uses no later tick.
void LeaseProgram::NoteRelease(const LeaseRequest& ask) {
  const auto lease = process_->leases.find(ask.lease);
  if (lease == process_->leases.end() || std::exchange(lease->second.given_back, true)) return;
  shared_.oracle.Shrink(lease->second.holder, *ask.used + 1);
  // The copy of the program still uses the shared ticks, which the server cannot know.
  if (process_->shared_number > 0) shared_.oracle.ExcuseShared(lease->second.group, *ask.used + 1);
}

// --- its life ------------------------------------------------------------------------------------

LeaseProgram::LeaseProgram(LeaseShared& shared, LeaseNet& net, int index)
    : shared_(shared), net_(net), name_("p" + std::to_string(index)), clock_(shared.clock) {}

LeaseProgram::~LeaseProgram() = default;

void LeaseProgram::Start() {
  if (running()) return;
  const Milliseconds least = Milliseconds(2 * shared_.layout.tick_ms() + 1'000);
  const Milliseconds most = shared_.window - least;
  const Milliseconds ahead = shared_.OneIn(2) ? shared_.window : least + shared_.UpTo(most.count());
  const std::string name = name_ + "." + std::to_string(++shared_.named);
  const uint64_t seed = shared_.dice.Next();
  process_ = std::make_unique<Process>(*this, seed, name, ahead, true);
  if (shared_.copies) second_ = std::make_unique<Process>(*this, seed, name, ahead, false);
  paused_until = {};
  Trace("starts");
}

void LeaseProgram::Kill() {
  if (!running()) return;
  Trace("dies");
  process_.reset();
  second_.reset();
}

void LeaseProgram::Leave() {
  if (!running() || process_->ends_at.has_value()) return;
  Trace("leaves");
  second_.reset();
  process_->clock = clock_;
  process_->ends_at = shared_.clock.Boot() + kLeaveWithin;
  process_->lessee.Stop(clock_.Read());
}

// Returns a copy of the machine. Both continue from the same state, with different random numbers.
std::unique_ptr<LeaseProgram> LeaseProgram::Copy(int index) {
  if (!running() || second_ == nullptr || process_->current.empty()) return nullptr;
  auto copy = std::make_unique<LeaseProgram>(shared_, net_, index);
  copy->clock_ = clock_;
  copy->process_ = std::move(second_);
  Process& one = *process_;
  Process& two = *copy->process_;
  if (two.last_number != one.last_number) Die("a copy that differs");
  Trace("is copied");
  two.owner = copy.get();
  two.name = one.name + "-copy";
  two.is_second = false;
  two.entropy = SeededEntropy(shared_.dice.Next());
  one.shared_number = two.shared_number = one.last_number;
  two.current = one.current;
  two.until = one.until;
  two.highest = one.highest;
  // If the lease was lost or released, neither copy uses it.
  if (!one.ids.interval().has_value()) return copy;
  const Process::Held& held = one.leases.at(one.current);
  shared_.oracle.Share(held.group, one.until);
  const LeaseOracle::Holder holder =
      shared_.oracle.Begin(held.machine, two.name, held.group, std::max(held.from, one.highest));
  two.leases.emplace(one.current, Process::Held{holder, held.machine, held.from, held.group});
  shared_.oracle.Extend(holder, one.until);
  return copy;
}

void LeaseProgram::Round() {
  if (std::exchange(leaves_next, false)) Leave();
  if (!running()) return;
  process_->clock = clock_;
  if (second_ != nullptr) second_->clock = clock_;
  const auto interval = process_->ids.interval();
  if (interval && clock_.Wall() >= interval->until) shared_.Count("rounds after the end");
  TakeSome();
  for (const auto& [number, outcome] : process_->mailbox->Take()) Hear(number, outcome);
  TakeSome();
  const Now now = clock_.Read();
  process_->lessee.Tick(now);
  if (second_ != nullptr) second_->lessee.Tick(now);
  if (!process_->ends_at.has_value()) return;
  if (process_->lessee.stopped() || shared_.clock.Boot() >= *process_->ends_at) process_.reset();
}

void LeaseProgram::Hear(uint64_t number, const LeaseOutcome& outcome) {
  const Now now = clock_.Read();
  const auto before = process_->ids.interval();
  process_->lessee.OnReply(number, outcome, now);
  if (second_ != nullptr) second_->lessee.OnReply(number, outcome, now);
  const auto after = process_->ids.interval();
  const bool same = before && after && before->machine == after->machine &&
                    before->from == after->from && before->until == after->until;
  if (outcome.kind != LeaseOutcome::Kind::kTerms || !after || same) return;
  // If the program's ids are already beyond the interval, the adopted interval is empty.
  Adopt(number, outcome.terms, std::min(shared_.layout.TickAt(after->until), outcome.terms.until));
}

// Records that the process has adopted the terms and may use ticks below `until`.
void LeaseProgram::Adopt(uint64_t number, const LeaseGrant& terms, Tick until) {
  const bool renewed = process_->current == terms.lease;
  process_->until = renewed ? std::max(process_->until, until) : until;
  process_->current = terms.lease;
  auto lease = process_->leases.find(terms.lease);
  if (lease == process_->leases.end()) {
    const std::string holder = process_->name + " under lease " + terms.lease.substr(0, 8);
    const auto claim = shared_.twins.ClaimFrom(terms.machine, terms.from);
    const std::string group = claim ? claim->text() : terms.lease;
    const Process::Held held{shared_.oracle.Begin(terms.machine, holder, group, terms.from),
                             terms.machine, terms.from, group};
    lease = process_->leases.emplace(terms.lease, held).first;
  }
  if (shared_.trace) {
    Trace("may use machine id " + std::to_string(terms.machine.value()) + " from " +
          std::to_string(terms.from.count()) + " to " + std::to_string(until.count()));
  }
  // the answer to a request that both copies have sent
  if (number <= process_->shared_number) shared_.oracle.Share(lease->second.group, until);
  shared_.oracle.Extend(lease->second.holder, until);
}

// --- ids -----------------------------------------------------------------------------------------

void LeaseProgram::TakeSome() {
  for (uint64_t left = shared_.dice.Below(3); left > 0 && TakeOne(); --left) {
  }
}

bool LeaseProgram::TakeOne() {
  std::chrono::microseconds wait{0};
  const Result<int64_t> id = process_->ids.TryNext(&wait);
  if (second_ != nullptr) static_cast<void>(second_->ids.TryNext(&wait));
  if (!id.ok()) return false;
  const auto bits = static_cast<uint64_t>(*id);
  const Tick tick(static_cast<int64_t>(shared_.layout.time().In(bits)));
  const Process::Held& held = process_->leases.at(process_->current);
  Require(shared_.layout.machine().In(bits) == held.machine.value(), 2,
          "an id has another machine id than the lease");
  Require(tick >= process_->highest, 3, "a program's ids did not rise");
  process_->highest = tick;
  shared_.oracle.Extend(held.holder, tick + 1);
  shared_.Count("ids");
  return true;
}

const std::string& LeaseProgram::name() const { return process_->name; }

const std::string& LeaseProgram::lease() const { return process_->current; }

WallMs LeaseProgram::id_time() const { return process_->ids.Advance(); }

void LeaseProgram::EndFaults() {
  clock_.SetRight();
  paused_until = {};
  Start();
}

void LeaseProgram::Trace(const std::string& what) const {
  if (shared_.trace && running()) shared_.Trace(process_->name + " " + what);
}

}  // namespace firn
