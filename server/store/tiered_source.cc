#include "server/store/tiered_source.h"

#include <algorithm>
#include <utility>

namespace firn {

struct TieredSource::Errand {
  TagDefinition tag;
  int64_t size = 0;
  TakeDone done;
  int tries = 0;
};

int64_t NextSegmentSize(const TagDefinition& tag, int64_t step, Milliseconds lasts) {
  const Milliseconds hold = std::chrono::minutes(tag.hold_minutes);
  if (step > 0 && lasts < hold) step = step > tag.step_max / 2 ? tag.step_max : step * 2;
  if (lasts > 2 * hold) step /= 2;
  return std::clamp(step, tag.step, tag.step_max);
}

TieredSource::TieredSource(std::string name, std::unique_ptr<TieredHash> hash,
                           std::unique_ptr<RangeSource> durable, PostToControl control, Alarm alarm)
    : name_(std::move(name)),
      hash_(std::move(hash)),
      durable_(std::move(durable)),
      control_(std::move(control)),
      alarm_(std::move(alarm)) {}

TieredSource::~TieredSource() { Stop(); }

Status TieredSource::Busy() const { return Unavailable("store " + name_ + " is busy"); }

void TieredSource::Take(const TagDefinition& tag, int64_t size, TakeDone done) {
  const auto errand = std::make_shared<Errand>(Errand{tag, size, std::move(done)});
  control_([this, errand] { AskHash(errand); });
}

void TieredSource::GiveBack(const TagDefinition&, Range, GiveBackDone done) {
  control_([done = std::move(done), name = name_] {
    done(Invalid("store " + name + " takes nothing back"));
  });
}

void TieredSource::AskHash(const std::shared_ptr<Errand>& errand) {
  if (errand->tries++ == kTriesMax) {
    return errand->done(Unavailable("store " + name_ + ": others took all that was brought"));
  }
  const bool posted = thread_.Post([this, errand] {
    control_([this, errand, taken = hash_->Take(errand->tag, errand->size)] {
      if (taken.ok()) return OnTaken(errand, taken.value_or({}));
      errand->done(taken.status().WithContext("store " + name_));
    });
  });
  if (!posted) errand->done(Busy());
}

void TieredSource::OnTaken(const std::shared_ptr<Errand>& errand, const TieredHash::Taken& taken) {
  const TagDefinition& tag = errand->tag;
  const int64_t size = std::max(errand->size, NextSegmentSize(tag, taken.step, taken.lasts));
  if (!taken.range.empty()) {
    if (taken.bring) Bring(tag, size, [](const Status&) {});
    const Status rises = CheckRises(tag, taken.range);
    return errand->done(rises.ok() ? Result<Range>(taken.range) : rises);
  }
  if (!taken.bring) {
    return errand->done(Unavailable("store " + name_ + ": another server is bringing numbers"));
  }
  Bring(tag, size, [this, errand](const Status& brought) {
    // Somebody else's segment is as good as ours.
    if (brought.ok() || brought.code() == Code::kConflict) return AskHash(errand);
    errand->done(brought);
  });
}

// Whatever happens to Redis, this server does not give a number twice.
Status TieredSource::CheckRises(const TagDefinition& tag, Range range) {
  int64_t& end = ends_[tag.name];
  if (range.begin >= end) {
    end = range.end;
    return {};
  }
  alarm_("tag " + tag.name + ": Redis gave " + std::to_string(range.begin) + " again, after " +
         std::to_string(end) + "; its hash was edited or put back from a backup. Delete it");
  return Corrupt("store " + name_ + " gave numbers that were given before");
}

void TieredSource::Bring(const TagDefinition& tag, int64_t size, std::function<void(Status)> done) {
  durable_->Take(tag, size, [this, tag, done = std::move(done)](Result<Range> segment) {
    if (!segment.ok()) return done(segment.status());
    Fill(tag, *segment, done);
  });
}

void TieredSource::Fill(const TagDefinition& tag, Range segment,
                        const std::function<void(Status)>& done) {
  const bool posted = thread_.Post([this, tag, segment, done] {
    control_([this, segment, done, lost = hash_->Fill(tag, segment)] {
      wasted_.fetch_add(lost.ok() ? lost.value_or(0) : segment.size(), std::memory_order_relaxed);
      done(lost.status());
    });
  });
  if (posted) return;
  wasted_.fetch_add(segment.size(), std::memory_order_relaxed);
  done(Busy());
}

}  // namespace firn
