#include "server/front/redis/known_increments.h"

#include <cstring>

#include "common/base/parse.h"
#include "server/front/redis/redis_refusal.h"
#include "server/front/redis/resp_answer.h"

namespace firn::front {
namespace {

// "*2", "$4", the name in either case, and the "$" of the key's length.
constexpr std::string_view kBegin = "*2\r\n$4\r\n";
constexpr size_t kName = 4;
constexpr std::string_view kBehindName = "\r\n$";
constexpr size_t kHead = kBegin.size() + kName + kBehindName.size();

// The length of the request at the front if it may be an INCR with a key of up to 99 bytes; 0: it
// is something else, or incomplete.
size_t BytesOfIncrement(std::string_view in) {
  constexpr size_t kLeast = kHead + 3;  // one digit, and the end of the line
  if (in.size() < kLeast || !in.starts_with(kBegin)) return 0;
  size_t at = kHead, length = 0;
  for (; at < kHead + 2 && IsDigit(in[at]); ++at) {
    length = length * 10 + static_cast<size_t>(in[at] - '0');
  }
  const size_t whole = at + 2 + length + 2;
  return in.size() < whole ? 0 : whole;
}

}  // namespace

bool KnownIncrements::Known::IsAt(std::string_view in) const {
  return in.size() >= size && std::memcmp(in.data(), request.data(), size) == 0;
}

// Hashes the eight bytes before the last two, which are the end of the key.
size_t KnownIncrements::PlaceOf(std::string_view request) {
  uint64_t end = 0;
  std::memcpy(&end, request.data() + request.size() - 2 - sizeof end, sizeof end);
  constexpr uint64_t kSpread = 0x9e37'79b9'7f4a'7c15;  // 2^64 by the golden ratio
  return (end * kSpread) >> (64 - kPlaceBits);
}

std::optional<ServeStep> KnownIncrements::Serve(std::string_view in, DoorCall& door,
                                                OutBuffer& out) {
  const size_t bytes = BytesOfIncrement(in);
  if (bytes == 0) return std::nullopt;
  Known& known = known_[PlaceOf(in.substr(0, bytes))];
  if (known.tag == nullptr || known.size != bytes || !known.IsAt(in)) return std::nullopt;
  size_t equal = 1;
  while (equal < door.together && known.IsAt(in.substr(equal * bytes))) ++equal;

  char* const begin = out.Room(equal * resp::kNumberMax);
  char* end = begin;
  size_t answered = 0, refused = 0;
  while (answered + refused < equal && refused == 0) {
    const auto run = desk_.Run(*known.tag, static_cast<int64_t>(equal - answered));
    if (!run) break;
    for (int64_t i = 0; i < run->count; ++i) {
      const int64_t id = run->At(i);
      if (id > integer_max_) {  // so are the ids after it
        refused = static_cast<size_t>(run->count - i);
        break;
      }
      end = resp::WriteNumber(':', id, end);
      ++answered;
    }
  }
  if (answered + refused == 0) {
    auto step = commands_.IncrJointly(*known.tag, equal, door, out);
    if (step) step->bytes = equal * bytes;
    return step;
  }
  out.Filled(static_cast<size_t>(end - begin));
  if (refused != 0) known.tag = nullptr;  // the next requests are refused without taking ids
  for (size_t i = 0; i < refused; ++i) {
    desk_.Refuse(TooLargeForInteger());
    AppendRefusal(RedisCodeOf(Reason::kBadRequest), desk_.call().refusal(), out);
  }
  return ServeStep::Served((answered + refused) * bytes, answered + refused);
}

void KnownIncrements::Remember(std::string_view request, const Tag& tag) {
  if (request.size() > kBytesMax || BytesOfIncrement(request) != request.size()) return;
  Known& known = known_[PlaceOf(request)];
  std::memcpy(known.request.data(), request.data(), request.size());
  known.size = request.size();
  known.tag = &tag;
}

}  // namespace firn::front
