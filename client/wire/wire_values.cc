#include "client/wire/wire_values.h"

#include <algorithm>
#include <cstring>

#include "common/base/cat.h"
#include "common/net/endpoint.h"
#include "thrift/gen/IdService.h"

namespace firn::client {
namespace {

// Returns a peer's enumeration value as a number: loading it as the enumeration is undefined
// behaviour if no enumerator has that value.
template <typename Enum>
int NumberOf(const Enum& sent) {
  static_assert(sizeof sent == sizeof(int));
  int number;
  std::memcpy(&number, &sent, sizeof number);
  return number;
}

// Ignores values that a later version may add.
Reason ReasonOf(int number) {
  switch (number) {
    case wire::Reason::BAD_REQUEST:
      return Reason::kBadRequest;
    case wire::Reason::UNKNOWN_TAG:
      return Reason::kUnknownTag;
    case wire::Reason::NOT_READY:
      return Reason::kNotReady;
    case wire::Reason::CLOCK:
      return Reason::kClock;
    case wire::Reason::OVERLOADED:
      return Reason::kOverloaded;
    case wire::Reason::EXHAUSTED:
      return Reason::kExhausted;
    case wire::Reason::DRAINING:
      return Reason::kDraining;
    case wire::Reason::REJECTED:
      return Reason::kRejected;
    case wire::Reason::STORE_DOWN:
      return Reason::kStoreDown;
    default:
      return Reason::kInternal;
  }
}

std::string WrongCount(int64_t got, int64_t asked) {
  return Cat(got, " ids came, ", asked, " were asked for");
}

// Treats values that a later version may add as not ready.
ServerPhase PhaseOf(int number) {
  switch (number) {
    case wire::ServerState::READY:
      return ServerPhase::kReady;
    case wire::ServerState::OFFLINE:
      return ServerPhase::kOffline;
    case wire::ServerState::DRAINING:
      return ServerPhase::kDraining;
    default:
      return ServerPhase::kNotReady;
  }
}

std::optional<uint64_t> Optional(bool given, int32_t value) {
  return given ? std::optional(static_cast<uint64_t>(value)) : std::nullopt;
}

}  // namespace

Outcome FromWire(const wire::Refusal& refusal) {
  constexpr int32_t kAdviceMsMax = 60'000;
  Outcome outcome = Outcome::Of(AttemptEnd::kRefused, refusal.message);
  outcome.refusal = ReasonOf(NumberOf(refusal.reason));
  outcome.retry_after = Milliseconds(std::clamp(refusal.retry_after_ms, 0, kAdviceMsMax));
  outcome.another_may_help = refusal.another_server_may_help;
  return outcome;
}

std::vector<IdRun> FromWire(const std::vector<wire::IdRun>& runs) {
  std::vector<IdRun> made;
  made.reserve(runs.size());
  for (const wire::IdRun& run : runs) made.push_back({run.first, run.count, run.stride});
  return made;
}

Explanation FromWire(const wire::IdFields& fields) {
  return {.id = fields.id,
          .layout = fields.layout,
          .fields = {.tick = Tick(fields.ticks),
                     .machine = MachineId(static_cast<uint32_t>(fields.machine)),
                     .sequence = static_cast<uint64_t>(fields.sequence),
                     .version = Optional(fields.__isset.version, fields.version),
                     .type = Optional(fields.__isset.type, fields.type),
                     .method = Optional(fields.__isset.method, fields.method)},
          .time = WallMs(fields.time_ms),
          .utc = fields.time_text,
          .worker = static_cast<uint32_t>(fields.worker),
          .rack = static_cast<uint32_t>(fields.rack)};
}

ServerFacts FromWire(const wire::ServerStatus& status) {
  ServerFacts facts{.cluster_uuid = status.cluster_uuid,
                    .cluster_name = status.cluster_name,
                    .layout = status.layout,
                    .draining = NumberOf(status.state) == wire::ServerState::DRAINING,
                    .wall = WallMs(status.wall_ms),
                    .own_numbers = {},
                    .timed = {}};
  for (const wire::TagStatus& tag : status.tags) {
    if (tag.strategy != "snowflake") {
      facts.own_numbers.insert(tag.tag);
    } else if (tag.as_issued) {
      facts.timed.insert(tag.tag);
    }
  }
  return facts;
}

ToldServers FromWire(const wire::ServerList& told) {
  ToldServers made{.version = told.version,
                   .age = Milliseconds(std::max(0, told.age_ms)),
                   .ask_again = Milliseconds(std::max(0, told.ask_again_ms))};
  if (!told.__isset.servers) return made;
  ServerList& list = made.list.emplace();
  list.cluster.uuid = told.cluster_uuid;
  for (const wire::ServerEntry& entry : told.servers) {
    if (list.servers.size() == ServerList::kServersMax) break;
    if (!Endpoint::Parse(entry.address).ok()) continue;
    list.servers.push_back({.address = entry.address,
                            .rack = static_cast<uint32_t>(std::max(0, entry.rack)),
                            .weight = std::max(0, entry.weight),
                            .disabled = !entry.online,
                            .phase = PhaseOf(NumberOf(entry.state)),
                            .tls = entry.tls});
  }
  return made;
}

std::optional<std::string> FaultOf(const std::vector<int64_t>& ids, int64_t count) {
  const auto got = static_cast<int64_t>(ids.size());
  if (got != count) return WrongCount(got, count);
  const auto not_ascending = [](int64_t a, int64_t b) { return a >= b; };
  if (std::adjacent_find(ids.begin(), ids.end(), not_ascending) == ids.end()) return std::nullopt;
  std::vector<int64_t> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return std::nullopt;
  return Cat("its answer contains id ", *twice, " twice");
}

std::optional<std::string> FaultOf(const std::vector<IdRun>& runs, int64_t count) {
  int64_t got = 0, span = 0, last = INT64_MIN;
  for (const IdRun& run : runs) {
    if (run.count < 1 || run.stride < 1) return "a run is empty or does not ascend";
    if (&run != &runs.front() && run.first <= last) {
      return Cat("a run begins at ", run.first, ", but the run before it ends at ", last);
    }
    if (__builtin_mul_overflow(run.count - 1, run.stride, &span) ||
        __builtin_add_overflow(run.first, span, &last) ||
        __builtin_add_overflow(got, run.count, &got)) {
      return "a run exceeds the largest 64-bit id";
    }
  }
  if (got != count) return WrongCount(got, count);
  return std::nullopt;
}

}  // namespace firn::client
