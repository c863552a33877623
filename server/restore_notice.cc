#include "server/restore_notice.h"

namespace firn {
namespace {

constexpr Milliseconds kRetry{1'000};

}  // namespace

std::string RestoreNotice::Take(BootMs now, bool required,
                                const std::function<std::string()>& command) {
  if (!required) {
    if (now - required_at_ >= kLasting) since_.reset();
    return {};
  }
  required_at_ = now;
  if (!since_) since_ = now;
  if (now - *since_ < kLasting || now < next_) return {};
  next_ = now + kRetry;
  std::string text = command();
  if (text.empty()) return {};
  next_ = now + kLogEvery;
  return text;
}

}  // namespace firn
