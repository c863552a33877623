#include "server/issuing_node.h"

#include <utility>

#include <glog/logging.h>

#include "registry/claim/claim_keeper.h"

namespace firn {
namespace {

constexpr Milliseconds kPoll{5};

void LogEvent(const ClaimEvent& event) {
  if (event.kind == ClaimEvent::Kind::kAlarm) {
    LOG(ERROR) << event.text;
  } else {
    LOG(INFO) << ClaimEventName(event.kind) << ": " << event.text;
  }
}

void LogSkew(const IdClockReport& report) {
  LOG(ERROR) << "the wall clock is off by " << report.skew.count()
             << " ms from the time that ids are issued under";
}

}  // namespace

IssuingNode::IssuingNode(const IssuingNodeOptions& options, const Clock& clock, Entropy& entropy,
                         std::unique_ptr<Coordinator> coordinator,
                         std::unique_ptr<StateFolder> folder)
    : options_(options),
      clock_(clock),
      entropy_(entropy),
      folder_(std::move(folder)),
      id_clock_(options.id_clock, LogSkew),
      tick_source_(options.claim.layout, id_clock_, clock),
      snowflake_(std::make_shared<Snowflake>(tick_source_, entropy, options.snowflake)),
      rejections_(clock, [](const std::string& line) { LOG(WARNING) << line; }),
      issuer_(rejections_),
      bridge_(*snowflake_, id_clock_, clock),
      loop_(clock, std::move(coordinator)),
      keeper_(MakeKeeper()),
      segments_(loop_, clock, entropy),
      follower_(loop_.coordinator(), entropy, catalogue_, issuer_),
      layout_end_(options.claim.layout) {
  follower_.OnSeen([this](const std::string& tag, const std::optional<TagNode>& node) {
    segments_.Saw(tag, node);
  });
  Coordinator& registry = loop_.coordinator();
  registry.OnSession([this](const SessionEvent& event) { keeper_->OnSession(event); });
  status_.claim.uuid = options.cluster_uuid;
  // Whoever made the cluster on this coordinator has been told of its session already.
  if (const int64_t session = registry.session(); session != 0) {
    keeper_->OnSession({.kind = SessionEvent::Kind::kConnected, .session = session});
  }
}

IssuingNode::~IssuingNode() { Stop(); }

std::unique_ptr<Keeper> IssuingNode::MakeKeeper() {
  const ClaimHooks hooks{.event = LogEvent, .registry_clock = [this](WallMs registry, Now now) {
                           id_clock_.NoteRegistryClock(registry, now);
                           ahead_of_registry_ = now.wall - registry;
                         }};
  if (options_.given) {
    return std::make_unique<StaticKeeper>(*options_.given, *folder_, bridge_, hooks);
  }
  return std::make_unique<ClaimKeeper>(options_.claim, loop_.coordinator(), *folder_, bridge_,
                                       entropy_, hooks);
}

Status IssuingNode::Start() {
  FIRN_TRY(options_.claim.Check());
  const auto give_snowflake = [this](const TagDefinition&) -> Result<std::shared_ptr<Strategy>> {
    return std::shared_ptr<Strategy>(snowflake_);
  };
  FIRN_TRY(catalogue_.AddStrategy("snowflake", give_snowflake));
  FIRN_TRY(catalogue_.AddStrategy(
      "segment", [this](const TagDefinition& tag) { return segments_.Make(tag); }));
  FIRN_TRY(snowflake_->Start());
  if (!options_.default_strategy.empty()) {
    TagDefinition any;
    any.strategy = options_.default_strategy;
    FIRN_ASSIGN(TagBinding binding, catalogue_.Bind(any));
    issuer_.SetDefault(std::move(binding));
  }
  if (!options_.default_tag.empty()) {
    FIRN_TRY(issuer_.Set({.name = options_.default_tag, .strategy = snowflake_, .plugins = {}}));
  }
  loop_.Start([this](Now now) { Tick(now); });
  return {};
}

Status IssuingNode::WaitUntilServing(Milliseconds patience) const {
  const BootMs give_up = clock_.Boot() + patience;
  for (;;) {
    const IssuingNodeStatus now = status();
    const ClaimStatus& claim = now.claim;
    const bool serving = claim.state == ClaimState::kHolding;
    // While the registry is away no tags can be read: what is held is the default tag's.
    if (serving && (now.tags_read || options_.given || !claim.connected)) return {};
    if (clock_.Boot() >= give_up) {
      if (serving) return Unavailable("the tags have not been read yet");
      return Unavailable(claim.reason.empty() ? "no machine id yet" : claim.reason);
    }
    SleepFor(kPoll);
  }
}

void IssuingNode::Stop() {
  if (std::exchange(stopped_, true)) return;
  issuer_.Drain();
  if (!loop_.Run([this] { keeper_->Release(ReadTime()); })) return;  // a forked child
  const BootMs give_up = clock_.Boot() + options_.claim.release_wait;
  segments_.StopAll(options_.claim.release_wait);
  while (status().claim.state != ClaimState::kReleased && clock_.Boot() < give_up) SleepFor(kPoll);
  loop_.Stop();
}

IssuingNodeStatus IssuingNode::status() const {
  const std::scoped_lock lock(status_mutex_);
  return status_;
}

KeeperTime IssuingNode::ReadTime() {
  const Now now = clock_.Read();
  return {now, id_clock_.Advance(now)};
}

void IssuingNode::Tick(Now now) {
  const KeeperTime time{now, id_clock_.Advance(now)};
  keeper_->Tick(time);
  segments_.Tick(now.boot);
  follower_.Tick(now.boot);
  follower_.RaiseHighest(segments_.ledger().TakeNews());
  if (const auto warning = layout_end_.Check(now)) LOG(WARNING) << *warning;
  for (const auto& tick : ticks_) tick(now);
  Show(time);
}

void IssuingNode::Show(const KeeperTime& time) {
  IssuingNodeStatus seen{.claim = keeper_->status(time),
                         .id_clock = id_clock_.Report(),
                         .ahead_of_registry = ahead_of_registry_,
                         .tags_read = follower_.whole(),
                         .highest = follower_.highest()};
  if (seen.claim.uuid.empty()) seen.claim.uuid = options_.cluster_uuid;
  const int64_t session = seen.claim.connected ? seen.claim.session : 0;
  const BootMs now = time.clocks.boot;
  if (std::exchange(session_, session) != session) session_since_ = now;
  if (session != 0) seen.session_age = now - session_since_;
  const std::scoped_lock lock(status_mutex_);
  std::swap(status_, seen);
}

}  // namespace firn
