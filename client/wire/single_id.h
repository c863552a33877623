#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace firn::client {

// Writes and parses the two most frequent messages, getId and its id, without the generated code:
// only two numbers differ from call to call, and the generated code took as long as all the rest of
// a call in the client. The generated code handles all other messages.
class SingleId {
 public:
  // Appends `call`, a frame of getId that the generated code wrote, to `out`, with another
  // sequence id.
  static void AppendCall(std::string_view call, int32_t sequence, std::string& out) {
    const size_t at = out.size() + kSequenceAt;
    out.append(call);
    const uint32_t big = __builtin_bswap32(static_cast<uint32_t>(sequence));
    std::memcpy(out.data() + at, &big, sizeof big);
  }

  // Returns nullopt unless the frame is the id that answers this call.
  static std::optional<int64_t> ReadAnswer(std::string_view frame, int32_t sequence) {
    if (frame.size() != kAnswerBytes || !frame.starts_with(kAnswerHead)) return std::nullopt;
    if (frame.substr(kFieldAt, kField.size()) != kField || frame.back() != kStop) {
      return std::nullopt;
    }
    uint32_t its_sequence;
    std::memcpy(&its_sequence, frame.data() + kSequenceAt, sizeof its_sequence);
    if (__builtin_bswap32(its_sequence) != static_cast<uint32_t>(sequence)) {
      return std::nullopt;
    }
    uint64_t big;
    std::memcpy(&big, frame.data() + kIdAt, sizeof big);
    return static_cast<int64_t>(__builtin_bswap64(big));
  }

 private:
  // length, version 1 and REPLY, name; sequence id; field 0 of type i64; the id; the end
  static constexpr std::string_view kAnswerHead{"\0\0\0\x1d\x80\1\0\2\0\0\0\5getId", 17};
  static constexpr size_t kSequenceAt = kAnswerHead.size();  // in a call, too
  static constexpr size_t kFieldAt = kSequenceAt + sizeof(int32_t);
  static constexpr std::string_view kField{"\x0a\0\0", 3};
  static constexpr size_t kIdAt = kFieldAt + kField.size();
  static constexpr char kStop = '\0';
  static constexpr size_t kAnswerBytes = kIdAt + sizeof(int64_t) + sizeof kStop;
};

}  // namespace firn::client
