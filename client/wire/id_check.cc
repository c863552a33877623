#include "client/wire/id_check.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/time/civil_time.h"

namespace firn::client {
namespace {

// After the last time of every layout, and far enough from the type's limit to avoid overflow.
constexpr WallMs kWallMax{int64_t{1} << 60};

bool IsSigned(const Layout& layout) {
  const Field* version = layout.Find(FieldKind::kVersion);
  return version != nullptr && version->shift + version->width == 64;
}

}  // namespace

IdCheck::IdCheck(const ServerFacts& facts, Micros said)
    : timed_(facts.timed), wall_(std::clamp(facts.wall, WallMs(0), kWallMax)), said_(said) {
  Result<Layout> layout = Layout::Parse(facts.layout);
  if (!layout.ok()) return;
  layout_ = *std::move(layout);
  signed_ids_ = IsSigned(*layout_);
}

std::optional<std::string> IdCheck::FaultOf(const Ask& ask, const Reply& reply, Micros now) const {
  const bool timed = layout_ && timed_.contains(ask.tag);
  // The reply object is reused: only the method's fields belong to this answer.
  if (ask.method == Ask::Method::kGetId) return FaultOf(reply.id, timed, now);
  if (ask.method == Ask::Method::kGetIds) {
    for (const int64_t id : reply.ids) {
      if (auto fault = FaultOf(id, timed, now)) return fault;
    }
  }
  if (ask.method == Ask::Method::kGetRuns) {
    for (const IdRun& run : reply.runs) {
      if (auto fault = FaultOf(run.first, timed, now)) return fault;
      if (auto fault = FaultOf(run.At(run.count - 1), timed, now)) return fault;
    }
  }
  return std::nullopt;
}

std::optional<std::string> IdCheck::FaultOf(int64_t id, bool timed, Micros now) const {
  const auto fault = [id](const std::string& why) {
    return Cat(id, " cannot be an id of this cluster", why);
  };
  if (!CanBe(id)) return fault("");
  if (!timed) return std::nullopt;
  const Result<IdFields> fields = layout_->Unpack(id);
  if (!fields.ok()) return fault(": " + fields.status().message());
  const WallMs at = layout_->StartOf(fields->tick);
  const WallMs wall = wall_ + std::chrono::duration_cast<Milliseconds>(now - said_);
  if (at > wall + kSlack || wall > at + kSlack) {
    return fault(Cat(": its time is ", FormatRfc3339(at), ", the server's clock says ",
                     FormatRfc3339(wall)));
  }
  return std::nullopt;
}

}  // namespace firn::client
