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

// Writes calls of the wire contract and parses their answers, with the generated code. The
// generated client is not used: it ignores sequence ids and would take an old answer for a new one.
// Used by one thread at a time. It keeps memory between calls, but no state of a
// connection.
class WireCodec {
 public:
  static constexpr size_t kLengthBytes = 4;
  static constexpr size_t kFrameBytesMax = 16 << 20;

  WireCodec();
  ~WireCodec();
  WireCodec(const WireCodec&) = delete;
  WireCodec& operator=(const WireCodec&) = delete;

  // Appends a frame to `out`.
  void AppendCall(const Ask& ask, int32_t sequence, std::string& out);

  // Returns the length of the first frame in `bytes`, including its length bytes; 0 while unknown;
  // nullopt if no valid answer is that long.
  static std::optional<size_t> FrameLength(std::string_view bytes);

  // Parses the answer to `ask` from a whole frame, as measured by FrameLength. kAnswered sets the
  // method's fields in `reply`; kRefused is a refusal with a reason; kWrongService means that the
  // server does not have the method; kBroken is anything else: another call's answer, not an
  // answer, or a wrong number of ids. Does not check the ids (see IdCheck). No frame affects the
  // parsing of the next one. `layout`: the server's, for leases; null: it is unknown.
  Outcome ReadAnswer(std::string_view frame, const Ask& ask, int32_t sequence, Reply& reply,
                     const Layout* layout = nullptr);

 private:
  class Coding;
  const std::unique_ptr<Coding> coding_;
  std::string single_tag_, single_call_;  // the last call for one id: the next is often equal
};

}  // namespace firn::client
