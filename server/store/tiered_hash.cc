#include "server/store/tiered_hash.h"

#include <utility>
#include <vector>

#include "server/store/redis_number.h"

namespace firn {
namespace {

// Begins both scripts: numbers as texts, who the server is, the hash.
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
                       'filled', 'asked', 'asked_by')
local cur, max, left = number(row[2]), number(row[3]), number(row[4])
local next, next_max = number(row[5]), number(row[6])
local step, filled = number(row[7]) or 0, number(row[8]) or now
local ours = row[1] == ids
if ours and not (cur and max and left and cur + left == max) then
  return {'wrong', 'cur, max and left do not agree'}
end
if ours and row[5] and not (next and next_max and next >= max and next_max > next) then
  return {'wrong', 'next and next_max do not fit'}
end
)";

// ARGV: size, prefetch_at, patience in ms. Answers {"ok", begin, end, bring, step, lasts}.
constexpr const char* kTake = R"(
local size, prefetch_at, patience = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local function bring()
  local asked = number(row[9]) or 0
  if row[10] == ids and asked <= now and asked > now - patience then return '0' end
  redis.call('HSET', key, 'asked', text(now), 'asked_by', ids)
  return '1'
end
local lasted = math.max(now - filled, 0)
if ours and left == 0 and next then
  cur, max, left, step = next, next_max, next_max - next, next_max - next
  redis.call('HSET', key, 'cur', text(cur), 'max', text(max), 'left', text(left),
             'step', text(step), 'filled', text(now))
  redis.call('HDEL', key, 'next', 'next_max')
  next, lasted = nil, 0
end
if not ours or left == 0 then return {'ok', '0', '0', bring(), text(step), text(lasted)} end

local take = math.min(size, left)
redis.call('HINCRBY', key, 'cur', text(take))
redis.call('HINCRBY', key, 'left', text(-take))
left = left - take
local low = not next and left * 100 <= step * (100 - prefetch_at)
local used = math.max(step - left, 1)
return {'ok', text(cur), text(cur + take), low and bring() or '0', text(step),
        text(math.floor(math.min(lasted * step / used, 1e15)))}
)";

// ARGV: begin, end. Answers {"ok", numbers thrown away}, {"full", ""}, or {"below", max}. Numbers
// of another server's time lie below the ledger, and so below the segment.
constexpr const char* kFill = R"(
local begin, ends = tonumber(ARGV[1]), tonumber(ARGV[2])
if row[3] and not max then return {'wrong', 'max is no number'} end
local top = math.max(max or 0, next_max or 0)
if begin < top then return {ours and 'below' or 'wrong', text(top)} end
if ours and next then return {'full', ''} end
redis.call('HDEL', key, 'asked', 'asked_by')
if ours and left > 0 then
  redis.call('HSET', key, 'next', text(begin), 'next_max', text(ends))
  return {'ok', '0'}
end
local lost = 0
if not ours then lost = (left or 0) + ((next and next_max) and next_max - next or 0) end
redis.call('HDEL', key, 'next', 'next_max')
redis.call('HSET', key, 'ids', ids, 'cur', text(begin), 'max', text(ends),
           'left', text(ends - begin), 'step', text(ends - begin), 'filled', text(now))
return {'ok', text(lost)}
)";

const std::string& TakeScript() {
  static const std::string script = std::string(kPrelude) + kTake;
  return script;
}

const std::string& FillScript() {
  static const std::string script = std::string(kPrelude) + kFill;
  return script;
}

Status Wrong(const std::vector<std::string>& answer) {
  if (answer.size() < 2) return Internal("the script's answer makes no sense");
  return Corrupt("its hash was edited: " + answer[1] +
                 "; delete it, and numbers go on above everything that was used");
}

}  // namespace

TieredHash::TieredHash(Options options, const Clock& clock, Entropy& entropy)
    : options_(std::move(options)),
      connection_(options_.place),
      link_(options_.backoff, clock, entropy) {}

Status TieredHash::Connect() {
  if (connection_.is_open()) return {};
  FIRN_TRY(link_.MayConnect());
  return link_.Connected(connection_.Open());
}

Result<TieredHash::Taken> TieredHash::Take(const TagDefinition& tag, int64_t size) {
  FIRN_TRY(Connect());
  FIRN_ASSIGN(const auto answer,
              connection_.Eval(TakeScript(), options_.prefix + tag.name,
                               {std::to_string(size), std::to_string(tag.prefetch_at),
                                std::to_string(kBringPatience.count())}));
  if (answer.size() != 6 || answer[0] != "ok") return Wrong(answer);
  Taken taken{.range = {}, .bring = answer[3] == "1"};
  FIRN_ASSIGN(taken.range.begin, RedisNumber(answer[1]));
  FIRN_ASSIGN(taken.range.end, RedisNumber(answer[2]));
  FIRN_ASSIGN(taken.step, RedisNumber(answer[4]));
  FIRN_ASSIGN(const int64_t lasts_ms, RedisNumber(answer[5]));
  taken.lasts = Milliseconds(lasts_ms);
  if (taken.range.size() < 0 || taken.range.size() > size) {
    return Corrupt("the answer [" + answer[1] + ", " + answer[2] + ") is not what was asked for");
  }
  return taken;
}

Result<int64_t> TieredHash::Fill(const TagDefinition& tag, Range segment) {
  if (segment.empty() || segment.end > kNumbersEnd) return Exhausted("Redis counts to 2^53 only");
  FIRN_TRY(Connect());
  FIRN_ASSIGN(const auto answer,
              connection_.Eval(FillScript(), options_.prefix + tag.name,
                               {std::to_string(segment.begin), std::to_string(segment.end)}));
  if (answer.size() != 2 || answer[0] == "wrong") return Wrong(answer);
  if (answer[0] == "ok") return RedisNumber(answer[1]);
  if (answer[0] == "full") return Conflict("somebody else has brought numbers");
  return Conflict("a segment up to " + answer[1] + " is there already");
}

}  // namespace firn
