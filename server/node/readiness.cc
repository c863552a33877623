#include "server/node/readiness.h"

namespace firn {

void Readiness::Note(const std::optional<Refusal>& refusal, BootMs now) {
  if (!refusal) {
    why_not_.reset();
    since_.reset();
    return;
  }
  if (!why_not_) {
    if (!since_) since_ = now;
    if (now - *since_ < kStands) return;
  }
  why_not_ = refusal->message;
  since_.reset();
}

}  // namespace firn
