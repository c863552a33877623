#include "registry/claim/acquisition.h"

#include <algorithm>
#include <utility>

#include "common/id/rack_split.h"
#include "registry/claim/claim_checks.h"

namespace firn {
namespace {

constexpr Milliseconds kRetrySoon{200};
constexpr Milliseconds kRetryLater{2'000};
constexpr Milliseconds kRetryMax{5'000};

}  // namespace

Acquisition::Acquisition(const ClaimOptions& options, Coordinator& coordinator, Entropy& entropy,
                         Wish wish, const KeeperTime& now)
    : options_(options),
      coordinator_(coordinator),
      entropy_(entropy),
      wish_(std::move(wish)),
      now_(now) {
  if (wish_.grant.has_value() && wish_.grant_tells_time) {
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
  if (nodes.code() == Code::kCorrupt) {
    // Nobody can claim over a damaged record, and restoring retires it.
    alarms_.push_back("the claim of " + SlotText(wish_.grant->slot) +
                      " cannot be gone on with: " + nodes.status().message());
    return GiveUpGrant();
  }
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
  if (finding.verdict == Finding::Verdict::kTwin) {
    alarms_.push_back(SlotText(wish_.grant->slot) + " is not gone on with: " + finding.reason);
  }
  if (finding.verdict != Finding::Verdict::kOurs) return GiveUpGrant();
  if (!MetaIsGood((*nodes)[0])) return;
  TryInherit(finding, (*nodes)[2].has_value());
}

void Acquisition::TryInherit(const Finding& finding, bool live) {
  const Grant& grant = *wish_.grant;
  const WallMs ahead = std::max(now_.id_time, grant.limit) + FirstWindow();
  if (IsTooFarAhead(ahead)) {
    alarms_.push_back("the grant's ids are more than a day ahead of the registry's clock");
    return GiveUpGrant();
  }
  Attempt({.session = session_,
           .slot = grant.slot,
           .meta_version = meta_version_,
           .era = meta_.era,
           .uuid = meta_.uuid,
           .version = finding.version,
           .created_zxid = grant.created_zxid,
           .over_nonce = grant.nonce,
           .over_word = finding.word,
           .over_bound = finding.bound,
           .record = RecordWith(grant.limit, std::max(finding.bound, ahead), finding.others),
           .live = live ? SlotChange::Live::kReplace : SlotChange::Live::kCreate,
           .endpoint = options_.identity.endpoint,
           .ended = finding.holder.Until(grant.limit)},
          grant.limit);
}

void Acquisition::GiveUpGrant() {
  inheriting_ = false;
  wish_.grant.reset();
  if (registry_clock_ != WallMs()) return ReadMeta();
  AskClock();
}

// --- 2: the clock --------------------------------------------------------------------------------

void Acquisition::AskClock() {
  asked_clock_at_ = now_.clocks;
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
  NoteRegistryClock(answer.stats.at(0).modified);
  std::string fault = ClockFault(options_, asked_clock_at_, registry_clock_, now_.clocks);
  if (!fault.empty()) return Refuse(std::move(fault), kRetryLater);
  if (wish_.on_clock_checked) now_.id_time = wish_.on_clock_checked(now_.clocks.wall);
  if (wish_.grant.has_value()) return ReadGranted();
  ReadMeta();
}

// --- 3: meta -------------------------------------------------------------------------------------

void Acquisition::ReadMeta() {
  session_ = coordinator_.session();
  ReadSynced(coordinator_, mailbox_, {kMetaPath},
             [this](const Result<Nodes>& nodes) { OnMeta(nodes); });
}

void Acquisition::OnMeta(const Result<Nodes>& nodes) {
  if (nodes.code() == Code::kCorrupt) {
    return Refuse(nodes.status().message() + "; " + HowToMake(), kRetryLater);
  }
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

// By the registry's clock: our id clock may be far ahead of everybody's, and so may our wall clock
// if it was set since the two were compared; slots that others hold would look free.
WallMs Acquisition::ClusterTime() const {
  const WallMs registry = registry_clock_ + (now_.clocks.boot - registry_clock_at_);
  return Root().ClusterTimeAt(registry_clock_ == WallMs() ? now_.clocks.wall : registry);
}

Tenure::Terms Acquisition::Root() const {
  Tenure::Terms under;
  under.floor = meta_.floor;
  under.floor_set_at = meta_set_at_;
  return under;
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
  std::string fault = MetaFault(options_, meta, node->stat.version, wish_.uuid);
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
  // Its probation must not use it up, nor may others find it passed, who count by the cluster's
  // time: an id clock that stands still (policy strict) lies behind it.
  const WallMs bound = std::max(base, ClusterTime()) + Probation() + FirstWindow();
  if (IsTooFarAhead(bound)) {
    return Refuse("the ids of this server have come to " + std::to_string(base.ms()) +
                      " ms, more than a day ahead of the registry's clock, " +
                      std::to_string(registry_clock_.ms()) +
                      " ms: set the clock, and start the server again",
                  kRetryLater);
  }
  Attempt({.session = session_,
           .slot = found.slot,
           .meta_version = meta_version_,
           .era = meta_.era,
           .uuid = meta_.uuid,
           .version = found.version,
           .created_zxid = found.created_zxid,
           .over_nonce = found.record.nonce,
           .over_word = found.record.word,
           .over_bound = found.record.bound,
           .record = RecordWith(base, bound, found.record.others),
           .live = found.live ? SlotChange::Live::kReplace : SlotChange::Live::kCreate,
           .endpoint = options_.identity.endpoint,
           .ended = HolderIn(found.record).Until(base)},
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
  NoteRegistryClock(write_->registry_clock());
  terms_ = {.slot = change.slot,
            .machine = *RackSplit::Make(options_.layout, meta_.rack_bits)
                            ->Join(change.slot.worker, change.slot.rack),
            .nonce = change.record.nonce,
            .word = change.record.word,
            .version = write_->version(),
            .created_zxid = change.created_zxid,
            .meta_version = meta_version_,
            .era = meta_.era,
            .uuid = meta_.uuid,
            .base = base_,
            .bound = write_->bound(),
            .others = write_->others(),
            .floor = meta_.floor,
            .floor_set_at = meta_set_at_};
  live_session_ = change.session;
  const Milliseconds probation = Probation();
  if (probation == Milliseconds(0) || inheriting_) {
    outcome_ = Outcome::kWon;
    return;
  }
  probation_end_ = now_.clocks.boot + probation;
}

Milliseconds Acquisition::Probation() const {
  if (meta_.floor == WallMs()) return options_.probation;  // never restored
  const Milliseconds age = std::max(registry_clock_ - meta_set_at_, Milliseconds(0));
  return std::max(options_.probation, options_.restore_probation - age);
}

void Acquisition::NoteRegistryClock(WallMs clock) {
  if (clock == WallMs()) return;
  registry_clock_ = clock;
  registry_clock_at_ = now_.clocks.boot;
}

bool Acquisition::IsTooFarAhead(WallMs bound) const {
  return registry_clock_ != WallMs() && bound > Root().CeilingAt(registry_clock_);
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

SlotRecord Acquisition::RecordWith(WallMs base, WallMs bound, const std::string& others) {
  const ClaimantIdentity& self = options_.identity;
  return {.nonce = Nonce::Draw(entropy_),
          .word = Nonce::Draw(entropy_),
          .bound = bound,
          .owner = self.owner,
          .since = base,
          .host = self.host,
          .pid = self.pid,
          .build = self.build,
          .others = others};
}

void Acquisition::Refuse(std::string reason, Milliseconds retry_after) {
  outcome_ = Outcome::kRefused;
  reason_ = std::move(reason);
  const auto ms = static_cast<uint64_t>(retry_after.count());
  retry_after_ = Milliseconds(ms / 2 + entropy_.Below(ms));
}

}  // namespace firn
