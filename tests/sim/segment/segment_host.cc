#include "tests/sim/segment/segment_host.h"

#include <algorithm>
#include <utility>

#include "server/issue/catalogue.h"
#include "server/issue/rejection_handler.h"
#include "server/node/kept_tags.h"
#include "server/node/segment_tags.h"
#include "server/node/tag_follower.h"
#include "server/store/ledgered_source.h"
#include "tests/sim/segment/edit_judge.h"
#include "tests/sim/segment/segment_operator.h"
#include "tests/sim/segment/sim_store.h"
#include "tests/sim/segment/sim_strategies.h"

namespace firn {
namespace {

constexpr size_t kDeadMax = 4;

using Tasks = std::deque<std::function<void()>>;

void RunTasks(Tasks& tasks) {
  for (size_t count = tasks.size(); count > 0; --count) {
    const std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    task();
  }
}

// The registry for a host's requests. Between a loss of its data and the freeze, it refuses changes
// of ledgers, even by earlier requests, because there is no guarantee for ranges taken in this
// time.
class HostRegistry final : public ForwardingCoordinator {
 public:
  explicit HostRegistry(const SegmentShared& shared)
      : ForwardingCoordinator(memory_), shared_(shared), memory_(shared.tree) {}

  void Multi(std::vector<Write> writes, WriteDone done) override {
    if (shared_.gap && TagSet(writes) != nullptr) writes.clear();  // an empty multi is refused
    memory_.Multi(std::move(writes), std::move(done));
  }

 private:
  const SegmentShared& shared_;
  MemoryCoordinator memory_;
};

class Deaf final : public RejectionHandler {
  void OnRefusal(const Request&, const Refusal&) override {}
};

}  // namespace

// The files of a state folder, read and written by a thread; a kill may prevent a write.
class SegmentHost::Disk final : public TagMemory {
 public:
  void Read(const std::string& uuid, Loaded done) override {
    writes.push_back([this, uuid, done = std::move(done)] {
      const auto text = files_.find(uuid);
      const Result<KnownTags> kept =
          text == files_.end() ? NotFound("nothing kept") : ParseKnownTags(uuid, text->second);
      answers.push_back([done, kept] { done(kept); });
    });
  }
  void Keep(const std::string& uuid, const KnownTags& tags, Kept done) override {
    writes.push_back([this, uuid, text = FormatKnownTags(uuid, tags), done = std::move(done)] {
      files_[uuid] = text;
      answers.push_back([done] { done(Status()); });
    });
  }
  void Lose() {
    writes.clear();
    answers.clear();
  }

  Tasks writes, answers;  // pending reads and writes, and answers to be delivered

 private:
  std::map<std::string, std::string> files_;
};

struct SegmentHost::Process {
  Process(SegmentShared& shared, const std::string& address, Disk& disk, const FaultPlan& plan)
      : registry(std::make_unique<FaultyCoordinator>(std::make_unique<HostRegistry>(shared),
                                                     shared.clock, plan)),
        seam(*registry, shared.tree, shared.mutant),
        store(shared),
        issuer(rejections),
        edits(shared.mutant),
        clock(WallOf(shared), shared.clock,
              shared.mutant == SegmentMutant::kClockSleeps ? shared.slept : kAwake),
        round_clock(clock),
        owners(seam, shared.dice, clock, shared.peers.Setup(address)),
        segments(seam, Control(),
                 shared.mutant == SegmentMutant::kTermByOldClock
                     ? static_cast<const Clock&>(round_clock)
                     : clock,
                 shared.dice),
        follower(seam, shared.dice, catalogue, issuer, std::string(kSimUuid), &disk) {
    follower.OnSeen([this](const std::string& tag, const std::optional<TagNode>& node) {
      segments.Saw(tag, node);
    });
    segments.OnRedefined([this](const std::string& tag) {
      edits.Forget(tag);
      follower.Redefined(tag);
    });
    follower.OnDeleted([this](const std::string& tag) { edits.Forget(tag); });
    segments.SetOwners(owners);
    shared.peers.Add(address, [this, mutant = shared.mutant](PeerTake take) {
      const auto form = forms.find(take.tag);
      if (mutant == SegmentMutant::kFormUnheeded && form != forms.end()) take.form = form->second;
      return owners.TakeFor(take);
    });
    FillCatalogue(shared);
    AddDatabase(shared);
    Mutate(shared);
  }

  static const Clock& WallOf(const SegmentShared& shared) {
    const bool lies = shared.mutant == SegmentMutant::kNeverContradicts;
    return lies ? static_cast<const Clock&>(shared.registry_clock) : shared.clock;
  }

  PostToControl Control() {
    return [this](std::function<void()> task) { to_control.push_back(std::move(task)); };
  }

  void FillCatalogue(SegmentShared& shared) {
    snowflake = std::make_shared<SimSnowflake>(shared);
    const auto made = [](Status status) { Require(status.ok(), "a name in the catalogue twice"); };
    made(catalogue.AddStrategy("snowflake", [this](const TagDefinition&) {
      return Result<std::shared_ptr<Strategy>>(snowflake);
    }));
    for (const char* name : {"segment", "dated"}) {
      made(catalogue.AddStrategy(name, [this, mutant = shared.mutant](const TagDefinition& tag) {
        TagDefinition told = tag;
        if (mutant == SegmentMutant::kStartUnheeded) told.start.reset();
        Result<std::shared_ptr<Strategy>> strategy = segments.Make(told);
        if (strategy.ok()) {
          starts[tag.name] = tag.start.value_or(1);
          forms[tag.name] = FormOf(tag);
        }
        return edits.Note(tag, std::move(strategy), *follower.refused());
      }));
    }
    made(catalogue.AddPlugin("obfuscate", [](const TagDefinition&) {
      return Result<std::shared_ptr<Plugin>>(std::make_shared<SimObfuscate>());
    }));
  }

  void AddDatabase(SegmentShared& shared) {
    std::unique_ptr<RangeSource> source;
    if (shared.mutant == SegmentMutant::kUsedBeforeLedger) {
      source = std::make_unique<HastySource>(store, Control());
    } else {
      source = std::make_unique<LedgeredSource>(std::make_unique<SimStore>(shared),
                                                segments.ledger(), Control(), shared.clock,
                                                [this](std::function<void()> task) {
                                                  to_store.push_back(std::move(task));
                                                  return true;
                                                });
    }
    Require(segments.AddSource("database", std::move(source)).ok(), "two databases");
    auto keeping = std::make_unique<KeepingSource>(segments.ledger(), Control(), shared.mutant);
    Require(segments.AddSource("keeping", std::move(keeping)).ok(), "two such sources");
  }

  // Errors in how the parts are connected.
  void Mutate(SegmentShared& shared) {
    const SegmentMutant mutant = shared.mutant;
    if (mutant == SegmentMutant::kAheadOfPeriod) {
      segments.SetDatedSource(std::make_unique<EarlySource>(
          segments.ledger(), segments.registry_time(), clock, Control()));
    }
    if (mutant == SegmentMutant::kUnknownBeforeRead) issuer.SetDefault(std::nullopt);
    const bool seeks =
        mutant != SegmentMutant::kUnknownBeforeRead && mutant != SegmentMutant::kUnknownAtOnce;
    if (seeks) issuer.SetSeeker(follower.seeker());
    if (mutant == SegmentMutant::kDefaultBeforeRead) {
      Require(issuer.Set({"default", snowflake, {}}).ok(), "no default");
    }
  }

  std::unique_ptr<FaultyCoordinator> registry;
  LedgerSeam seam;
  SimStore store;
  Tasks to_control, to_store;
  Deaf rejections;
  Catalogue catalogue;
  Issuer issuer;
  std::shared_ptr<Strategy> snowflake;
  EditJudge edits;
  std::map<std::string, int64_t> starts;     // by tag, of the definition that is served
  std::map<std::string, std::string> forms;  // the same
  static constexpr Milliseconds kAwake{0};
  ProcessClock clock;
  RoundClock round_clock;
  TagOwners owners;
  SegmentTags segments;
  TagFollower follower;
  bool stopping = false, drains = false;
};

SegmentHost::SegmentHost(SegmentShared& shared, std::string address)
    : shared_(shared), address_(std::move(address)), disk_(std::make_unique<Disk>()) {}

SegmentHost::~SegmentHost() = default;

void SegmentHost::Start(const FaultPlan& plan) {
  process_ = std::make_unique<Process>(shared_, address_, *disk_, plan);
}

void SegmentHost::Pause(Milliseconds time) {
  if (!up()) return;
  paused_until_ = shared_.clock.Boot() + time;
  was_paused_ = true;
  shared_.peers.Pause(address_, true);
}

bool SegmentHost::Continues() {
  if (!was_paused_ || paused()) return false;
  was_paused_ = false;
  shared_.peers.Pause(address_, false);
  return true;
}

void SegmentHost::Round() {
  for (const auto& dead : dead_) dead->Dispatch(Milliseconds(0));
  if (!up()) return;
  process_->registry->Dispatch(Milliseconds(0));
  RunTasks(disk_->answers);
  RunTasks(process_->to_control);
  process_->round_clock.BeginRound();
  process_->owners.Tick(process_->clock.Boot());
  process_->segments.Tick(process_->clock.Boot());
  process_->follower.Tick(shared_.clock.Boot());
  if (process_->follower.whole() && !process_->owners.Starts()) process_->owners.EndStart();
  process_->follower.RaiseHighest(process_->segments.ledger().TakeNews());
  if (shared_.dice.Below(2) == 0) RunTasks(process_->to_store);
  if (shared_.dice.Below(2) == 0) RunTasks(disk_->writes);
}

std::unique_ptr<SegmentHost::Call> SegmentHost::NewCall() {
  auto call = std::make_unique<Call>();
  call->tag = shared_.names[shared_.dice.Below(shared_.names.size())];
  call->beyond = BeyondWhat(call->tag);
  call->defined = IsThere(call->tag);
  call->losses = shared_.losses;
  call->deletions = shared_.deletions;
  call->edits = process_->edits.edits();
  const Tag* const tag = process_->issuer.Resolve(call->tag);
  const Request request{.tag = call->tag,
                        .count = 1 + static_cast<int64_t>(shared_.dice.Below(12))};
  tag != nullptr ? call->issue.Begin(*tag, request) : call->issue.Begin(request);
  return call;
}

void SegmentHost::Serve() {
  if (!up() || process_->stopping) return;
  if (calls_.size() < kCallsMax) calls_.push_back(NewCall());
  for (size_t count = calls_.size(); count > 0; --count) {
    std::unique_ptr<Call> call = std::move(calls_.front());
    calls_.pop_front();
    const Tag* const tag = process_->issuer.Resolve(call->tag);
    int64_t id = 0;
    const int64_t beyond = BeyondWhat(call->tag);
    if (tag != nullptr && process_->issuer.TryOne(*tag, Method::kEmbedded, &id)) {
      process_->edits.JudgeIssue(call->tag, process_->edits.edits());
      Record(call->tag, id, beyond);
      shared_.periods.Record(call->tag, id);
    }
    const Verdict verdict = process_->issuer.Issue(call->issue);
    Answer(*call, verdict);
    if (verdict != Verdict::kWait) continue;
    call->waited |= !call->issue.runs().empty();
    if (shared_.dice.Below(50) == 0) {
      process_->issuer.GiveUp(call->issue);
    } else {
      calls_.push_back(std::move(call));
    }
  }
}

bool SegmentHost::IsThere(const std::string& tag) const {
  const std::optional<Node> node = shared_.tree.Peek(TagPath(tag));
  return node && !ReadTagNode(tag, node->data).value_or({}).deleted;
}

void SegmentHost::Answer(const Call& call, Verdict verdict) {
  if (verdict == Verdict::kRefused) {
    process_->edits.JudgeRefusal(call.tag, call.issue.refusal());
    const bool unknown = call.issue.refusal().reason == Reason::kUnknownTag;
    // Whether the tag was defined during the whole call. It may have been deleted and restored in
    // the meantime.
    const bool defined = call.defined && call.losses == shared_.losses &&
                         call.deletions == shared_.deletions && IsThere(call.tag);
    Require(!unknown || !defined, "a tag that is defined was called unknown");
    if (defined) refused_[call.tag] = call.issue.refusal().message;
  }
  if (verdict != Verdict::kIssued) return;
  process_->edits.JudgeIssue(call.tag, call.edits);
  Require(shared_.oracle.IsDefined(call.tag), "a tag that was never defined was served");
  call.issue.runs().ForEach([&](int64_t id) { Record(call.tag, id, call.beyond); });
  // Numbers that a waiting batch got before midnight count as issued before midnight.
  if (!call.waited) {
    call.issue.runs().ForEach([&](int64_t id) { shared_.periods.Record(call.tag, id); });
  }
  std::string text;
  call.issue.AppendText(0, shared_.clock.Wall(), text);
  shared_.oracle.RecordText(call.tag, text);
  ++served_[call.tag];
  refused_.erase(call.tag);
}

// Checks and records an issued number. A process that has read a raised start issues no number
// below it, even from memory. (The obfuscation here swaps each odd number with the next one.)
void SegmentHost::Record(const std::string& tag, int64_t id, int64_t beyond) {
  const auto start = process_->starts.find(tag);
  if (start != process_->starts.end() && id + 1 < start->second) {
    throw SegmentViolation("number " + std::to_string(id) + " of tag " + tag +
                           " lies below its start");
  }
  const int64_t from = shared_.undefined_from.value_or(NumberOracle::kClockIds);
  if (id >= from && id < NumberOracle::kClockIds) {
    throw SegmentViolation("number " + std::to_string(id) + " of tag " + tag +
                           " lies among the ids of undefined tags");
  }
  shared_.oracle.Record(tag, id, beyond);
}

void SegmentHost::Kill() {
  if (!up()) return;
  for (const auto& [tag, status] : process_->segments.status()) {
    shared_.wasted += status.wasted + status.supply;
  }
  shared_.takeovers += static_cast<int64_t>(process_->owners.report().taken_over);
  shared_.peers.Remove(address_);
  paused_until_ = {};
  was_paused_ = false;
  process_->registry->Orphan();
  std::unique_ptr<FaultyCoordinator> registry = std::move(process_->registry);
  calls_.clear();
  disk_->Lose();
  process_.reset();
  dead_.push_back(std::move(registry));
  if (dead_.size() > kDeadMax) dead_.erase(dead_.begin());
}

void SegmentHost::HandOver() {
  if (!up() || paused()) return;
  process_->owners.HandOver();
  process_->drains = true;
}

bool SegmentHost::Stop() {
  if (!up()) return true;
  process_->owners.HandOver(/*waits=*/false);
  process_->segments.Stop();
  process_->stopping = true;
  const bool settled = process_->segments.settled() && process_->owners.handed_over();
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
  if (up() && process_->drains) Kill();
  if (!up()) Start({});
  paused_until_ = {};
  Continues();
  process_->registry->SetPlan({});
  process_->registry->Reconnect();
}

// Returns a report as in a server's node or in /v1/status. Both contain the ledgers that the
// process has reported.
std::optional<ProviderReport> SegmentHost::Report() {
  if (!up()) return std::nullopt;
  process_->follower.RaiseHighest(process_->segments.ledger().TakeNews());
  return ProviderReport{.phase = ServerPhase::kReady, .high = *process_->follower.highest()};
}

size_t SegmentHost::TagsServed() { return std::exchange(served_, {}).size(); }

std::string SegmentHost::Refusals() const {
  std::string text;
  for (const auto& [tag, why] : refused_) text += "; " + tag + ": " + why;
  return text;
}

}  // namespace firn
