#include "server/store/table/failover_connection.h"

#include <optional>

#include "common/base/cat.h"

namespace firn {

Status FailoverConnection::Open() {
  Close();
  bool away = false;
  std::optional<Status> failure;
  for (size_t tried = 0; tried < servers_.size(); ++tried) {
    Status opened = server().Open();
    if (opened.ok()) {
      away_ = false;
      return opened;
    }
    away = away || server().away();
    if (!failure) {
      failure = std::move(opened);
    } else {
      const bool later = opened.code() == Code::kUnavailable;
      failure = Status(later ? Code::kUnavailable : failure->code(),
                       Cat(failure->message(), ", ", opened.message()));
    }
    at_ = (at_ + 1) % servers_.size();
  }
  away_ = away;
  return *failure;
}

}  // namespace firn
