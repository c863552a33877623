#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/wire/ask.h"
#include "client/wire/outcome.h"

namespace firn::client {

// Writes calls of the wire contract and reads their answers, through the generated code. The
// generated client is not used: it ignores sequence ids and would take an old answer for a new one.
// Used by one thread at a time; nothing but memory that is kept for the next call ties it to one
// connection.
class WireCodec {
 public:
  static constexpr size_t kLengthBytes = 4;
  static constexpr size_t kFrameBytesMax = 16 << 20;

  WireCodec();
  ~WireCodec();
  WireCodec(const WireCodec&) = delete;
  WireCodec& operator=(const WireCodec&) = delete;

  // Puts one frame at the end of `out`.
  void AppendCall(const Ask& ask, int32_t sequence, std::string& out);

  // The length of the frame that `bytes` begin with, its length bytes included; 0 while that is
  // not known. Empty when no answer is that long.
  static std::optional<size_t> FrameLength(std::string_view bytes);

  // Reads the answer to `ask` from a whole frame, as FrameLength measured it. kAnswered fills what
  // the ask's method is about in `reply`; kRefused is the server's typed "no"; kWrongService says
  // that the other end knows no such method; kBroken is anything else: another call's answer, no
  // answer at all, more or fewer ids than were asked for. Which ids they are is not looked at (see
  // IdCheck). Whatever came, the next frame is read as if nothing had been.
  Outcome ReadAnswer(std::string_view frame, const Ask& ask, int32_t sequence, Reply& reply);

 private:
  class Coding;
  const std::unique_ptr<Coding> coding_;
  std::string single_tag_, single_call_;  // the last call for one id: mostly the next is the same
};

}  // namespace firn::client
