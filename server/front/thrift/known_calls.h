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

inline constexpr size_t kLengthBytes = 4;  // of a frame, before it

// A call for one id that was answered in the short way, and its answer: of both, what equal calls
// have in common.
class KnownCall {
 public:
  // Whose ids it asks for. A tag's handle is good as long as the issuer, whatever becomes of the
  // tag: how it is served is looked up each time.
  const Tag& tag() const { return *tag_; }

 private:
  friend class KnownCalls;

  static constexpr size_t kBytesMax = 120;
  static constexpr size_t kChunk = 16;

  // A message without its sequence id, which stands behind `head` bytes.
  struct Message {
    bool Set(std::string_view before, std::string_view behind);

    uint8_t head = 0;
    uint8_t size = 0;
    std::array<char, kBytesMax + kChunk> bytes;  // whole chunks are copied
  };

  const Tag* tag_ = nullptr;  // null: there is none
  Message call_;
  Message answer_;  // also without the id and the byte that ends it
};

// Most calls on a connection are, but for the sequence id, the bytes of one before. Such a call is
// not decoded: it is found by its bytes, its tag is asked for an id as always, and the id goes into
// the answer of before. What a tag, its plugins, the claim or a drain have to say is never kept.
// One IO thread's; allocates nothing.
class KnownCalls {
 public:
  explicit KnownCalls(ThriftCoding coding) : coding_(coding) {}

  // Null: it has to be decoded.
  const KnownCall* Find(std::string_view call) const;

  // `known` was found for the first frame of `in`. How many frames at its front are such calls, up
  // to `most`.
  size_t CountLike(const KnownCall& known, std::string_view in, size_t most) const;

  // Appends the answers to so many of those frames as the run has ids. Returns the frames' bytes.
  size_t Answer(const KnownCall& known, std::string_view in, const IdRun& run,
                OutBuffer& out) const;

  // `call` was answered in the short way by `answer`, with an id of `tag`.
  void Remember(std::string_view call, std::string_view answer, int64_t id, const Tag& tag);

 private:
  static constexpr int kPlaceBits = 4;
  // Of an answer: length, message, sequence id, id, its end, and what copying needs.
  static constexpr size_t kAnswerMax = 4 + KnownCall::kBytesMax + 5 + 10 + 1 + KnownCall::kChunk;

  static size_t PlaceOf(std::string_view call);
  bool IsLike(const KnownCall& known, std::string_view call) const;
  static char* Copy(const char* from, size_t size, char* to);
  // Writes the answer, a whole frame, and returns its end.
  char* Write(const KnownCall& known, std::string_view call, int64_t id, char* to) const;
  // How long the sequence id is that begins there; 0: it is not whole.
  size_t SequenceSize(std::string_view from) const;
  // Where the sequence id of a message begins; beyond its end: nowhere.
  size_t SequenceAt(std::string_view message) const;
  size_t WriteId(int64_t id, char* to) const;

  const ThriftCoding coding_;
  std::array<KnownCall, 1 << kPlaceBits> calls_;
};

}  // namespace firn::front
