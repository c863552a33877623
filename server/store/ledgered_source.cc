#include "server/store/ledgered_source.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/log/log.h"
#include "common/tag/numbers_left.h"

namespace firn {
namespace {

// Checks that a store's range is what was requested. Stores are not trusted.
Status CheckGiven(Range range, int64_t at_least, int64_t size) {
  const bool good = range.begin >= at_least && !range.empty() && range.size() <= size;
  if (good) return {};
  return Corrupt(Cat("it gave [", range.begin, ", ", range.end, ") when asked for ", size,
                     " numbers from ", at_least));
}

}  // namespace

struct LedgeredSource::Errand {
  TagDefinition tag;
  int64_t size = 0;
  TakeDone done;
  int tries = 0;
  Range thrown{};  // discarded, because the ledger passed its begin before Cover
};

LedgeredSource::LedgeredSource(std::unique_ptr<RangeStore> store, Ledger& ledger,
                               PostToControl control, const Clock& clock, PostToStore post)
    : store_(std::move(store)),
      ledger_(ledger),
      control_(std::move(control)),
      clock_(clock),
      post_(std::move(post)) {
  if (post_) return;
  thread_.emplace();
  post_ = [this](std::function<void()> task) { return thread_->Post(std::move(task)); };
}

LedgeredSource::~LedgeredSource() { Stop(); }

void LedgeredSource::Take(const TagDefinition& tag, int64_t size, TakeDone done) {
  const auto errand = std::make_shared<Errand>(Errand{tag, size, std::move(done)});
  control_([this, errand] { AskLedger(errand); });
}

void LedgeredSource::GiveBack(const TagDefinition&, Range, GiveBackDone done) {
  control_([done = std::move(done), name = std::string(store_->name())] {
    done(Invalid("store " + name + " takes nothing back"));
  });
}

void LedgeredSource::AskLedger(const std::shared_ptr<Errand>& errand) {
  ledger_.Where(errand->tag, [this, errand](const Result<LedgerPlace>& place) {
    CountThrown(*errand, place);
    if (!place.ok()) return errand->done(place.status());
    AskStore(errand, *place);
  });
}

// Other servers issue the part that the ledger picked while it stood in for the store, so that part
// is not wasted.
void LedgeredSource::CountThrown(Errand& errand, const Result<LedgerPlace>& place) {
  const Range thrown = std::exchange(errand.thrown, {});
  int64_t others = 0;
  if (place.ok()) {
    others = std::min(thrown.end, place->begin) - std::max(thrown.begin, place->picked);
  }
  waste_.Add(errand.tag.name, thrown.size() - std::max<int64_t>(others, 0));
}

void LedgeredSource::AskStore(const std::shared_ptr<Errand>& errand, const LedgerPlace& place) {
  const bool posted = post_([this, errand, place] {
    const Result<Range> range = CallStore(*errand, place);
    const bool away = !range.ok() && store_->away();
    control_([this, errand, range, away] { OnStore(errand, range, away); });
  });
  if (!posted) errand->done(Unavailable("store " + std::string(store_->name()) + " is busy"));
}

void LedgeredSource::OnStore(const std::shared_ptr<Errand>& errand, const Result<Range>& range,
                             bool away) {
  if (range.ok()) return Cover(errand, *range);
  const Status why = range.status().WithContext("store " + std::string(store_->name()));
  const bool stands_in = errand->tag.when_store_is_away == StoreAway::kLedger;
  if (away && stands_in) return StandIn(errand, why);
  errand->done(why);
}

void LedgeredSource::StandIn(const std::shared_ptr<Errand>& errand, const Status& why) {
  ledger_.ExtendForStore(errand->tag, errand->size, clock_.Wall(),
                         [this, errand, why](const Result<Range>& range) {
                           if (!range.ok())
                             return errand->done(range.status().WithContext(why.message()));
                           NoteStandIn(errand->tag.name, *range, why);
                           errand->done(range);
                         });
}

// Runs on the store's thread. An exception of the store counts as a failure.
Result<Range> LedgeredSource::CallStore(const Errand& errand, const LedgerPlace& place) {
  try {
    const bool caught_up = place.picked == place.begin;
    store_->Listen({.cluster = place.cluster,
                    .picked = caught_up ? std::nullopt : std::optional(place.picked)});
    if (!checked_.contains(errand.tag.name)) {
      FIRN_TRY(store_->Check(errand.tag));
      checked_.insert(errand.tag.name);
    }
    FIRN_ASSIGN(const Range range, store_->Advance(errand.tag, place.begin, errand.size));
    FIRN_TRY(CheckGiven(range, place.begin, errand.size));
    return range;
  } catch (const std::exception& e) {
    return Unknown(std::string("it threw: ") + e.what());
  } catch (...) {
    return Unknown("it threw an object that is not a std::exception");
  }
}

void LedgeredSource::Cover(const std::shared_ptr<Errand>& errand, Range range) {
  ledger_.Cover(errand->tag, range, [this, errand, range](const Status& covered) {
    if (covered.ok()) {
      NoteStore(errand->tag.name);
      return errand->done(Range{range.begin, std::min(range.end, NumbersEnd(errand->tag))});
    }
    const bool overtaken = covered.code() == Code::kConflict && ++errand->tries < kTriesMax;
    if (overtaken) {
      errand->thrown = range;
      return AskLedger(errand);
    }
    waste_.Add(errand->tag.name, range.size());
    errand->done(covered.code() == Code::kConflict ? Unavailable(covered.message()) : covered);
  });
}

// --- status --------------------------------------------------------------------------------------

StoodIn LedgeredSource::stood_in(const std::string& tag) const {
  const std::lock_guard lock(mutex_);
  const auto found = stood_in_.find(tag);
  return found == stood_in_.end() ? StoodIn{} : found->second;
}

void LedgeredSource::NoteStandIn(const std::string& tag, Range range, const Status& why) {
  const std::lock_guard lock(mutex_);
  StoodIn& stood_in = stood_in_[tag];
  if (!stood_in.since) {
    LogWarning("store_stood_in").With("tag", tag).With("store", store_->name())
        << "tag " << tag << ": the ledger provides ranges instead of its store, from number "
        << range.begin << ": " << why.message();
    stood_in.since = clock_.Wall();
  }
  ++stood_in.ranges;
  stood_in.numbers += range.size();
}

void LedgeredSource::NoteStore(const std::string& tag) {
  const std::lock_guard lock(mutex_);
  const auto found = stood_in_.find(tag);
  if (found == stood_in_.end() || !found->second.since) return;
  found->second.since.reset();
  LogInfo("store_recovered").With("tag", tag).With("store", store_->name())
      << "tag " << tag << ": store " << store_->name() << " provides its ranges again";
}

}  // namespace firn
