#include "server/store/redis/tiered_hash.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "server/store/redis/redis_number.h"

namespace firn {
namespace {

// The common beginning of the scripts: parses the hash, and reads the server's ids. ARGV[1]:
// cluster; ARGV[2]: the tag's form.
constexpr const char* kPrelude = R"(
local function number(text)
  if not text or #text > 16 or not string.find(text, '^%d+$') then return nil end
  return tonumber(text)
end
local function text(n) return string.format('%.0f', n) end
local key = KEYS[1]
local ids = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') .. ' ' ..
            string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local row = redis.call('HMGET', key, 'ids', 'cur', 'max', 'left', 'next', 'next_max', 'step',
                       'filled', 'asked', 'asked_by', 'cluster', 'form')
local cur, max, left = number(row[2]), number(row[3]), number(row[4])
local next, next_max = number(row[5]), number(row[6])
local step, filled = number(row[7]) or 0, number(row[8]) or now
if row[11] and row[11] ~= ARGV[1] then return {'foreign', row[11]} end
if row[3] and not row[11] then return {'wrong', 'it names no cluster'} end
local ours = row[1] == ids and row[12] == ARGV[2]
if ours and not (cur and max and left and cur + left == max) then
  return {'wrong', 'cur, max and left do not agree'}
end
if ours and row[5] and not (next and next_max and next >= max and next_max > next) then
  return {'wrong', 'next and next_max do not agree with max'}
end
local top = math.max(max or 0, next_max or 0)
local function is_brought(patience)
  local asked = number(row[9]) or 0
  return row[10] == ids and asked <= now and asked > now - patience
end
)";

// ARGV: cluster, form, size, prefetch_at, patience in ms, start, issued. Returns {"ok", begin, end,
// bring, step, lasts}, or {"back", cur} if `cur` is below `issued`.
constexpr const char* kTake = R"(
local size, prefetch_at, patience = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local start = tonumber(ARGV[6])
if ours and cur < tonumber(ARGV[7]) then return {'back', text(cur)} end
local function bring()
  if is_brought(patience) then return '0' end
  redis.call('HSET', key, 'asked', text(now), 'asked_by', ids)
  return '1'
end
local function take_out(count)
  redis.call('HINCRBY', key, 'cur', text(count))
  redis.call('HINCRBY', key, 'left', text(-count))
  cur, left = cur + count, left - count
end
local function leave_out()
  if ours and cur < start and left > 0 then take_out(math.min(left, start - cur)) end
end
local lasted = math.max(now - filled, 0)
leave_out()
if ours and left == 0 and next then
  cur, max, left, step = next, next_max, next_max - next, next_max - next
  redis.call('HSET', key, 'cur', text(cur), 'max', text(max), 'left', text(left),
             'step', text(step), 'filled', text(now))
  redis.call('HDEL', key, 'next', 'next_max')
  next, lasted = nil, 0
  leave_out()
end
if not ours or left == 0 then return {'ok', '0', '0', bring(), text(step), text(lasted)} end

local take = math.min(size, left)
take_out(take)
local low = not next and left * 100 <= step * (100 - prefetch_at)
local used = math.max(step - left, 1)
return {'ok', text(cur - take), text(cur), low and bring() or '0', text(step),
        text(math.floor(math.min(lasted * step / used, 1e15)))}
)";

// ARGV: cluster, form, begin, end, ledger. Returns {"ok", number of discarded numbers, "1" if the
// hash was empty}, {"full", ""} or {"below", max}. Returns {"above", max} if the hash was filled
// under other `ids` or another form and has numbers above the segment's begin, and so above the
// ledger.
constexpr const char* kFill = R"(
local begin, ends = tonumber(ARGV[3]), tonumber(ARGV[4])
if row[3] and not max then return {'wrong', 'max is not a number'} end
if begin < top then return {ours and 'below' or 'above', text(top)} end
ours = ours and top >= tonumber(ARGV[5])
if ours and next then return {'full', ''} end
redis.call('HDEL', key, 'asked', 'asked_by')
if ours and left > 0 then
  redis.call('HSET', key, 'next', text(begin), 'next_max', text(ends))
  return {'ok', '0', '0'}
end
local lost = 0
if not ours then lost = (left or 0) + ((next and next_max) and next_max - next or 0) end
redis.call('HDEL', key, 'next', 'next_max')
redis.call('HSET', key, 'cluster', ARGV[1], 'form', ARGV[2], 'ids', ids, 'cur', text(begin), 'max', text(ends),
           'left', text(ends - begin), 'step', text(ends - begin), 'filled', text(now))
return {'ok', text(lost), row[3] and '0' or '1'}
)";

// ARGV: cluster, form, least, patience in ms. Clears the hash by removing `ids`, without which no
// numbers are taken from it. Returns {"ok", "0", ""}, {"ok", "1", top} if the hash was cleared, or
// {"brought", ""}.
constexpr const char* kFence = R"(
if not row[1] or top >= tonumber(ARGV[3]) then return {'ok', '0', ''} end
if is_brought(tonumber(ARGV[4])) then return {'brought', ''} end
redis.call('HDEL', key, 'ids', 'asked', 'asked_by')
return {'ok', '1', text(top)}
)";

const std::string& TakeScript() {
  static const std::string script = Cat(kPrelude, kTake);
  return script;
}

const std::string& FillScript() {
  static const std::string script = Cat(kPrelude, kFill);
  return script;
}

const std::string& FenceScript() {
  static const std::string script = Cat(kPrelude, kFence);
  return script;
}

Status Refusal(const std::vector<std::string>& answer) {
  if (answer.size() < 2) return Internal("the Redis script returned an unexpected answer");
  if (answer[0] == "foreign") {
    return Invalid("its hash belongs to cluster " + Quoted(answer[1]) +
                   "; give each cluster a prefix of its own, or delete the hash if that cluster "
                   "no longer exists");
  }
  if (answer[0] == "above") {
    return Corrupt("its hash has given numbers up to " + answer[1] +
                   ", which the ledger does not cover; raise the tag's start to that, or delete "
                   "the hash if it was edited");
  }
  return Corrupt("its hash was edited: " + answer[1] +
                 "; delete it: numbers then continue above everything that was used");
}

}  // namespace

TieredHash::TieredHash(Options options, const Clock& clock, Entropy& entropy)
    : options_(std::move(options)),
      connection_(options_.place),
      link_(options_.backoff, clock, entropy) {}

Status TieredHash::Connect() {
  if (connection_.is_open()) return {};
  FIRN_TRY(link_.Connect(connection_));
  ++connections_;
  return {};
}

Result<TieredHash::Answer> TieredHash::Run(const std::string& script, const TagDefinition& tag,
                                           Answer arguments) {
  FIRN_TRY(Connect());
  return link_.Ended(connection_,
                     connection_.Eval(script, options_.prefix + tag.name + ":tiered", arguments));
}

Result<TieredHash::Taken> TieredHash::Take(const TagDefinition& tag, const std::string& cluster,
                                           int64_t size, Known known) {
  if (size < 1) return Invalid("a range has at least one number");
  FIRN_TRY(Connect());
  if (known.connection != connections_) return Taken{.unfenced = true};
  const int64_t start = std::min(tag.start.value_or(1), kNumbersEnd);
  FIRN_ASSIGN(const Answer answer,
              Run(TakeScript(), tag,
                  {cluster, FormOf(tag), std::to_string(size), std::to_string(tag.prefetch_at),
                   std::to_string(kBringPatience.count()), std::to_string(start),
                   std::to_string(known.issued)}));
  if (answer.size() == 2 && answer[0] == "back") {
    FIRN_ASSIGN(const int64_t at, RedisNumber(answer[1]));
    return Taken{.back_at = at};
  }
  if (answer.size() != 6 || answer[0] != "ok") return Refusal(answer);
  Taken taken{.range = {}, .bring = answer[3] == "1"};
  FIRN_ASSIGN(taken.range.begin, RedisNumber(answer[1]));
  FIRN_ASSIGN(taken.range.end, RedisNumber(answer[2]));
  FIRN_ASSIGN(taken.step, RedisNumber(answer[4]));
  FIRN_ASSIGN(const int64_t lasts_ms, RedisNumber(answer[5]));
  taken.lasts = Milliseconds(lasts_ms);
  if (taken.range.size() < 0 || taken.range.size() > size) {
    return Corrupt("the answer [" + answer[1] + ", " + answer[2] +
                   ") is not a range of the requested size");
  }
  return taken;
}

Result<TieredHash::Filled> TieredHash::Fill(const TagDefinition& tag, const std::string& cluster,
                                            Range segment, int64_t ledger) {
  if (segment.empty() || segment.end > kNumbersEnd) return Exhausted("Redis counts to 2^53 only");
  FIRN_ASSIGN(const Answer answer, Run(FillScript(), tag,
                                       {cluster, FormOf(tag), std::to_string(segment.begin),
                                        std::to_string(segment.end), std::to_string(ledger)}));
  if (answer.size() == 3 && answer[0] == "ok") {
    FIRN_ASSIGN(const int64_t thrown_away, RedisNumber(answer[1]));
    return Filled{.thrown_away = thrown_away, .was_empty = answer[2] == "1"};
  }
  if (answer.size() != 2) return Refusal(answer);
  if (answer[0] == "full") return Conflict("another server has refilled the hash");
  if (answer[0] != "below") return Refusal(answer);
  return Conflict("the hash already contains a segment up to " + answer[1]);
}

Result<TieredHash::Fenced> TieredHash::Fence(const TagDefinition& tag, const std::string& cluster,
                                             int64_t least) {
  FIRN_TRY(Connect());
  const uint64_t connection =
      connections_;  // if the connection is replaced meanwhile, the call fails
  const Milliseconds patience = least == kEverything ? Milliseconds(0) : kBringPatience;
  FIRN_ASSIGN(const Answer answer,
              Run(FenceScript(), tag,
                  {cluster, FormOf(tag), std::to_string(least), std::to_string(patience.count())}));
  if (answer.size() == 2 && answer[0] == "brought") {
    return Conflict("another server is refilling the hash");
  }
  if (answer.size() != 3 || answer[0] != "ok") return Refusal(answer);
  Fenced fenced{.connection = connection};
  if (answer[1] != "1") return fenced;
  FIRN_ASSIGN(fenced.cleared, RedisNumber(answer[2]));
  return fenced;
}

}  // namespace firn
