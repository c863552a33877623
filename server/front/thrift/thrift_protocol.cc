#include "server/front/thrift/thrift_protocol.h"

#include <memory>
#include <optional>
#include <utility>

#include <thrift/TOutput.h>

#include "server/front/thrift/known_calls.h"
#include "server/front/thrift/processor.h"
#include "server/front/thrift/thrift_service.h"
#include "thrift/frame_transport.h"

namespace firn::front {
namespace {

uint32_t ReadLength(std::string_view in) {
  uint32_t wire;
  std::memcpy(&wire, in.data(), sizeof wire);
  return __builtin_bswap32(wire);
}

void PatchLength(OutBuffer& out, size_t at) {
  const uint32_t wire = __builtin_bswap32(static_cast<uint32_t>(out.size() - at - kLengthBytes));
  out.Patch(at, &wire, sizeof wire);
}

template <typename Coding>
class ThriftProtocol final : public Protocol {
 public:
  ThriftProtocol(ThriftCoding coding, const Backend& backend, DeskCounters& counters,
                 LeaseDesk* leases)
      : known_(coding), service_(backend, counters, leases), processor_(service_) {
    Renew();
  }

  ServeStep Serve(std::string_view in, DoorCall& call, OutBuffer& out) override {
    if (in.size() < kLengthBytes) return ServeStep::NeedMore(kLengthBytes);
    const size_t length = ReadLength(in);
    if (length > kFrameBytesMax) return ServeStep::Close(CloseCause::kFrameTooLarge);
    const size_t whole = kLengthBytes + length;
    if (in.size() < whole) return ServeStep::NeedMore(whole);

    const std::string_view frame = in.substr(kLengthBytes, length);
    if (const KnownCall* const known = known_.Find(frame)) {
      ServeStep step = AnswerKnown(*known, in, call, out);
      if (step.requests != 0) return step;
    }
    ServeStep step = Decode(frame, {}, call, out);
    step.bytes = whole;
    return step;
  }

 private:
  // Equal calls that wait as one.
  class JointAnswers {
   public:
    static constexpr bool kWaitsLong = false;  // clients end an attempt earlier, and fail over

    JointAnswers(ThriftProtocol& protocol, const KnownCall& known, std::string_view calls)
        : protocol_(protocol), known_(known), calls_(calls) {}

    static bool MayAsk(int64_t, const DoorCall&, const OutBuffer&) { return true; }
    void Write(const Runs& ids, OutBuffer& out) {
      for (const IdRun& run : ids.runs()) at_ += protocol_.known_.Answer(known_, rest(), run, out);
    }
    void Refuse(int64_t, OutBuffer& out) {
      const Refusal refusal = protocol_.service_.refusal();
      DoorCall door;
      while (at_ < calls_.size()) {
        const size_t length = ReadLength(rest());
        protocol_.Decode(rest().substr(kLengthBytes, length), {.refusal = refusal}, door, out);
        at_ += kLengthBytes + length;
      }
    }

   private:
    std::string_view rest() const { return std::string_view(calls_).substr(at_); }

    ThriftProtocol& protocol_;
    KnownCall known_;
    std::string calls_;  // the frames, as received
    size_t at_ = 0;      // position of the first unanswered frame
  };

  // Decodes a call, and answers or parks it.
  ServeStep Decode(std::string_view frame, ThriftWaiting waiting, DoorCall& call, OutBuffer& out) {
    transport_.ReadFrom(frame);
    typename Processor<Coding>::Call parked;
    return Answer(std::move(waiting), frame, call, out, parked,
                  [&] { return processor_.Process(*coding_, out, parked); });
  }

  // Answers the known call at the front, and equal ones after it. Answers none, without an effect,
  // if an answer would need more than an id.
  ServeStep AnswerKnown(const KnownCall& known, std::string_view in, DoorCall& call,
                        OutBuffer& out) {
    const size_t calls = known_.CountLike(known, in, call.together);
    size_t answered = 0, bytes = 0;
    while (answered < calls) {
      const auto run = service_.Run(known.tag(), static_cast<int64_t>(calls - answered));
      if (!run) break;
      bytes += known_.Answer(known, in.substr(bytes), *run, out);
      answered += static_cast<size_t>(run->count);
    }
    if (answered > 0) return ServeStep::Served(bytes, answered);
    const std::string_view all = in.substr(0, known_.SizeOf(in, calls));
    auto step = service_.Jointly(known.tag(), calls, call, out,
                                 [&] { return JointAnswers(*this, known, all); });
    if (!step) return ServeStep::Served(0, 0);
    step->bytes = all.size();
    return *std::move(step);
  }

  // Answers a call by `process()`, or parks it, so that `parked` answers it later. `frame`: the
  // call, if its like may be known later.
  template <typename Process>
  ServeStep Answer(ThriftWaiting waiting, std::string_view frame, DoorCall& call, OutBuffer& out,
                   typename Processor<Coding>::Call& parked, Process process) {
    const size_t at = out.size();
    out.Append("\0\0\0\0", kLengthBytes);
    transport_.WriteTo(out);
    service_.Begin(call, waiting);
    ServeStep step = ServeStep::Close(CloseCause::kBadFrame);
    try {
      if (process()) step = ServeStep::Served(0);
    } catch (ServeStep& park) {
      step = std::move(park);
      step.parked = Parked(std::move(waiting), frame, std::move(parked));
    } catch (const std::exception&) {
      // The position of a coding in a message is now undefined.
      Renew();
    }
    if (step.kind == ServeStep::Kind::kServed) {
      PatchLength(out, at);
      if (const auto& answered = service_.short_answer()) {
        known_.Remember(frame, out.view().substr(at + kLengthBytes), answered->id, answered->tag);
      }
    } else {
      out.Truncate(at);
    }
    return step;
  }

  std::unique_ptr<ParkedRequest> Parked(ThriftWaiting waiting, std::string_view frame,
                                        typename Processor<Coding>::Call answer) {
    const size_t memory = waiting.ids != nullptr ? waiting.ids->memory() : 0;
    if (frame.size() > KnownCalls::kCallMax) frame = {};
    return ParkedAs(
        [this, waiting = std::move(waiting), frame = std::string(frame),
         answer = std::move(answer)](DoorCall& call, OutBuffer& out) mutable {
          auto again = std::move(answer);
          return Answer(std::move(waiting), frame, call, out, again, [&] {
            again(*coding_, out);
            return true;
          });
        },
        memory);
  }

  void Renew();

  KnownCalls known_;
  ThriftService service_;
  FrameTransport<OutBuffer> transport_;
  std::optional<Coding> coding_;
  Processor<Coding> processor_;
};

template <>
void ThriftProtocol<BinaryCoding>::Renew() {
  constexpr bool kStrict = true;
  coding_.emplace(Borrowed(transport_), kStringBytesMax, kContainerItemsMax, kStrict, kStrict);
}

template <>
void ThriftProtocol<CompactCoding>::Renew() {
  coding_.emplace(Borrowed(transport_), kStringBytesMax, kContainerItemsMax);
}

}  // namespace

std::unique_ptr<Protocol> MakeThriftProtocol(ThriftCoding coding, const Backend& backend,
                                             DeskCounters& counters, LeaseDesk* leases) {
  // The generated code would print a line for each malformed message; firn_connections_closed_total
  // counts them.
  apache::thrift::GlobalOutput.setOutputFunction([](const char*) {});
  if (coding == ThriftCoding::kCompact) {
    return std::make_unique<ThriftProtocol<CompactCoding>>(coding, backend, counters, leases);
  }
  return std::make_unique<ThriftProtocol<BinaryCoding>>(coding, backend, counters, leases);
}

}  // namespace firn::front
