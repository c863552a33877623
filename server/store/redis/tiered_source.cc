#include "server/store/redis/tiered_source.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"

namespace firn {

struct TieredSource::Errand {
  TagDefinition tag;
  int64_t size = 0;
  TakeDone done;
  int tries = 0;
  uint64_t distrusts = 0;  // of the tag, when it began
  std::string cluster{};
};

int64_t NextSegmentSize(const TagDefinition& tag, int64_t step, Milliseconds lasts) {
  const Milliseconds hold = std::chrono::minutes(tag.hold_minutes);
  if (step > 0 && lasts < hold) step = step > tag.step_max / 2 ? tag.step_max : step * 2;
  if (lasts > 2 * hold) step /= 2;
  return std::clamp(step, tag.step, tag.step_max);
}

TieredSource::TieredSource(std::string name, std::unique_ptr<TieredHash> hash,
                           std::unique_ptr<RangeSource> durable, AskLedger ledger,
                           PostToControl control, Alarm alarm)
    : name_(std::move(name)),
      hash_(std::move(hash)),
      durable_(std::move(durable)),
      ledger_(std::move(ledger)),
      control_(std::move(control)),
      alarm_(std::move(alarm)) {}

TieredSource::~TieredSource() { Stop(); }

Status TieredSource::Busy() const { return Unavailable("store " + name_ + " is busy"); }

Status TieredSource::Stopped() const {
  return Unavailable("store " + name_ + ": the tag's ledger must be read again");
}

void TieredSource::Take(const TagDefinition& tag, int64_t size, TakeDone done) {
  const auto errand = std::make_shared<Errand>(Errand{tag, size, std::move(done)});
  control_([this, errand] { Begin(errand); });
}

void TieredSource::Distrust(const std::string& tag) {
  Known& known = known_[tag];
  known.cluster.clear();
  known.clear = true;
  ++known.distrusts;
  durable_->Distrust(tag);
}

bool TieredSource::Distrusted(const Errand& errand) {
  return known_[errand.tag.name].distrusts != errand.distrusts;
}

void TieredSource::Begin(const std::shared_ptr<Errand>& errand) {
  const Known& known = known_[errand->tag.name];
  errand->distrusts = known.distrusts;
  errand->cluster = known.cluster;
  if (!known.cluster.empty()) return AskHash(errand);
  ledger_(errand->tag, [this, errand](const Result<LedgerPlace>& place) {
    if (!place.ok()) return errand->done(place.status());
    OnPlace(errand, *place);
  });
}

void TieredSource::OnPlace(const std::shared_ptr<Errand>& errand, const LedgerPlace& place) {
  if (Distrusted(*errand)) return errand->done(Stopped());
  errand->cluster = place.cluster;
  if (!known_[errand->tag.name].clear) return Trust(errand);
  const bool posted = thread_.Post([this, errand] {
    control_([this, errand, cleared = hash_->Clear(errand->tag, errand->cluster)] {
      if (!cleared.ok()) return errand->done(cleared.WithContext("store " + name_));
      if (Distrusted(*errand)) return errand->done(Stopped());
      Trust(errand);
    });
  });
  if (!posted) errand->done(Busy());
}

void TieredSource::Trust(const std::shared_ptr<Errand>& errand) {
  Known& known = known_[errand->tag.name];
  known.clear = false;
  known.cluster = errand->cluster;
  AskHash(errand);
}

void TieredSource::GiveBack(const TagDefinition&, Range, GiveBackDone done) {
  control_([done = std::move(done), name = name_] {
    done(Invalid("store " + name + " takes nothing back"));
  });
}

void TieredSource::AskHash(const std::shared_ptr<Errand>& errand) {
  if (errand->tries++ == kTriesMax) {
    return errand->done(Unavailable("store " + name_ + ": other servers took all new numbers"));
  }
  const bool posted = thread_.Post([this, errand] {
    control_([this, errand, taken = hash_->Take(errand->tag, errand->cluster, errand->size)] {
      if (taken.ok()) return OnTaken(errand, taken.value_or({}));
      errand->done(taken.status().WithContext("store " + name_));
    });
  });
  if (!posted) errand->done(Busy());
}

void TieredSource::OnTaken(const std::shared_ptr<Errand>& errand, const TieredHash::Taken& taken) {
  if (Distrusted(*errand)) {
    waste_.Add(errand->tag.name, taken.range.size());
    return errand->done(Stopped());
  }
  const int64_t size =
      std::max(errand->size, NextSegmentSize(errand->tag, taken.step, taken.lasts));
  if (!taken.range.empty()) {
    if (taken.bring) Bring(errand, size, [](const Status&) {});
    const Status rises = CheckRises(errand->tag, taken.range);
    return errand->done(rises.ok() ? Result<Range>(taken.range) : rises);
  }
  if (known_[errand->tag.name].end == TieredHash::kNumbersEnd) {
    return errand->done(Exhausted("Redis counts to 2^53 only"));
  }
  if (!taken.bring) {
    return errand->done(Unavailable("store " + name_ + ": another server is bringing numbers"));
  }
  Bring(errand, size, [this, errand](const Status& brought) {
    // Another server's segment serves as well.
    if (brought.ok() || brought.code() == Code::kConflict) return AskHash(errand);
    errand->done(brought);
  });
}

// Prevents this server from giving a number twice, whatever happens to Redis.
Status TieredSource::CheckRises(const TagDefinition& tag, Range range) {
  int64_t& end = known_[tag.name].end;
  if (range.begin >= end) {
    end = range.end;
    known_[tag.name].unfilled = 0;
    return {};
  }
  alarm_(Cat("tag ", tag.name, ": Redis gave ", range.begin, " again, after ", end,
             "; its hash was edited or put back from a backup. Delete it"));
  return Corrupt("store " + name_ + " gave numbers that were given before");
}

// Asks the ledger first, because a segment beyond the end of Redis's numbers would be lost.
void TieredSource::Bring(const std::shared_ptr<Errand>& errand, int64_t size, StatusDone done) {
  ledger_(errand->tag, [this, errand, size, done = std::move(done)](Result<LedgerPlace> place) {
    if (!place.ok()) return done(place.status());
    const int64_t left = TieredHash::kNumbersEnd - place->begin;
    if (left <= 0) return done(Exhausted("Redis counts to 2^53 only"));
    durable_->Take(errand->tag, std::min(size, left),
                   [this, errand, ledger = place->begin, done](Result<Range> segment) {
                     if (!segment.ok()) return done(segment.status());
                     Fill(errand, *segment, ledger, done);
                   });
  });
}

void TieredSource::Fill(const std::shared_ptr<Errand>& errand, Range segment, int64_t ledger,
                        const StatusDone& done) {
  const bool good = !Distrusted(*errand);
  const bool posted = good && thread_.Post([this, errand, segment, ledger, done] {
    auto filled = hash_->Fill(errand->tag, errand->cluster, segment);
    control_([this, errand, segment, ledger, done, filled = std::move(filled)] {
      OnFilled(errand->tag.name, segment, ledger, filled);
      done(filled.status());
    });
  });
  if (posted) return;
  const Status why = good ? Busy() : Stopped();
  OnFilled(errand->tag.name, segment, ledger, why);
  done(why);
}

// If Redis has lost the hash, counts as waste what lies between the last numbers that this server
// took and `ledger`, read before the segment was taken. What others have taken since is included.
void TieredSource::OnFilled(const std::string& tag, Range segment, int64_t ledger,
                            const Result<TieredHash::Filled>& filled) {
  Known& known = known_[tag];
  if (!filled.ok()) {
    known.unfilled += segment.size();
    return waste_.Add(tag, segment.size());
  }
  waste_.Add(tag, filled->thrown_away);
  if (!filled->was_empty || known.end == 0) return;
  waste_.Add(tag, std::max<int64_t>(0, ledger - known.end - known.unfilled));
  known.end = std::max(known.end, ledger);
  known.unfilled = 0;
}

}  // namespace firn
