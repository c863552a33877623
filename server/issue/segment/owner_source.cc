#include "server/issue/segment/owner_source.h"

#include <utility>

namespace firn {

void OwnerSource::Take(const TagDefinition& tag, int64_t size, TakeDone done) {
  {
    const std::lock_guard lock(mutex_);
    request_ = {tag, size, std::move(done), clock_.Boot()};
  }
  Continue();
}

void OwnerSource::Continue() {
  std::unique_lock lock(mutex_);
  if (!request_ || asking_) return;
  asking_ = true;
  const TagDefinition tag = request_->tag;
  const int64_t size = request_->size;
  lock.unlock();
  if (own_->owns()) return Settle(own_->Take(size));
  owner_.Take(tag, size, [weak = weak_from_this()](const Result<Range>& answer) {
    if (const auto self = weak.lock()) self->Settle(answer);
  });
}

void OwnerSource::Close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  if (asking_) return;  // its answer ends the request
  lock.unlock();
  Settle(Range{});
}

void OwnerSource::Settle(Result<Range> answer) {
  std::unique_lock lock(mutex_);
  asking_ = false;
  if (!request_) return;
  // An owner that has not read a raised start yet.
  const bool below = answer.ok() && answer->begin < request_->tag.start.value_or(1);
  if (answer.ok() && (answer->empty() || below)) {
    if (clock_.Boot() - request_->since < kHold && !closed_) return;
    answer = Unavailable("no server has owned the tag's numbers for two seconds");
  }
  const TakeDone done = std::move(request_->done);
  request_.reset();
  lock.unlock();
  done(std::move(answer));
}

}  // namespace firn
