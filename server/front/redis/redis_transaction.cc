// RedisCommands: the commands that run several requests as one.

#include <chrono>
#include <utility>

#include "server/front/redis/redis_commands.h"
#include "server/front/redis/resp_answer.h"

namespace firn::front {
namespace {

// Limits of one turn: requests, and bytes of answers.
constexpr size_t kRequestsPerTurn = 256;
constexpr size_t kAnswersPerTurn = 64 * 1024;

// The requests were within the limits when they were queued.
constexpr RespLimits kQueued{.words_max = SIZE_MAX / 16,
                             .bytes_max = RedisTransaction::kBytesMax + 1};

}  // namespace

RedisTransaction* RedisCommands::TransactionOf(const DoorCall& door) {
  auto* const session = static_cast<RedisSession*>(door.session.get());
  return session == nullptr || !session->transaction ? nullptr : &*session->transaction;
}

ServeStep RedisCommands::Multi(Call& call) {
  if (InTransaction(call.door)) return Error(call, "MULTI calls can not be nested");
  SessionOf(call.door).transaction.emplace();
  return Ok(call);
}

ServeStep RedisCommands::Queue(RedisTransaction& transaction, std::string_view request,
                               OutBuffer& out) {
  if (transaction.requests.size() + request.size() > RedisTransaction::kBytesMax) {
    transaction.aborted = true;
    resp::AppendError("ERR",
                      "the requests of a transaction have at most 1 MiB here; send fewer, or a "
                      "pipeline without MULTI",
                      out);
    return Answered();
  }
  if (!transaction.aborted) transaction.requests += request;
  ++transaction.count;
  resp::AppendSimple("QUEUED", out);
  return Answered();
}

ServeStep RedisCommands::Discard(Call& call) {
  if (!InTransaction(call.door)) return Error(call, "DISCARD without MULTI");
  SessionOf(call.door).transaction.reset();
  return Ok(call);
}

ServeStep RedisCommands::Watch(Call& call) {
  if (InTransaction(call.door)) return Error(call, "WATCH inside MULTI is not allowed");
  return Error(call, "WATCH is not supported: a tag reveals no number that could be watched");
}

ServeStep RedisCommands::Unwatch(Call& call) { return Ok(call); }

ServeStep RedisCommands::Exec(Call& call) {
  if (!InTransaction(call.door)) return Error(call, "EXEC without MULTI");
  RedisTransaction own = *std::exchange(SessionOf(call.door).transaction, std::nullopt);
  if (own.aborted) {
    resp::AppendError("EXECABORT", "Transaction discarded because of previous errors.", call.out);
    return Answered();
  }
  resp::AppendArray(own.count, call.out);
  return RunQueued(std::move(own.requests), 0, call.door, call.out);
}

ServeStep RedisCommands::RunQueued(std::string queued, size_t at, DoorCall& door, OutBuffer& out) {
  const size_t before = out.size();
  for (size_t i = 0; at < queued.size(); ++i) {
    if (i == kRequestsPerTurn || out.size() - before >= kAnswersPerTurn) {
      return RunQueuedAfter(Answered(), std::move(queued), at);
    }
    RespRequest request;
    at += ParseResp(std::string_view(queued).substr(at), kQueued, request).bytes;
    // Each request has its own time to wait, as in a pipeline.
    door.patience = std::chrono::milliseconds(backend_.limits.issue_wait_ms);
    door.last = door.hurries;
    ServeStep step = RunNow(request, door, out);
    step.is_next = true;
    if (step.parked != nullptr) return RunQueuedAfter(std::move(step), std::move(queued), at);
  }
  incremented_ = nullptr;
  return Answered();
}

// Runs the rest when the request of this step is answered, or in a later turn.
ServeStep RedisCommands::RunQueuedAfter(ServeStep step, std::string queued, size_t at) {
  incremented_ = nullptr;
  const size_t bytes = queued.capacity() + (step.parked != nullptr ? step.parked->memory() : 0);
  auto rest = ParkedAs(
      [this, first = std::move(step.parked), queued = std::move(queued), at](
          DoorCall& door, OutBuffer& out) mutable {
        if (first != nullptr) {
          ServeStep next = first->Retry(door, out);
          if (next.parked != nullptr) return RunQueuedAfter(std::move(next), std::move(queued), at);
        }
        return RunQueued(std::move(queued), at, door, out);
      },
      bytes);
  if (step.kind != ServeStep::Kind::kPark) return ServeStep::More(std::move(rest));
  step.parked = std::move(rest);
  return step;
}

}  // namespace firn::front
