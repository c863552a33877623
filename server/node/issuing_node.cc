#include "server/node/issuing_node.h"

#include <chrono>
#include <optional>
#include <utility>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/log/log.h"
#include "registry/claim/claim_keeper.h"

namespace firn {
namespace {

constexpr Milliseconds kPoll{5};

// Maximum difference at which the audit considers a clock right.
constexpr Milliseconds kWallIsRight{1'000};

// `who` identifies one of several machine ids; empty if there is only one.
void LogEvent(const std::string& who, const ClaimEvent& event) {
  const std::string name = Cat("claim_", ClaimEventName(event.kind));
  if (event.kind == ClaimEvent::Kind::kAlarm) {
    LogError(name) << who << event.text;
  } else if (event.kind == ClaimEvent::Kind::kRefused) {
    // A warning, because the server cannot claim a machine id.
    LogWarning(name) << who << ClaimEventName(event.kind) << ": " << event.text;
  } else {
    LogInfo(name) << who << ClaimEventName(event.kind) << ": " << event.text;
  }
}

// `registry` is the registry's time, if known. A wall clock that agrees with it is right.
void LogSkew(const IdClockReport& report, std::optional<WallMs> registry) {
  const WallMs wall = report.time - report.skew;
  const bool leads = report.skew > Milliseconds(0) && !report.stopped;
  if (leads && registry && std::chrono::abs(wall - *registry) <= kWallIsRight) {
    LogInfo("clock_off").With("skew_ms", report.skew.count())
        << "ids run " << report.skew.count()
        << " ms ahead of the wall clock, which agrees with the registry's; no action is "
           "needed";
    return;
  }
  LogError("clock_off").With("skew_ms", report.skew.count())
      << "the wall clock is off by " << report.skew.count() << " ms from the time in new ids";
}

// While the root node is not trusted, no tags are read until an operator fixes it. The claim's
// reason is preferred, because it names more remedies than the root node's.
std::string WhyTagsAreUnread(const IssuingNodeStatus& seen) {
  if (seen.root_trouble.empty()) return "the tags' definitions have not been read yet";
  return seen.claim.reason.empty() ? seen.root_trouble : seen.claim.reason;
}

std::shared_ptr<RejectionHandler> LogRefusals(const Clock& clock) {
  return std::make_shared<LoggingRejectionHandler>(
      clock, [](const std::string& line, const Request& request, const Refusal& refusal) {
        LogWarning("call_refused")
                .With("tag", request.tag)
                .With("reason", ReasonName(refusal.reason))
                .With("client", request.client)
                .With("trace_id", request.trace_id)
            << line;
      });
}

}  // namespace

IssuingNode::IssuingNode(const IssuingNodeOptions& options, IssuingNodeParts parts,
                         const Clock& clock, Entropy& entropy)
    : options_(options),
      clock_(clock),
      entropy_(entropy),
      folder_(std::move(parts.folder)),
      siblings_(std::move(parts.siblings)),
      id_clock_(options.id_clock,
                [this](const IdClockReport& report) {
                  LogSkew(report, segments_.registry_time().At(clock_.Boot()));
                }),
      tick_source_(options.claim.layout, id_clock_, clock,
                   !options.virtual_time && CyclesAreSteady()),
      rejections_(options.extensions.rejections ? options.extensions.rejections
                                                : LogRefusals(clock)),
      catalogue_(options.claim.layout),
      issuer_(*rejections_),
      loop_(clock, std::move(parts.coordinator)),
      machine_ids_(
          1 + siblings_.size(),
          [this](size_t number, ClaimUser& user) { return MakeKeeper(number, user); }, id_clock_,
          tick_source_, entropy, options.snowflake),
      kept_(std::move(parts.kept)),
      owners_(loop_.coordinator(), entropy, clock, options.owners),
      segments_(loop_.coordinator(), ToControl(), clock, entropy),
      follower_(loop_.coordinator(), entropy, catalogue_, issuer_, options.cluster_uuid,
                kept_.get()),
      layout_end_(options.claim.layout) {
  follower_.OnSeen([this](const std::string& tag, const std::optional<TagNode>& node) {
    segments_.Saw(tag, node);
  });
  follower_.OnRemembered(
      [this](const std::string& tag, const TagNode& node) { segments_.Remember(tag, node); });
  follower_.OnServed([this](const TagDefinition& tag) {
    layout_end_.Note(tag);
    if (hooks_.tag_served) hooks_.tag_served(tag);
  });
  follower_.OnDeleted([this](const std::string& tag) {
    if (hooks_.tag_deleted) hooks_.tag_deleted(tag);
  });
  segments_.SetOwners(owners_);
  segments_.OnRedefined([this](const std::string& tag) { follower_.Redefined(tag); });
  if (kept_ != nullptr) kept_->SetControl(ToControl());
  if (!options.given) issuer_.SetSeeker(follower_.seeker());
  Coordinator& registry = loop_.coordinator();
  if (options.guessed) {
    guess_watch_.emplace(registry, entropy, [this](const Result<ClusterMeta>& meta) {
      // If the registry contains a different cluster, the guess may still be right.
      const bool known =
          options_.cluster_uuid.empty() || (meta.ok() && meta->uuid == options_.cluster_uuid);
      misguessed_ = meta.ok() && known &&
                    (meta->layout != layout().text() || meta->rack_bits != split().rack_bits());
    });
  }
  registry.OnSession([this](const SessionEvent& event) {
    machine_ids_.OnSession(event);
    if (hooks_.session) hooks_.session(event);
  });
  status_.claim.uuid = options.cluster_uuid;
  // JoinCluster has consumed this coordinator's session event, so this repeats it. session() alone
  // would not show whether the connection was lost directly after the last answer.
  if (options.session != 0) {
    machine_ids_.OnSession({.kind = SessionEvent::Kind::kConnected, .session = options.session});
  }
}

IssuingNode::~IssuingNode() { Stop(); }

PostToControl IssuingNode::ToControl() {
  return [this](std::function<void()> task) { loop_.Post(std::move(task)); };
}

std::unique_ptr<Keeper> IssuingNode::MakeKeeper(size_t number, ClaimUser& user) {
  const size_t count = 1 + siblings_.size();
  const std::string who = count == 1 ? "" : Cat("machine id ", number + 1, " of ", count, " ");
  const ClaimHooks hooks{
      .event = [who](const ClaimEvent& event) { LogEvent(who, event); },
      .registry_clock = [this](WallMs registry,
                               Now now) { id_clock_.NoteRegistryClock(registry, now); },
      // For dated tags, which otherwise read the registry's clock only to take a range.
      .believed_clock = [this](WallMs registry,
                               Now now) { segments_.registry_time().Note(registry, now.boot); }};
  if (options_.given) {
    return std::make_unique<StaticKeeper>(*options_.given, *folder_, user, hooks);
  }
  ClaimOptions claim = options_.claim;
  StateFolder& folder = number == 0 ? *folder_ : *siblings_[number - 1].folder;
  if (number != 0) claim.identity.owner = siblings_[number - 1].owner;
  return std::make_unique<ClaimKeeper>(std::move(claim), loop_.coordinator(), folder, user,
                                       entropy_, hooks);
}

Status IssuingNode::Start(IssuingNodeHooks hooks) {
  FIRN_TRY(Prepare(std::move(hooks)));
  loop_.Start([this](Now now) { Tick(now); });
  return {};
}

Status IssuingNode::StartByHand() {
  FIRN_TRY(Prepare({}));
  loop_.StartByHand([this](Now now) { Tick(now); });
  return {};
}

Status IssuingNode::Prepare(IssuingNodeHooks hooks) {
  FIRN_TRY(options_.claim.Check());
  FIRN_TRY(FillCatalogue());
  FIRN_TRY(Extend());
  FIRN_TRY(machine_ids_.strategy()->Start());
  hooks_ = std::move(hooks);
  segments_.OnNews(hooks_.waiting);
  // JoinCluster may have consumed the event of the first session.
  if (hooks_.session && options_.session != 0) {
    hooks_.session({.kind = SessionEvent::Kind::kConnected, .session = options_.session});
  }
  return options_.given ? ServeWithoutRegistry() : Status();
}

Status IssuingNode::FillCatalogue() {
  const auto give_snowflake = [this](const TagDefinition&) -> Result<std::shared_ptr<Strategy>> {
    return machine_ids_.strategy();
  };
  FIRN_TRY(catalogue_.AddStrategy("snowflake", give_snowflake));
  for (const char* name : {"segment", "dated"}) {
    FIRN_TRY(catalogue_.AddStrategy(
        name, [this](const TagDefinition& tag) { return segments_.Make(tag); }));
  }
  return {};
}

// Registers the program's own strategies, plugins and stores.
Status IssuingNode::Extend() {
  for (const auto& [name, maker] : options_.extensions.strategies) {
    FIRN_TRY(catalogue_.AddStrategy(name, own_strategies_.Started(maker))
                 .WithContext("this program's own strategy"));
  }
  for (const auto& [name, maker] : options_.extensions.plugins) {
    FIRN_TRY(catalogue_.AddPlugin(name, maker).WithContext("this program's own plugin"));
  }
  for (const auto& [name, maker] : options_.extensions.stores) {
    const std::string which = Cat("this program's own store ", Quoted(name));
    Result<std::unique_ptr<RangeStore>> store = MakeOwnStore(name, maker);
    if (!store.ok()) return store.status().WithContext(which);
    FIRN_TRY(segments_.AddStore(*std::move(store)).WithContext(which));
  }
  return {};
}

Status IssuingNode::ServeWithoutRegistry() {
  std::optional<TagBinding> any;
  if (!options_.default_strategy.empty()) {
    TagDefinition tag;
    tag.strategy = options_.default_strategy;
    FIRN_ASSIGN(any, catalogue_.Bind(tag));
  }
  issuer_.SetDefault(std::move(any));
  if (options_.default_tag.empty()) return {};
  return issuer_.Set(
      {.name = options_.default_tag, .strategy = machine_ids_.strategy(), .plugins = {}});
}

Status IssuingNode::WaitUntilServing(Milliseconds patience) const {
  const BootMs give_up = clock_.Boot() + patience;
  for (;;) {
    const IssuingNodeStatus now = status();
    const ClaimStatus& claim = now.claim;
    const bool serving = claim.state == ClaimState::kHolding;
    if (serving && now.tags_known) return {};
    if (clock_.Boot() >= give_up) {
      if (serving) return Unavailable("the tags' definitions have not been read yet");
      return Unavailable(claim.reason.empty() ? "no machine id yet" : claim.reason);
    }
    SleepFor(kPoll);
  }
}

void IssuingNode::Stop() {
  if (std::exchange(stopped_, true)) return;
  issuer_.Drain();
  stopping_ = true;
  const auto leave = [this] {
    owners_.HandOver(/*waits=*/false);  // no server can take numbers from this one any more
    machine_ids_.Release(clock_.Read());
  };
  if (!loop_.Run(leave)) return;  // in a forked child
  if (loop_.by_hand()) {
    segments_.Stop();
    return own_strategies_.Stop();
  }
  const BootMs give_up = clock_.Boot() + options_.claim.release_wait;
  segments_.StopAll(options_.claim.release_wait);
  while (!has_stopped() && clock_.Boot() < give_up) SleepFor(kPoll);
  loop_.Stop();
  owners_.Stop();
  own_strategies_.Stop();
}

void IssuingNode::HandOver() {
  loop_.Post([this] { owners_.HandOver(); });
}

bool IssuingNode::has_stopped() const {
  return owners_.handed_over() && segments_.settled() &&
         status().claim.state == ClaimState::kReleased && ledgers_kept_;
}

IssuingNodeStatus IssuingNode::status() const {
  const std::scoped_lock lock(status_mutex_);
  return status_;
}

void IssuingNode::Tick(Now now) {
  machine_ids_.Tick(now);
  owners_.Tick(now.boot);
  segments_.Tick(now.boot);
  follower_.Tick(now.boot);
  follower_.RaiseHighest(segments_.ledger().TakeNews());
  for (const auto& [tag, ledger] : segments_.ledger().TakeLedgers()) {
    follower_.NoteLedger(tag, ledger.first, ledger.second);
  }
  // The order does not matter, because giving a range back does not change high + returned.
  if (stopping_ && segments_.settled()) ledgers_kept_ = follower_.KeptLedgers();
  if (const auto warning = layout_end_.Check(now)) LogWarning("layout_ends") << *warning;
  if (hooks_.tick) hooks_.tick(now);
  Show({now, id_clock_.Last()});
  CheckGuess(now.boot);
}

// Ends the watch once a machine id is held, because this proves that the guess was right.
void IssuingNode::CheckGuess(BootMs now) {
  if (!guess_watch_) return;
  if (!misguessed_ && machine_ids_.holds()) return guess_watch_.reset();
  guess_watch_->Tick(now);
}

// Returns why the start is not complete.
std::optional<Refusal> IssuingNode::WhyNotStarted(const IssuingNodeStatus& seen) const {
  if (!seen.tags_known) return Refusal{Reason::kNotReady, WhyTagsAreUnread(seen), 0, true};
  return owners_.Starts() ? std::optional(OwnerLink::Starting()) : std::nullopt;
}

// Returns the refusal of snowflake ids; empty if a tag that needs no claim issues numbers.
std::optional<Refusal> IssuingNode::WhyNotServing(const IssuingNodeStatus& seen) const {
  if (auto starting = WhyNotStarted(seen)) return starting;
  if (follower_.gives_numbers()) return std::nullopt;
  std::optional<Refusal> why = machine_ids_.strategy()->WhyNot();
  if (why && why->reason == Reason::kNotReady && !seen.claim.reason.empty()) {
    why->message += ": " + seen.claim.reason;
  }
  return why;
}

std::optional<Refusal> IssuingNode::WhyNotReady(const IssuingNodeStatus& seen) const {
  const std::string& name = options_.default_tag;
  const auto refused = seen.refused->find(name);
  const bool disabled =
      refused != seen.refused->end() && refused->second.state == TagState::kDisabled;
  if (auto starting = WhyNotStarted(seen)) return starting;
  if (name.empty() || disabled) return WhyNotServing(seen);
  const Tag* const tag = issuer_.Resolve(name);
  if (tag == nullptr || tag->binding() == nullptr) {
    return Refusal{Reason::kUnknownTag, Cat("the default tag ", Quoted(name), " is not defined"), 0,
                   false};
  }
  std::optional<Refusal> why = issuer_.WhyNot(name);
  const bool of_claim = why && why->reason == Reason::kNotReady && refused == seen.refused->end();
  if (of_claim && !seen.claim.reason.empty()) why->message += ": " + seen.claim.reason;
  return why;
}

void IssuingNode::Show(const KeeperTime& time) {
  std::vector<ClaimStatus> claims = machine_ids_.status(time);
  IssuingNodeStatus seen{.claim = Together(claims),
                         .claims = std::move(claims),
                         .id_clock = id_clock_.Report(),
                         .misguessed = misguessed_,
                         .frozen = follower_.frozen(),
                         .tags_known = options_.given.has_value() || follower_.whole(),
                         .tags_complete = follower_.complete(),
                         .root_trouble = follower_.root_trouble(),
                         .refused = follower_.refused(),
                         .outdated = follower_.outdated(),
                         .highest = follower_.highest(),
                         .unserved = follower_.unserved()};
  ready_.Note(WhyNotReady(seen), time.clocks.boot);
  serving_.Note(WhyNotServing(seen), time.clocks.boot);
  if (!serving_.why_not()) owners_.EndStart();
  seen.why_not_ready = ready_.why_not();
  seen.why_not_serving = serving_.why_not();
  if (seen.claim.uuid.empty()) seen.claim.uuid = options_.cluster_uuid;
  const int64_t session = seen.claim.connected ? seen.claim.session : 0;
  const BootMs now = time.clocks.boot;
  if (std::exchange(session_, session) != session) session_since_ = now;
  if (session != 0) seen.session_age = now - session_since_;
  const std::scoped_lock lock(status_mutex_);
  std::swap(status_, seen);
}

}  // namespace firn
