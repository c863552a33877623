#include "server/node/segment_tags.h"

#include <utility>

#include "common/base/cat.h"
#include "common/log/log.h"
#include "server/issue/dated/dated.h"
#include "server/issue/segment/ordered.h"
#include "server/issue/segment/segment.h"
#include "server/issue/segment/unbuffered.h"
#include "server/store/dated_source.h"
#include "server/store/ledgered_source.h"
#include "server/store/registry_source.h"

namespace firn {
namespace {

constexpr Milliseconds kSettledPoll{5};
constexpr Milliseconds kReadEvery{1'000};
constexpr Milliseconds kTellEvery{10'000};  // per tag

}  // namespace

SegmentTags::SegmentTags(Coordinator& registry, PostToControl control, const Clock& clock,
                         Entropy& entropy)
    : control_(std::move(control)),
      clock_(clock),
      entropy_(entropy),
      ledger_(registry,
              {.stop = [this](const std::string& tag, const std::string& why) { Drop(tag, why); },
               .redefined =
                   [this](const std::string& tag) {
                     Abandon(tag);
                     if (redefined_) redefined_(tag);
                   }}) {
  sources_["registry"] = std::make_unique<RegistrySource>(ledger_, control_);
  dated_ = std::make_unique<DatedSource>(registry, ledger_, control_, clock_, registry_time_);
}

SegmentTags::~SegmentTags() = default;

Status SegmentTags::AddStore(std::unique_ptr<RangeStore> store) {
  std::string name(store->name());
  return AddSource(std::move(name),
                   std::make_unique<LedgeredSource>(std::move(store), ledger_, control_, clock_));
}

Status SegmentTags::AddSource(std::string name, std::unique_ptr<RangeSource> source) {
  const auto [place, added] = sources_.try_emplace(std::move(name), std::move(source));
  return added ? Status() : Conflict("there are two stores called " + place->first);
}

Result<std::shared_ptr<Strategy>> SegmentTags::Make(const TagDefinition& tag) {
  if (tag.name.empty()) return Invalid("a tag with a ledger must be defined in the registry");
  const std::lock_guard lock(mutex_);
  FIRN_TRY(CheckStandIn(tag));
  Served& served = served_[tag.name];
  busy_.insert(tag.name);
  if (served.Fits(tag)) {
    served.strategy->Adjust(tag);
    return std::shared_ptr<Strategy>(served.strategy);
  }
  FIRN_ASSIGN(RangeSource* const source, SourceOf(tag));
  FIRN_ASSIGN(std::shared_ptr<RangedStrategy> made, MakeStrategy(tag, *source));
  if (served.strategy) {
    const bool redefined = served.form != FormOf(tag);
    if (redefined) {
      served.strategy->Abandon();
    } else {
      served.strategy->Stop();
    }
    served.ending.push_back(std::move(served.strategy));
  }
  // Its earlier ranges may be far below the ledger.
  if (served.source != nullptr) source->Distrust(tag.name);
  served = {.form = FormOf(tag),
            .store = tag.store,
            .buffer = tag.buffer,
            .zone = tag.zone,
            .source = source,
            .strategy = std::move(made),
            .ending = std::move(served.ending),
            .wasted = served.wasted};
  if (stopped_) served.strategy->Stop();
  return std::shared_ptr<Strategy>(served.strategy);
}

Status SegmentTags::CheckStandIn(const TagDefinition& tag) const {
  const auto source = sources_.find(tag.store);
  const bool wanted = tag.when_store_is_away == StoreAway::kLedger && source != sources_.end();
  if (!wanted || source->second->permits_stand_in()) return {};
  return Invalid("store '" + tag.store + "' does not permit when_store_is_away = ledger");
}

Result<RangeSource*> SegmentTags::SourceOf(const TagDefinition& tag) const {
  if (tag.strategy == "dated") return dated_.get();
  const auto source = sources_.find(tag.store);
  if (source == sources_.end()) return NotFound("this server has no store '" + tag.store + "'");
  return source->second.get();
}

Result<std::shared_ptr<RangedStrategy>> SegmentTags::MakeStrategy(const TagDefinition& tag,
                                                                  RangeSource& source) {
  RangedParts parts{.source = source, .clock = clock_, .entropy = entropy_};
  // Called on the sources' threads, also during VisitLocked.
  parts.stir = [stirred = stirred_, name = tag.name] {
    const std::lock_guard lock(stirred->mutex);
    stirred->tags.push_back(name);
  };
  parts.news = [stir = parts.stir, news = news_, name = tag.name] {
    stir();
    if (news) news(name);
  };
  if (tag.strategy == "dated") {
    FIRN_ASSIGN(auto made, Dated::Make(tag, std::move(parts), registry_time_));
    return std::shared_ptr<RangedStrategy>(std::move(made));
  }
  if (tag.buffer == TagBuffer::kNone) {
    FIRN_ASSIGN(auto made, Unbuffered::Make(tag, std::move(parts)));
    return std::shared_ptr<RangedStrategy>(std::move(made));
  }
  if (tag.buffer == TagBuffer::kOwner) return MakeOrdered(tag, parts);
  FIRN_ASSIGN(auto made, Segment::Make(tag, std::move(parts)));
  return std::shared_ptr<RangedStrategy>(std::move(made));
}

Result<std::shared_ptr<RangedStrategy>> SegmentTags::MakeOrdered(const TagDefinition& tag,
                                                                 const RangedParts& parts) {
  if (owners_ == nullptr) return Invalid("this program cannot own numbers");
  FIRN_TRY(owners_->Check());
  if (tag.store != "registry" && parts.source.permits_no_buffer()) {
    return Invalid(Cat("store '", tag.store, "' is tiered: take buffer = none"));
  }
  FIRN_ASSIGN(auto made, Ordered::Make(tag, parts, owners_->TermOf(tag.name), *owners_));
  owners_->Add(tag, made->own());
  return std::shared_ptr<RangedStrategy>(std::move(made));
}

void SegmentTags::Drop(const std::string& tag, const std::string& why) {
  const std::lock_guard lock(mutex_);
  const auto served = served_.find(tag);
  if (served == served_.end() || !served->second.strategy) return;
  served->second.source->Distrust(tag);
  served->second.strategy->Drop(why);
  busy_.insert(tag);
}

bool SegmentTags::Abandon(const std::string& tag) {
  const std::lock_guard lock(mutex_);
  const auto served = served_.find(tag);
  if (served == served_.end() || !served->second.strategy) return false;
  LogInfo("range_wasted").With("tag", tag)
      << "tag " << tag << " was redefined or deleted: its numbers in memory are wasted";
  served->second.strategy->Abandon();
  served->second.ending.push_back(std::move(served->second.strategy));
  busy_.insert(tag);
  return true;
}

void SegmentTags::Saw(const std::string& tag, const std::optional<TagNode>& node) {
  if (node) {
    std::unique_lock lock(mutex_);
    const auto served = served_.find(tag);
    const bool known = served != served_.end();
    if (known) served->second.deleted = node->deleted;
    const bool redefined = known && (node->deleted || served->second.form != FormOf(node->tag));
    lock.unlock();
    // The tag needs a new strategy, even if the edit is reverted before it is served.
    if (redefined && Abandon(tag) && redefined_) redefined_(tag);
    if (!node->tag.HasLedger()) return;
  }
  ledger_.Saw(tag, node);
}

void SegmentTags::Tick(BootMs now) {
  ledger_.Tick(now);
  const std::lock_guard lock(mutex_);
  std::set<std::string> busy = std::exchange(busy_, {});
  {
    const std::lock_guard stirred_lock(stirred_->mutex);
    busy.insert(stirred_->tags.begin(), stirred_->tags.end());
    stirred_->tags.clear();
  }
  if (now >= visit_all_at_) {
    visit_all_at_ = now + kVisitAllEvery;
    for (auto& [tag, served] : served_) VisitLocked(tag, served, now);
  } else {
    for (const std::string& tag : busy) {
      if (const auto served = served_.find(tag); served != served_.end()) {
        VisitLocked(tag, served->second, now);
      }
    }
  }
  LogTroublesLocked(now);
}

void SegmentTags::VisitLocked(const std::string& tag, Served& served, BootMs now) {
  const bool soon = served.strategy && served.strategy->Tick(now);
  for (const auto& strategy : served.ending) strategy->Tick(now);
  ForgetEnded(served);
  if (soon || !served.ending.empty()) busy_.insert(tag);
}

void SegmentTags::ForgetEnded(Served& served) {
  std::erase_if(served.ending, [&served](const auto& strategy) {
    if (!strategy->settled()) return false;
    served.wasted += strategy->status().wasted;
    return true;
  });
}

// Logs changes of the error that prevents a tag's numbers from arriving, at most once per
// kTellEvery.
void SegmentTags::LogTroublesLocked(BootMs now) {
  if (now < look_at_) return;
  look_at_ = now + kReadEvery;
  for (auto& [tag, served] : served_) {
    if (!served.strategy || (served.told_at && now - *served.told_at < kTellEvery)) continue;
    std::string trouble = served.strategy->status().trouble;
    if (trouble == served.trouble) continue;
    if (trouble.empty()) {
      LogInfo("store_recovered").With("tag", tag) << "tag " << tag << " gets numbers again";
    } else {
      LogWarning("store_failed").With("tag", tag)
          << "tag " << tag << " gets no numbers: " << trouble;
    }
    served.trouble = std::move(trouble);
    served.told_at = now;
  }
}

void SegmentTags::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const auto& [tag, served] : served_) {
    if (served.strategy) served.strategy->Stop();
  }
}

void SegmentTags::StopAll(Milliseconds patience) {
  Stop();
  const BootMs give_up = clock_.Boot() + patience;
  while (!settled() && clock_.Boot() < give_up) SleepFor(kSettledPoll);
  for (const auto& [tag, status] : this->status()) {
    if (status.wasted == 0) continue;
    LogInfo("range_wasted").With("tag", tag).With("numbers", status.wasted)
        << "tag " << tag << ": " << status.wasted << " numbers were taken and not used";
  }
}

bool SegmentTags::settled() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [tag, served] : served_) {
    if (served.strategy && !served.strategy->settled()) return false;
    for (const auto& strategy : served.ending) {
      if (!strategy->settled()) return false;
    }
  }
  return true;
}

// Adds up all sources, because the tag may have had another source before.
int64_t SegmentTags::WastedBySources(const std::string& tag) const {
  int64_t wasted = dated_->wasted(tag);
  for (const auto& [name, source] : sources_) wasted += source->wasted(tag);
  return wasted;
}

std::map<std::string, SegmentStatus> SegmentTags::status() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, SegmentStatus> all;
  for (const auto& [tag, served] : served_) {
    if (auto status = StatusOf(tag, served)) all.emplace(tag, *std::move(status));
  }
  return all;
}

std::optional<SegmentStatus> SegmentTags::status(const std::string& tag) const {
  const std::lock_guard lock(mutex_);
  const auto served = served_.find(tag);
  return served == served_.end() ? std::nullopt : StatusOf(tag, served->second);
}

std::optional<SegmentStatus> SegmentTags::StatusOf(const std::string& tag,
                                                   const Served& served) const {
  if (!served.strategy || served.deleted) return std::nullopt;
  SegmentStatus status = served.strategy->status();
  status.wasted += served.wasted + WastedBySources(tag);
  for (const auto& strategy : served.ending) status.wasted += strategy->status().wasted;
  status.stood_in = served.source->stood_in(tag);
  if (served.buffer == TagBuffer::kOwner) {
    TagOwner owner = owners_->OwnerOf(tag);
    status.owner = std::move(owner.address);
    status.owner_since = owner.since;
  }
  return status;
}

std::map<std::string, bool> SegmentTags::stores() const {
  std::map<std::string, bool> stores;
  for (const auto& [name, source] : sources_) stores[name] = source->permits_no_buffer();
  return stores;
}

std::set<std::string> SegmentTags::stand_ins() const {
  std::set<std::string> stores;
  for (const auto& [name, source] : sources_) {
    if (source->permits_stand_in()) stores.insert(name);
  }
  return stores;
}

}  // namespace firn
