#include "tests/sim/segment_host.h"

#include <algorithm>
#include <utility>

#include "server/issue/segment.h"
#include "server/issue/unbuffered.h"
#include "server/store/ledgered_source.h"
#include "server/store/registry_source.h"

namespace firn {
namespace {

constexpr size_t kDeadMax = 4;

// One host's connection to the database.
class SimStore final : public RangeStore {
 public:
  explicit SimStore(SegmentShared& shared) : shared_(shared) {}

  std::string_view name() const override { return "database"; }
  Status Check(const TagDefinition&) override { return {}; }

  Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override {
    if (shared_.database.away) return Unavailable("the database is away");
    int64_t& next = shared_.database.next[tag.name];
    const Range range{std::max(next, at_least), std::max(next, at_least) + size};
    const uint64_t luck = shared_.dice.Below(20);
    if (luck == 0) return Unavailable("the request was lost");
    next = range.end;
    if (luck == 1) return Unknown("the answer was lost");
    return range;
  }

 private:
  SegmentShared& shared_;
};

}  // namespace

struct SegmentHost::Process {
  Process(SegmentShared& shared, const FaultPlan& plan)
      : registry(std::make_unique<FaultyCoordinator>(
            std::make_unique<MemoryCoordinator>(shared.tree), shared.clock, plan)),
        seam(*registry, shared.tree, shared.mutant, [&shared] { return shared.gap; }),
        store(shared),
        ledger(seam, {.stop = [this, &shared](const std::string& tag, const std::string& why) {
                 ++shared.stopped;
                 const auto strategy = strategies.find(tag);
                 if (strategy != strategies.end()) strategy->second->Drop(why);
               }}) {
    const PostToControl control = [this](std::function<void()> task) {
      to_control.push_back(std::move(task));
    };
    sources["registry"] = std::make_unique<RegistrySource>(ledger, control);
    if (shared.mutant == SegmentMutant::kUsedBeforeLedger) {
      sources["database"] = std::make_unique<HastySource>(store, control);
      return;
    }
    sources["database"] = std::make_unique<LedgeredSource>(
        std::make_unique<SimStore>(shared), ledger, control, [this](std::function<void()> task) {
          to_store.push_back(std::move(task));
          return true;
        });
  }

  void RunTasks(std::deque<std::function<void()>>& tasks) {
    for (size_t count = tasks.size(); count > 0; --count) {
      const std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      task();
    }
  }

  std::unique_ptr<FaultyCoordinator> registry;
  LedgerSeam seam;
  SimStore store;
  Ledger ledger;
  std::deque<std::function<void()>> to_control, to_store;
  std::map<std::string, std::unique_ptr<RangeSource>> sources;
  std::map<std::string, std::shared_ptr<RangedStrategy>> strategies;
  std::map<std::string, int64_t> highest;  // ledgers, as a server's report names them
  bool stopping = false;
};

SegmentHost::SegmentHost(SegmentShared& shared, std::vector<TagDefinition> tags)
    : shared_(shared), tags_(std::move(tags)) {}

SegmentHost::~SegmentHost() = default;

void SegmentHost::Start(const FaultPlan& plan) {
  process_ = std::make_unique<Process>(shared_, plan);
  for (const TagDefinition& tag : tags_) {
    RangedParts parts{.source = *process_->sources.at(tag.store),
                      .clock = shared_.clock,
                      .entropy = shared_.dice};
    if (tag.buffer == TagBuffer::kNone) {
      process_->strategies[tag.name] = *Unbuffered::Make(tag, std::move(parts));
    } else {
      process_->strategies[tag.name] = *Segment::Make(tag, std::move(parts));
    }
  }
}

void SegmentHost::Round() {
  for (const auto& dead : dead_) dead->Dispatch(Milliseconds(0));
  if (!up()) return;
  process_->registry->Dispatch(Milliseconds(0));
  process_->RunTasks(process_->to_control);
  process_->ledger.Tick(shared_.clock.Boot());
  for (const auto& [tag, strategy] : process_->strategies) strategy->Tick(shared_.clock.Boot());
  if (shared_.dice.Below(2) == 0) process_->RunTasks(process_->to_store);
}

void SegmentHost::Serve() {
  if (!up() || process_->stopping) return;
  if (calls_.size() < kCallsMax) {
    Call& call = calls_.emplace_back();
    call.tag = tags_[shared_.dice.Below(tags_.size())].name;
    call.beyond = rises(call.tag) ? shared_.oracle.Highest(call.tag) : 0;
    call.demand.missing = 1 + static_cast<int64_t>(shared_.dice.Below(12));
  }
  for (size_t count = calls_.size(); count > 0; --count) {
    Call call = std::move(calls_.front());
    calls_.pop_front();
    int64_t id = 0;
    RangedStrategy& strategy = *process_->strategies.at(call.tag);
    if (strategy.TryOne(Method::kEmbedded, &id)) shared_.oracle.Record(call.tag, id, 0);
    const Verdict verdict = strategy.Issue(call.demand);
    if (verdict == Verdict::kIssued) Issue(call.tag, call.demand, call.beyond);
    const bool gives_up = shared_.dice.Below(50) == 0;
    if (verdict == Verdict::kWait && !gives_up) calls_.push_back(std::move(call));
  }
}

void SegmentHost::Issue(const std::string& tag, const Demand& demand, int64_t beyond) {
  demand.runs.ForEach([&](int64_t id) { shared_.oracle.Record(tag, id, beyond); });
  ++served_[tag];
}

void SegmentHost::Kill() {
  if (!up()) return;
  for (const auto& [tag, strategy] : process_->strategies) {
    shared_.wasted += strategy->status().wasted + strategy->status().supply;
  }
  process_->registry->Orphan();
  std::unique_ptr<FaultyCoordinator> registry = std::move(process_->registry);
  calls_.clear();
  process_.reset();
  dead_.push_back(std::move(registry));
  if (dead_.size() > kDeadMax) dead_.erase(dead_.begin());
}

bool SegmentHost::Stop() {
  if (!up()) return true;
  bool settled = true;
  for (const auto& [tag, strategy] : process_->strategies) {
    strategy->Stop();
    settled &= strategy->settled();
  }
  process_->stopping = true;
  if (settled) Kill();
  return settled;
}

void SegmentHost::Disconnect() {
  if (up()) process_->registry->Disconnect();
}

void SegmentHost::Reconnect() {
  if (up()) process_->registry->Reconnect();
}

void SegmentHost::EndFaults() {
  if (!up()) return;
  process_->registry->SetPlan({});
  process_->registry->Reconnect();
}

// As the node of a server or its /v1/status, both made of what the ledger has told.
std::optional<ProviderReport> SegmentHost::Report() {
  if (!up()) return std::nullopt;
  for (const auto& [tag, high] : process_->ledger.TakeNews()) {
    int64_t& highest = process_->highest[tag];
    highest = std::max(highest, high);
  }
  return ProviderReport{.phase = ProviderPhase::kServing, .high = process_->highest};
}

size_t SegmentHost::TagsServed() { return std::exchange(served_, {}).size(); }

}  // namespace firn
