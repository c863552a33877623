#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/id/id_run.h"
#include "server/front/net/buffers.h"
#include "server/front/thrift/thrift_protocol.h"
#include "server/issue/tag_table.h"

namespace firn::front {

inline constexpr size_t kLengthBytes = 4;  // of the length in front of a frame

// A call for one id that was answered on the fast path, and its answer, each reduced to the bytes
// that equal calls have in common.
class KnownCall {
 public:
  // The tag whose id it requests. A handle is valid as long as the issuer, and the tag's present
  // state is checked at each call.
  const Tag& tag() const { return *tag_; }

 private:
  friend class KnownCalls;

  static constexpr size_t kBytesMax = 120;
  static constexpr size_t kChunk = 16;

  // A message without its sequence id, which follows the first `head` bytes.
  struct Message {
    bool Set(std::string_view before, std::string_view behind);

    uint8_t head = 0;
    uint8_t size = 0;
    std::array<char, kBytesMax + kChunk> bytes;  // whole chunks are copied
  };

  const Tag* tag_ = nullptr;  // null: unused
  Message call_;
  Message answer_;  // also without the id and the final zero byte
};

// The fast path. Most calls on a connection have the same bytes as an earlier one, except for the
// sequence id. Such a call is not decoded: it is found by its bytes, an id is requested from its
// tag as usual, and the id is written into a copy of the earlier answer. Refusals and decisions of
// the tag, its plugins, the claim or a drain are never cached. Used by one IO thread; allocates
// nothing.
class KnownCalls {
 public:
  static constexpr size_t kCallMax = KnownCall::kBytesMax + 5;  // of a call that can be known

  explicit KnownCalls(ThriftCoding coding) : coding_(coding) {}

  // Returns null if the call must be decoded.
  const KnownCall* Find(std::string_view call) const;

  // Returns how many frames at the front of `in` are calls like `known`, at most `most`. `known` is
  // the result of Find for the first frame.
  size_t CountLike(const KnownCall& known, std::string_view in, size_t most) const;

  // Returns the size of this many frames at the front.
  static size_t SizeOf(std::string_view in, size_t frames);

  // Appends answers to as many of these frames as `run` has ids. Returns the size of the frames.
  size_t Answer(const KnownCall& known, std::string_view in, const IdRun& run,
                OutBuffer& out) const;

  // Records that `call` was answered by `answer` on the fast path, with an id of `tag`.
  void Remember(std::string_view call, std::string_view answer, int64_t id, const Tag& tag);

 private:
  static constexpr int kPlaceBits = 4;
  // Of an answer: length, message, sequence id, id, final byte, and space for copying whole chunks.
  static constexpr size_t kAnswerMax = 4 + KnownCall::kBytesMax + 5 + 10 + 1 + KnownCall::kChunk;

  static size_t PlaceOf(std::string_view call);
  bool IsLike(const KnownCall& known, std::string_view call) const;
  static char* Copy(const char* from, size_t size, char* to);
  // Writes the answer as a complete frame, and returns its end.
  char* Write(const KnownCall& known, std::string_view call, int64_t id, char* to) const;
  // Length of the sequence id at the front; 0: incomplete.
  size_t SequenceSize(std::string_view from) const;
  // Position of the sequence id in a message; beyond the message's end if there is none.
  size_t SequenceAt(std::string_view message) const;
  size_t WriteId(int64_t id, char* to) const;

  const ThriftCoding coding_;
  std::array<KnownCall, 1 << kPlaceBits> calls_;
};

}  // namespace firn::front
