#include "server/store/redis/tiered_source.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/log/log.h"

namespace firn {

struct TieredSource::Errand {
  TagDefinition tag;
  int64_t size = 0;
  TakeDone done;
  int tries = 0;
  uint64_t distrusts = 0;  // the tag's value of `distrusts` when the errand began
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
  known.connection = 0;
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
  return known.connection == 0 ? Fence(errand) : AskHash(errand);
}

// Reads the ledger. If that fails, the errand fails.
void TieredSource::Fence(const std::shared_ptr<Errand>& errand) {
  ledger_(errand->tag, [this, errand](const Result<LedgerPlace>& place) {
    if (!place.ok()) return errand->done(place.status());
    OnPlace(errand, *place);
  });
}

void TieredSource::OnPlace(const std::shared_ptr<Errand>& errand, const LedgerPlace& place) {
  if (Distrusted(*errand)) return errand->done(Stopped());
  errand->cluster = place.cluster;
  const Known& known = known_[errand->tag.name];
  const int64_t least = known.clear ? TieredHash::kEverything : std::max(place.begin, known.end);
  const bool posted = thread_.Post([this, errand, least] {
    control_([this, errand, least, fenced = hash_->Fence(errand->tag, errand->cluster, least)] {
      if (!fenced.ok()) return errand->done(fenced.status().WithContext("store " + name_));
      OnFenced(errand, *fenced, least);
    });
  });
  if (!posted) errand->done(Busy());
}

void TieredSource::OnFenced(const std::shared_ptr<Errand>& errand, const TieredHash::Fenced& fenced,
                            int64_t least) {
  if (Distrusted(*errand)) return errand->done(Stopped());
  if (fenced.cleared && least != TieredHash::kEverything) {
    LogWarning("store_behind").With("tag", errand->tag.name).With("store", name_)
        << "tag " << errand->tag.name << ": the hash of store " << name_ << " ended at "
        << *fenced.cleared << ", below the ledger at " << least << ": its numbers are skipped";
  }
  Known& known = known_[errand->tag.name];
  known.clear = false;
  known.cluster = errand->cluster;
  known.connection = fenced.connection;
  AskHash(errand);
}

void TieredSource::GiveBack(const TagDefinition&, Range, GiveBackDone done) {
  control_([done = std::move(done), name = name_] {
    done(Invalid("store " + name + " takes nothing back"));
  });
}

void TieredSource::AskHash(const std::shared_ptr<Errand>& errand) {
  if (errand->tries++ == kTriesMax) {
    return errand->done(Conflict("store " + name_ + ": other servers took all new numbers"));
  }
  const Known& tag = known_[errand->tag.name];
  const TieredHash::Known known{.connection = tag.connection, .issued = tag.end};
  const bool posted = thread_.Post([this, errand, known] {
    control_(
        [this, errand, taken = hash_->Take(errand->tag, errand->cluster, errand->size, known)] {
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
  if (taken.unfenced || taken.back_at) return FenceAgain(errand, taken);
  const int64_t size =
      std::max(errand->size, NextSegmentSize(errand->tag, taken.step, taken.lasts));
  if (!taken.range.empty()) {
    if (taken.bring) Bring(errand, size, [](const Status&) {});
    Known& known = known_[errand->tag.name];
    known.end = std::max(known.end, taken.range.end);
    known.unfilled = 0;
    return errand->done(taken.range);
  }
  if (known_[errand->tag.name].end == TieredHash::kNumbersEnd) {
    return errand->done(Exhausted("Redis counts to 2^53 only"));
  }
  if (!taken.bring) {
    return errand->done(Conflict("store " + name_ + ": another server is refilling the hash"));
  }
  Bring(errand, size, [this, errand](const Status& brought) {
    // After a conflict, the hash has a segment of another server.
    if (brought.ok() || brought.code() == Code::kConflict) return AskHash(errand);
    errand->done(brought);
  });
}

// Called if the connection is new or the hash was restored from a copy. Fences the hash again, and
// clears it in the second case.
void TieredSource::FenceAgain(const std::shared_ptr<Errand>& errand,
                              const TieredHash::Taken& taken) {
  Known& known = known_[errand->tag.name];
  known.connection = 0;
  if (taken.back_at) {
    known.clear = true;
    alarm_(Cat("tag ", errand->tag.name,
               ": its hash in Redis was edited or put back from a copy: ", "it continued at ",
               *taken.back_at, ", after ", known.end, "; its numbers are skipped"));
  }
  Fence(errand);
}

// Reads the ledger first, because a segment beyond the highest number of Redis would be lost.
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
    auto filled = hash_->Fill(errand->tag, errand->cluster, segment, ledger);
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

// If Redis has lost the hash, counts the numbers between the last one that this server took and
// `ledger` as wasted. `ledger` is a reading from before this server took the segment, so the count
// includes numbers that other servers have taken since.
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
