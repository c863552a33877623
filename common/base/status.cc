#include "common/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace firn {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not found";
    case Code::kConflict:
      return "conflict";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kUnknown:
      return "unknown outcome";
    case Code::kExhausted:
      return "exhausted";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kDenied:
      return "denied";
    case Code::kInternal:
      return "internal";
  }
  return "no such code";
}

Status Status::WithContext(std::string_view context) && {
  if (!ok()) message_.insert(0, std::string(context) + ": ");
  return std::move(*this);
}

Status Status::WithContext(std::string_view context) const& {
  return Status(*this).WithContext(context);
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  return std::string(CodeName(code_)) + ": " + message_;
}

std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << status.ToString();
}

void Die(std::string_view why) {
  std::fprintf(stderr, "firn: %.*s\n", static_cast<int>(why.size()), why.data());
  std::abort();
}

}  // namespace firn
