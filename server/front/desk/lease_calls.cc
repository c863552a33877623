#include "server/front/desk/lease_calls.h"

#include "common/base/cat.h"
#include "common/time/civil_time.h"

namespace firn::front {
namespace {

constexpr int32_t kRepeatInMs = 200;
constexpr Milliseconds kAheadMax{86'400'000};
// Longer texts are refused before they are copied into the control thread's queue.
constexpr size_t kTokenBytesMax = 32;
constexpr size_t kNameBytesMax = 64;
constexpr size_t kLeaseBytesMax = 640;  // contains the server's address

LeaseResult ResultOf(const LeaseReply& reply) {
  const auto fault = [&](int number, std::string_view name, int http_status) {
    return LeaseRefusal{number, name, http_status, reply.message, reply.terms.server};
  };
  switch (reply.verdict) {
    case LeaseVerdict::kGranted:
      return reply.terms;
    case LeaseVerdict::kEnded:
      return LeaseEnded();
    case LeaseVerdict::kBadRequest:
      return Refusal{Reason::kBadRequest, reply.message, 0, false};
    case LeaseVerdict::kLater:
    case LeaseVerdict::kLimit:
      return Refusal{Reason::kNotReady, reply.message,
                     static_cast<int32_t>(reply.retry_after.count()), !reply.claiming};
    case LeaseVerdict::kUnknown:
      return fault(1, "UNKNOWN_LEASE", 404);
    case LeaseVerdict::kOutdated:
      return fault(2, "OUTDATED", 409);
    case LeaseVerdict::kRevoked:
      return fault(3, "REVOKED", 410);
    case LeaseVerdict::kElsewhere:
      return fault(4, "ANOTHER_SERVERS", 421);
    case LeaseVerdict::kRefused:
      return fault(5, "NO_LEASES", 503);
  }
  Die("an unknown verdict on a lease");
}

Status CheckLength(std::string_view name, const std::string& text, size_t bytes_max) {
  return text.size() > bytes_max ? Invalid(Cat(name, " is longer than ", bytes_max, " bytes"))
                                 : Status();
}

Status CheckText(std::string_view name, const std::string& text, size_t bytes_max) {
  return text.empty() ? Invalid(Cat(name, " is missing")) : CheckLength(name, text, bytes_max);
}

// Refuses times that would overflow sums.
Status CheckTimes(WallMs clock, const std::optional<Milliseconds>& given) {
  if (!InCalendar(clock)) return Invalid("clock_ms is not a time of this calendar");
  const Milliseconds ahead = given.value_or(kLeaseAhead);
  if (ahead < Milliseconds(0)) return Invalid("ahead_ms is negative");
  if (ahead > kAheadMax) return Invalid("ahead_ms is more than a day");
  return {};
}

}  // namespace

LeaseCalls::LeaseCalls(const Backend& backend, LeaseDesk* leases) : leases_(leases) {
  if (backend.rights != nullptr) rights_.emplace(*backend.rights);
}

std::optional<LeaseResult> LeaseCalls::WhyNot(const DoorCall& door, LeaseClient& client) {
  if (leases_ == nullptr) {
    return ResultOf({.verdict = LeaseVerdict::kRefused, .message = "this server grants no leases"});
  }
  if (!rights_) return std::nullopt;
  std::optional<LeaseClient> permitted = rights_->PermitLeases(door.names, door.user);
  if (!permitted) {
    return Refusal{Reason::kRejected, Cat("no name of this client has the right ", kLeaseRight), 0,
                   false};
  }
  client = *std::move(permitted);
  return std::nullopt;
}

Status LeaseCalls::Check(const LeaseCall& call) {
  if (const auto* ask = std::get_if<LeaseAsk>(&call)) {
    FIRN_TRY(CheckText("token", ask->token, kTokenBytesMax));
    FIRN_TRY(CheckText("name", ask->name, kNameBytesMax));
    if (ask->rack.value_or(0) > UINT16_MAX)
      return Invalid("there is no such rack; omit it for the server's own");
    return CheckTimes(ask->clock, ask->ahead);
  }
  if (const auto* renewal = std::get_if<LeaseRenewal>(&call)) {
    FIRN_TRY(CheckText("lease", renewal->lease, kLeaseBytesMax));
    FIRN_TRY(CheckText("turn", renewal->turn, kTokenBytesMax));
    FIRN_TRY(CheckLength("acknowledged", renewal->acknowledged, kTokenBytesMax));
    return CheckTimes(renewal->clock, renewal->ahead);
  }
  const auto& end = std::get<LeaseEnd>(call);
  FIRN_TRY(CheckText("lease", end.lease, kLeaseBytesMax));
  FIRN_TRY(CheckLength("turn", end.turn, kTokenBytesMax));
  // A lessee that has used no tick reports the one before its first.
  const bool valid = !end.used || (*end.used >= Tick(-1) && *end.used <= Tick(INT64_MAX / 2));
  return valid ? Status() : Invalid("used_tick is not a tick");
}

std::optional<LeaseResult> LeaseCalls::Continue(const LeaseAnswer& waiting, const DoorCall& door) {
  if (const LeaseReply* const reply = waiting.Get()) return ResultOf(*reply);
  if (door.last) {
    return Refusal{Reason::kNotReady, "no answer yet; repeat the request", kRepeatInMs, true};
  }
  return std::nullopt;
}

}  // namespace firn::front
