#include "registry/claim/acquisition.h"

#include <algorithm>
#include <utility>

#include "common/rack_split.h"

namespace firn {
namespace {

constexpr Milliseconds kRetrySoon{200};
constexpr Milliseconds kRetryLater{2'000};
constexpr Milliseconds kRetryMax{5'000};
constexpr Milliseconds kLayoutReserve{86'400'000};

}  // namespace

Acquisition::Acquisition(const ClaimOptions& options, Coordinator& coordinator, Entropy& entropy,
                         Wish wish, const KeeperTime& now)
    : options_(options),
      coordinator_(coordinator),
      entropy_(entropy),
      wish_(std::move(wish)),
      now_(now) {
  if (wish_.grant.has_value()) {
    ReadGranted();
  } else {
    AskClock();
  }
}

void Acquisition::Tick(const KeeperTime& now) {
  now_ = now;
  mailbox_.Open();
  if (outcome_ != Outcome::kPending) return;
  if (freeze_ != nullptr) {
    freeze_->Tick();
    if (freeze_->outcome() != Freeze::Outcome::kPending) {
      Refuse("the registry went back in time: run firn restore", kRetryLater);
    }
  } else if (probation_end_.has_value()) {
    CheckProbation();
  } else if (write_ != nullptr) {
    write_->Tick(now.clocks.boot);
    if (write_->outcome() != SlotWrite::Outcome::kPending) OnAttempt();
  } else if (survey_ != nullptr) {
    survey_->Tick();
    if (survey_->done()) OnSurvey();
  }
}

BootMs Acquisition::wake() const {
  if (probation_end_.has_value()) return *probation_end_;
  return write_ != nullptr ? write_->wake() : BootMs();
}

// --- 1: inherit ----------------------------------------------------------------------------------

void Acquisition::ReadGranted() {
  inheriting_ = true;
  session_ = coordinator_.session();
  const Slot slot = wish_.grant->slot;
  ReadSynced(coordinator_, mailbox_, {kMetaPath, SlotPath(slot), LivePath(slot)},
             [this](const Result<Nodes>& nodes) { OnGranted(nodes); });
}

void Acquisition::OnGranted(const Result<Nodes>& nodes) {
  if (!nodes.ok()) return Refuse("the registry does not answer", kRetrySoon);
  const Finding finding = Judge(Tenure::TermsOf(*wish_.grant), (*nodes)[0], (*nodes)[1]);
  const std::string& of = wish_.grant->uuid;
  if (finding.meta.has_value() && finding.meta->uuid != of && wish_.uuid != of) {
    // What a dead process used in one cluster is no matter to another.
    alarms_.push_back("the grant file is of cluster " + of + ", and here is " + finding.meta->uuid +
                      ": claiming anew");
  } else if (finding.verdict == Finding::Verdict::kLost) {
    alarms_.push_back("a claim of " + SlotText(wish_.grant->slot) + " was lost: " + finding.reason);
    wish_.floor = std::max(wish_.floor, wish_.grant->bound);
  }
  if (finding.verdict != Finding::Verdict::kOurs) return GiveUpGrant();
  if (!MetaIsGood((*nodes)[0])) return;
  TryInherit(finding, (*nodes)[2].has_value());
}

void Acquisition::TryInherit(const Finding& finding, bool live) {
  const Grant& grant = *wish_.grant;
  const WallMs ahead = std::max(now_.id_time, grant.limit) + FirstWindow();
  Attempt({.session = session_,
           .slot = grant.slot,
           .meta_version = meta_version_,
           .era = meta_.era,
           .uuid = meta_.uuid,
           .version = finding.version,
           .created_zxid = grant.created_zxid,
           .over_nonce = grant.nonce,
           .over_bound = finding.bound,
           .record = RecordWith(grant.limit, std::max(finding.bound, ahead)),
           .live = live ? SlotChange::Live::kReplace : SlotChange::Live::kCreate,
           .endpoint = options_.identity.endpoint},
          grant.limit);
}

void Acquisition::GiveUpGrant() {
  inheriting_ = false;
  wish_.grant.reset();
  AskClock();
}

// --- 2: the clock --------------------------------------------------------------------------------

void Acquisition::AskClock() {
  asked_clock_at_ = now_.clocks.wall;
  coordinator_.Multi(
      {Write::Set(kClockPath, options_.identity.owner, Write::kAnyVersion)},
      mailbox_.Expect<WriteOutcome>([this](const WriteOutcome& answer) { OnClock(answer); }));
}

void Acquisition::OnClock(const WriteOutcome& answer) {
  if (answer.status.code() == Code::kNotFound) {
    return Refuse("there is no cluster here, or it is not whole: " + HowToMake(), kRetryLater);
  }
  if (answer.status.code() == Code::kDenied) {
    return Refuse(answer.status.message() + ": start again with the right --registry_auth_file",
                  kRetryLater);
  }
  if (!answer.status.ok()) {
    return Refuse("the registry does not answer: " + answer.status.message(), kRetrySoon);
  }
  registry_clock_ = answer.stats.at(0).modified;
  if (ClockIsSane(registry_clock_)) ReadMeta();
}

bool Acquisition::ClockIsSane(WallMs registry) {
  const WallMs wall = now_.clocks.wall;
  const Layout& layout = options_.layout;
  if (wall < layout.epoch() || wall + kLayoutReserve > layout.end()) {
    Refuse("the wall clock, " + std::to_string(wall.ms()) + " ms, lies outside the layout's time",
           kRetryLater);
    return false;
  }
  // Written between the two readings, if the clocks agree.
  const bool agrees = registry.ms() == 0 || (registry + options_.skew_max >= asked_clock_at_ &&
                                             registry - options_.skew_max <= wall);
  if (agrees) return true;
  Refuse("the wall clock shows " + std::to_string(wall.ms()) + " ms and the registry's " +
             std::to_string(registry.ms()) + " ms: set the clock",
         kRetryLater);
  return false;
}

// --- 3: meta -------------------------------------------------------------------------------------

void Acquisition::ReadMeta() {
  session_ = coordinator_.session();
  ReadSynced(coordinator_, mailbox_, {kMetaPath},
             [this](const Result<Nodes>& nodes) { OnMeta(nodes); });
}

void Acquisition::OnMeta(const Result<Nodes>& nodes) {
  if (!nodes.ok()) return Refuse("the registry does not answer", kRetrySoon);
  if (!MetaIsGood(nodes->front())) return;
  const bool may_hint = wish_.hint.has_value() && wish_.hint->slot.rack == options_.rack;
  StartSurvey(may_hint ? std::optional(wish_.hint->slot) : std::nullopt);
}

void Acquisition::StartSurvey(std::optional<Slot> hinted) {
  ++surveys_;
  candidate_ = 0;
  survey_ = std::make_unique<Survey>(
      coordinator_, entropy_,
      SlotWish{.rack = options_.rack,
               .workers = RackSplit::Make(options_.layout, meta_.rack_bits)->workers(),
               .worker = options_.worker,
               .hinted = hinted,
               .owner = options_.identity.owner,
               .now = ClusterTime(),
               .id_time = now_.id_time,
               .released_ahead = options_.window});
}

// By the wall clock, which agrees with the registry's: our id clock may be far ahead of
// everybody's, and slots that others hold would look free. Above the floor time passes, too:
// whoever claimed right after a restore began at the floor and has gone on since, so compared with
// the floor itself the slot of one who died then would be in use until the wall clock gets there.
WallMs Acquisition::ClusterTime() const {
  const Milliseconds since = std::max(registry_clock_ - meta_set_at_, Milliseconds(0));
  return std::max(now_.clocks.wall, meta_.floor + since);
}

// Made without the uuid that this process knows, a cluster would be a strange one to it.
std::string Acquisition::HowToMake() const {
  if (wish_.uuid.empty()) return "run firn init, or firn restore if its data were lost";
  return "its data were lost, run firn restore --uuid=" + wish_.uuid;
}

bool Acquisition::MetaIsGood(const std::optional<Node>& node) {
  if (!node.has_value()) {
    Refuse("there is no cluster here: " + HowToMake(), kRetryLater);
    return false;
  }
  const Result<ClusterMeta> meta = ParseMeta(node->data);
  std::string fault;
  if (!meta.ok()) {
    fault = meta.status().message();
  } else if (!wish_.uuid.empty() && meta->uuid != wish_.uuid) {
    fault =
        "this state folder belongs to the cluster " + wish_.uuid + ", but here is " + meta->uuid;
  } else if (meta->layout != options_.layout.text()) {
    fault = "the cluster's layout is " + meta->layout + ", not " + options_.layout.text();
  } else if (const auto split = RackSplit::Make(options_.layout, meta->rack_bits); !split.ok()) {
    fault = split.status().message();
  } else if (options_.rack >= split->racks() || options_.worker.value_or(0) >= split->workers()) {
    fault = "the cluster has no such slot: rack " + std::to_string(options_.rack);
  } else if (meta->frozen) {
    fault = "the cluster is frozen: " + meta->reason + "; run firn restore";
  }
  if (!fault.empty()) {
    Refuse(std::move(fault), kRetryLater);
    return false;
  }
  meta_ = *meta;
  meta_version_ = node->stat.version;
  meta_set_at_ = node->stat.modified;
  if (meta_.floor >= wish_.floor) return true;
  FreezeIt();
  return false;
}

// The cluster forgot a claim of this process, and nobody has lifted the floor above it.
void Acquisition::FreezeIt() {
  Tenure::Terms held;
  held.bound = wish_.floor;
  freeze_ = std::make_unique<Freeze>(coordinator_, held,
                                     "it forgot a claim of " + options_.identity.owner + " up to " +
                                         std::to_string(wish_.floor.ms()) + " ms");
}

// --- 4: the attempt ------------------------------------------------------------------------------

void Acquisition::OnSurvey() {
  for (const std::string& alarm : survey_->alarms()) alarms_.push_back(alarm);
  if (!survey_->candidates().empty()) return TryCandidate();
  const auto earliest = survey_->earliest();
  const Milliseconds wait =
      earliest.has_value() ? *earliest - survey_->wish().now + Milliseconds(1) : kRetryMax;
  Refuse("no machine id is free: " + survey_->reason(), std::clamp(wait, kRetrySoon, kRetryMax));
}

void Acquisition::TryCandidate() {
  const SurveyedSlot& found = survey_->candidates()[candidate_];
  const WallMs base = std::max({now_.id_time, found.record.bound, meta_.floor});
  Attempt({.session = session_,
           .slot = found.slot,
           .meta_version = meta_version_,
           .era = meta_.era,
           .uuid = meta_.uuid,
           .version = found.version,
           .created_zxid = found.created_zxid,
           .over_nonce = found.record.nonce,
           .over_bound = found.record.bound,
           // Its probation must not use it up.
           .record = RecordWith(base, base + options_.probation + FirstWindow()),
           .live = found.live ? SlotChange::Live::kReplace : SlotChange::Live::kCreate,
           .endpoint = options_.identity.endpoint},
          base);
}

void Acquisition::Attempt(SlotChange change, WallMs base) {
  if (connection_lost_) return Refuse("the connection was lost meanwhile", kRetrySoon);
  base_ = base;
  write_ = std::make_unique<SlotWrite>(coordinator_, entropy_, std::move(change));
}

void Acquisition::OnAttempt() {
  switch (write_->outcome()) {
    case SlotWrite::Outcome::kApplied:
      return OnWon();
    case SlotWrite::Outcome::kLiveExists:
    case SlotWrite::Outcome::kLiveMissing:
      return OnLiveDiffers();
    case SlotWrite::Outcome::kOther:
      return OnLostAttempt();
    default:
      return Refuse("the registry does not answer: " + write_->reason(), kRetrySoon);
  }
}

void Acquisition::OnLiveDiffers() {
  if (++live_tries_ > kLiveTriesMax) return OnLostAttempt();
  SlotChange again = write_->change();
  again.record.nonce = Nonce::Draw(entropy_);
  again.live = write_->outcome() == SlotWrite::Outcome::kLiveExists ? SlotChange::Live::kReplace
                                                                    : SlotChange::Live::kCreate;
  Attempt(std::move(again), base_);
}

void Acquisition::OnLostAttempt() {
  const std::string reason = write_->reason();
  write_.reset();
  live_tries_ = 0;
  if (inheriting_) {
    if (++inherits_ < kInheritsMax) return ReadGranted();
    return GiveUpGrant();
  }
  if (++candidate_ < survey_->candidates().size()) return TryCandidate();
  if (surveys_ < kSurveysMax) return StartSurvey(std::nullopt);
  Refuse("every slot that was free has changed meanwhile: " + reason, kRetrySoon);
}

// --- 5: won --------------------------------------------------------------------------------------

void Acquisition::OnWon() {
  const SlotChange& change = write_->change();
  if (write_->registry_clock().ms() != 0) registry_clock_ = write_->registry_clock();
  terms_ = {.slot = change.slot,
            .machine = *RackSplit::Make(options_.layout, meta_.rack_bits)
                            ->Join(change.slot.worker, change.slot.rack),
            .nonce = change.record.nonce,
            .version = write_->version(),
            .created_zxid = change.created_zxid,
            .meta_version = meta_version_,
            .era = meta_.era,
            .uuid = meta_.uuid,
            .base = base_,
            .bound = write_->bound()};
  live_session_ = change.session;
  if (options_.probation == Milliseconds(0) || inheriting_) {
    outcome_ = Outcome::kWon;
    return;
  }
  probation_end_ = now_.clocks.boot + options_.probation;
}

void Acquisition::CheckProbation() {
  if (probation_ == nullptr) {
    if (now_.clocks.boot < *probation_end_) return;
    probation_ = std::make_unique<Inspection>(coordinator_, terms_);
  }
  probation_->Tick();
  if (!probation_->done()) return;
  const Finding& finding = probation_->finding();
  if (finding.verdict == Finding::Verdict::kOurs && finding.version == terms_.version) {
    outcome_ = Outcome::kWon;
    return;
  }
  Refuse("the claim did not outlast its probation: " + finding.reason, kRetrySoon);
}

Milliseconds Acquisition::FirstWindow() const {
  return std::min(kClaimWindowFirst, options_.window);
}

SlotRecord Acquisition::RecordWith(WallMs base, WallMs bound) {
  const ClaimantIdentity& self = options_.identity;
  return {.nonce = Nonce::Draw(entropy_),
          .bound = bound,
          .owner = self.owner,
          .since = base,
          .host = self.host,
          .pid = self.pid,
          .build = self.build};
}

void Acquisition::Refuse(std::string reason, Milliseconds retry_after) {
  outcome_ = Outcome::kRefused;
  reason_ = std::move(reason);
  const auto ms = static_cast<uint64_t>(retry_after.count());
  retry_after_ = Milliseconds(ms / 2 + entropy_.Below(ms));
}

}  // namespace firn
