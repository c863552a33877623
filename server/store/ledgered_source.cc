#include "server/store/ledgered_source.h"

#include <utility>

#include <glog/logging.h>

#include "common/base/cat.h"

namespace firn {
namespace {

// A store is not believed: what it gives must be what it was asked for.
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
};

LedgeredSource::LedgeredSource(std::unique_ptr<RangeStore> store, Ledger& ledger,
                               PostToControl control, PostToStore post)
    : store_(std::move(store)),
      ledger_(ledger),
      control_(std::move(control)),
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
  ledger_.Begin(errand->tag, [this, errand](Result<int64_t> begin) {
    if (!begin.ok()) return errand->done(begin.status());
    AskStore(errand, *begin);
  });
}

void LedgeredSource::AskStore(const std::shared_ptr<Errand>& errand, int64_t at_least) {
  const bool posted = post_([this, errand, at_least] {
    control_([this, errand, range = CallStore(*errand, at_least)] {
      if (range.ok()) return Cover(errand, range.value());
      errand->done(range.status().WithContext("store " + std::string(store_->name())));
    });
  });
  if (!posted) errand->done(Unavailable("store " + std::string(store_->name()) + " is busy"));
}

// On the store's thread. What a store throws is a failure like any other.
Result<Range> LedgeredSource::CallStore(const Errand& errand, int64_t at_least) {
  try {
    if (!checked_.contains(errand.tag.name)) {
      FIRN_TRY(store_->Check(errand.tag));
      checked_.insert(errand.tag.name);
    }
    FIRN_ASSIGN(const Range range, store_->Advance(errand.tag, at_least, errand.size));
    FIRN_TRY(CheckGiven(range, at_least, errand.size));
    return range;
  } catch (const std::exception& e) {
    return Unknown(std::string("it threw: ") + e.what());
  } catch (...) {
    return Unknown("it threw something that says nothing of itself");
  }
}

void LedgeredSource::Cover(const std::shared_ptr<Errand>& errand, Range range) {
  ledger_.Cover(errand->tag, range, [this, errand, range](const Status& covered) {
    if (covered.ok()) return errand->done(range);
    waste_.Add(errand->tag.name, range.size());
    const bool overtaken = covered.code() == Code::kConflict && ++errand->tries < kTriesMax;
    if (overtaken) return AskLedger(errand);
    errand->done(covered.code() == Code::kConflict ? Unavailable(covered.message()) : covered);
  });
}

}  // namespace firn
