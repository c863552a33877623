#include "server/store/redis/redis_store.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "server/store/jump_limit.h"
#include "server/store/other_cluster.h"
#include "server/store/redis/redis_number.h"

namespace firn {
namespace {

// KEYS: the tag's hash. ARGV: at_least, size, end of numbers, highest accepted max, cluster.
// Answers {"ok", begin, end, max before}; or {error word, detail}, with nothing changed. The mark
// is the field `owner`, because the field `cluster` shows every version that the hash is a tiered
// one.
constexpr std::string_view kAdvance = R"(
local function number(text)
  if #text > 16 or not string.find(text, '^%d+$') then return nil end
  return tonumber(text)
end
local function text(n) return string.format('%.0f', n) end

local least, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local most, ceiling = tonumber(ARGV[3]), tonumber(ARGV[4])
local row = redis.call('HMGET', KEYS[1], 'max', 'step', 'cluster', 'owner')
if row[3] then return {'tiered', ''} end
if row[4] and row[4] ~= '' and row[4] ~= ARGV[5] then return {'owner', row[4]} end
local max = number(row[1] or '0')
if not max then return {'max', row[1]} end
local step = number(row[2] or '1')
if not step or step < 1 then return {'step', row[2]} end
if max > ceiling then return {'far', row[1]} end

local begin = math.max(max, least)
local take = math.min(size, most - begin)
if take < 1 then return {'end', text(begin)} end
redis.call('HINCRBY', KEYS[1], 'max', text(begin + take - max))
redis.call('HSET', KEYS[1], 'cur', text(begin), 'step', text(take), 'owner', ARGV[5])
return {'ok', text(begin), text(begin + take), row[1] or ''}
)";

Status Refusal(const std::vector<std::string>& answer, const std::string& key, int64_t at_least) {
  if (answer.size() < 2) return Internal("the Redis script returned an unexpected answer");
  const std::string& word = answer[0];
  if (word == "end") return Exhausted("Redis counts to 2^53 only");
  if (word == "tiered")
    return Corrupt("the hash belongs to a tiered store; give this one another prefix");
  if (word == "owner") return OfAnotherCluster("its hash " + key, answer[1], "owner");
  if (word == "far") {
    return Corrupt(Cat("max is ", answer[1], ", far beyond the ", at_least,
                       " that the ledger knows; if that is intended, raise the tag's start to it"));
  }
  return Corrupt(word + " is " + Quoted(answer[1]) + ", which is invalid; correct the hash");
}

}  // namespace

RedisStore::RedisStore(Options options, const Clock& clock, Entropy& entropy,
                       CounterWatch::Alarm alarm)
    : options_(std::move(options)),
      connection_(options_.place),
      link_(options_.backoff, clock, entropy),
      watch_(options_.name, std::move(alarm)) {}

Status RedisStore::Check(const TagDefinition& tag) {
  if (tag.NextBegin() >= kNumbersEnd) return Invalid("Redis counts to 2^53 only");
  return link_.Connect(connection_);
}

Result<std::vector<std::string>> RedisStore::Run(const TagDefinition& tag,
                                                 const std::vector<std::string>& arguments) {
  FIRN_TRY(link_.Connect(connection_));
  return link_.Ended(connection_,
                     connection_.Eval(kAdvance, options_.prefix + tag.name, arguments));
}

Result<Range> RedisStore::Advance(const TagDefinition& tag, int64_t at_least, int64_t size) {
  if (at_least < 0 || size < 1)
    return Invalid(Cat("a range of ", size, " numbers from ", at_least, " is invalid"));
  if (at_least >= kNumbersEnd) return Exhausted("Redis counts to 2^53 only");
  const int64_t ceiling = std::min(at_least + kJumpMax, kNumbersEnd);
  FIRN_ASSIGN(const auto answer,
              Run(tag, {std::to_string(at_least), std::to_string(std::min(size, kNumbersEnd)),
                        std::to_string(kNumbersEnd), std::to_string(ceiling), cluster_}));
  if (answer.size() != 4 || answer[0] != "ok")
    return Refusal(answer, options_.prefix + tag.name, at_least);
  FIRN_ASSIGN(const int64_t begin, RedisNumber(answer[1]));
  FIRN_ASSIGN(const int64_t end, RedisNumber(answer[2]));
  if (begin < at_least || end <= begin || end - begin > size) {
    return Corrupt("the answer [" + answer[1] + ", " + answer[2] +
                   ") is not a range of the requested size");
  }
  // A tag above its start has a ledger.
  if (at_least > tag.start.value_or(1)) {
    watch_.Judge(tag.name, RedisNumber(answer[3]).value_or(0), at_least);
  }
  watch_.Moved(tag.name, end);
  return Range{.begin = begin, .end = end};
}

}  // namespace firn
