#include "server/issue/segment/owner_source.h"

#include <algorithm>
#include <new>
#include <utility>

#include "common/base/cat.h"

namespace firn {

void OwnerSource::Take(const TagDefinition& tag, int64_t, TakeDone done) {
  {
    const std::lock_guard lock(mutex_);
    request_ = {tag, std::move(done), clock_.Boot()};
  }
  if (stir_) stir_();
  Continue();
}

void OwnerSource::Continue() {
  EndLateAttempt();
  std::unique_lock lock(mutex_);
  if (!request_ || asking_ != 0) return;
  const TagDefinition tag = request_->tag;
  const BootMs now = clock_.Boot();
  const int64_t change = owner_.ChangeOf(tag.name);
  if (change != change_) request_->pause = {};
  if (now < request_->next_at && change == change_ && !own_->owns()) return;
  const uint64_t ask = asking_ = ++asks_;
  asked_at_ = now;
  change_ = change;
  lock.unlock();
  try {
    if (own_->owns()) return Settle(ask, own_->Take(CountFor(ask)));
    const auto count = [weak = weak_from_this(), ask] {
      const auto self = weak.lock();
      return self == nullptr ? 1 : self->CountFor(ask);
    };
    owner_.Take(tag, count, [weak = weak_from_this(), ask](const Result<Range>& answer) {
      if (const auto self = weak.lock()) self->Settle(ask, answer);
    });
  } catch (const std::bad_alloc&) {
    Settle(ask, Range{});
  }
}

// Called when the attempt is sent, which may be later than it began. Counts with the lock, so that
// the attempt cannot end meanwhile.
int64_t OwnerSource::CountFor(uint64_t ask) {
  const std::lock_guard lock(mutex_);
  if (ask != asking_) return 1;
  asked_at_ = clock_.Boot();
  return count_();
}

void OwnerSource::EndLateAttempt() {
  std::unique_lock lock(mutex_);
  const uint64_t ask = asking_;
  if (!request_ || ask == 0) return;
  const bool in_time = clock_.Boot() - asked_at_ < kLate;
  if (in_time && change_ == owner_.ChangeOf(request_->tag.name)) return;
  lock.unlock();
  Settle(ask, Range{});
}

void OwnerSource::Close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  if (asking_ != 0) return;  // the answer ends the request
  lock.unlock();
  Settle(0, Range{});
}

void OwnerSource::Settle(uint64_t ask, Result<Range> answer) {
  std::unique_lock lock(mutex_);
  if (ask != asking_) return;
  asking_ = 0;
  if (!request_) return;
  // The owner may not have read the tag, or its raised start, yet.
  const bool below = answer.ok() && answer->begin < request_->tag.start.value_or(1);
  if (below || (answer.ok() && answer->empty()) || answer.code() == Code::kNotFound) {
    const BootMs now = clock_.Boot();
    request_->next_at = now + request_->pause;
    request_->pause = std::clamp(2 * request_->pause, Milliseconds(10), kPauseMax);
    if (now - request_->since < kHold && !closed_) return;
    answer = Unavailable(
        WhyNone(request_->tag.name, answer.ok() ? std::string() : answer.status().message()));
  }
  const TakeDone done = std::move(request_->done);
  request_.reset();
  lock.unlock();
  done(std::move(answer));
}

std::string OwnerSource::WhyNone(const std::string& tag, const std::string& reason) const {
  const bool knows = owner_.Knows(tag);
  std::string trouble = knows && !reason.empty() ? reason : owner_.Trouble(tag);
  if (trouble.empty()) trouble = reason;
  return Cat(knows ? "the owner of this tag's numbers has given none for two seconds"
                   : "no owner of this tag's numbers answers this server",
             trouble.empty() ? "" : ": ", trouble);
}

}  // namespace firn
