#include "server/front/redis/resp_request.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"

namespace firn::front {
namespace {

constexpr std::string_view kEndOfLine = "\r\n";
constexpr size_t kLeastLine = 4;               // "$0" and the end of the line
constexpr size_t kLeastWord = kLeastLine + 2;  // an empty word
constexpr size_t kDigitsMax = 20;

RespParsed NeedMore(size_t least) { return {RespParsed::Kind::kNeedMore, least}; }
RespParsed Bad(std::string_view why) {
  return {RespParsed::Kind::kBad, 0, Cat("Protocol error: ", why)};
}

// A line that consists of a mark and a number.
struct NumberLine {
  enum class Kind { kNeedMore, kNumber, kBad };
  Kind kind;
  int64_t number = 0;
  size_t bytes = 0;  // length with the end of the line
};

// Accepts one spelling of each number. -1 is the only negative number in the protocol.
std::optional<int64_t> NumberOf(std::string_view text) {
  if (text == "-1") return -1;
  const auto number = ParseIndex<uint64_t>(text);
  if (!number || *number > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(*number);
}

// `line` begins with the mark.
NumberLine ReadNumberLine(std::string_view line) {
  using Kind = NumberLine::Kind;
  const std::string_view digits = line.substr(1);
  const size_t end = digits.substr(0, kDigitsMax + 1).find('\r');
  if (end == std::string_view::npos) {
    return {digits.size() > kDigitsMax ? Kind::kBad : Kind::kNeedMore};
  }
  const auto number = NumberOf(digits.substr(0, end));
  if (!number) return {Kind::kBad};
  if (digits.size() < end + kEndOfLine.size()) return {Kind::kNeedMore};
  if (digits[end + 1] != '\n') return {Kind::kBad};
  return {Kind::kNumber, *number, 1 + end + kEndOfLine.size()};
}

// Parses one request, word by word.
class Reader {
 public:
  Reader(std::string_view in, const RespLimits& limits, RespRequest& request)
      : in_(in), limits_(limits), request_(request) {}

  RespParsed Read() {
    if (in_[0] != '*') return Bad(Cat("expected '*', got ", Quoted(in_.substr(0, 1))));
    const NumberLine line = ReadNumberLine(in_);
    if (line.kind == NumberLine::Kind::kNeedMore) return NeedMore(WithLine());
    if (line.kind == NumberLine::Kind::kBad) return Bad("invalid multibulk length");
    at_ = line.bytes;
    const auto words = static_cast<size_t>(std::max<int64_t>(line.number, 0));
    if (words > limits_.words_max || LeastBehind(words) > limits_.bytes_max) {
      return Bad(Cat("invalid multibulk length: a request here has at most ", limits_.words_max,
                     " words and ", limits_.bytes_max, " bytes"));
    }
    request_.count = words;
    for (size_t i = 0; i < words; ++i) {
      if (auto stopped = ReadWord(i)) return *std::move(stopped);
    }
    return {RespParsed::Kind::kWhole, at_};
  }

 private:
  // The minimum length of a request that has `words` more words from at_ on.
  size_t LeastBehind(size_t words) const { return at_ + words * kLeastWord; }
  // The minimum length of a request whose line at at_ is incomplete.
  size_t WithLine() const { return std::max(in_.size() + 1, at_ + kLeastLine); }

  // Nullopt: the word is complete.
  std::optional<RespParsed> ReadWord(size_t i) {
    const size_t behind = request_.count - i - 1;  // words after this one
    if (at_ == in_.size()) return NeedMore(LeastBehind(behind + 1));
    if (in_[at_] != '$') return Bad(Cat("expected '$', got ", Quoted(in_.substr(at_, 1))));
    const NumberLine line = ReadNumberLine(in_.substr(at_));
    if (line.kind == NumberLine::Kind::kNeedMore) {
      return NeedMore(std::max(WithLine(), LeastBehind(behind + 1)));
    }
    if (line.kind == NumberLine::Kind::kBad || line.number < 0) return Bad("invalid bulk length");
    at_ += line.bytes;
    const auto length = static_cast<size_t>(line.number);
    if (length > limits_.bytes_max ||
        LeastBehind(behind) + length + kEndOfLine.size() > limits_.bytes_max) {
      return Bad(
          Cat("invalid bulk length: a request here has at most ", limits_.bytes_max, " bytes"));
    }
    return ReadText(i, length, behind);
  }

  std::optional<RespParsed> ReadText(size_t i, size_t length, size_t behind) {
    const std::string_view rest = in_.substr(at_);
    if (rest.size() < length + kEndOfLine.size()) {
      return NeedMore(LeastBehind(behind) + length + kEndOfLine.size());
    }
    if (rest.substr(length, kEndOfLine.size()) != kEndOfLine) {
      return Bad("expected CRLF after a bulk string");
    }
    if (i < RespRequest::kKept) request_.kept[i] = rest.substr(0, length);
    at_ += length + kEndOfLine.size();
    return std::nullopt;
  }

  const std::string_view in_;
  const RespLimits& limits_;
  RespRequest& request_;
  size_t at_ = 0;
};

}  // namespace

RespParsed ParseResp(std::string_view in, const RespLimits& limits, RespRequest& request) {
  return Reader(in, limits, request).Read();
}

}  // namespace firn::front
