#include "server/front/thrift/thrift_protocol.h"

#include <optional>

#include <thrift/TOutput.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>

#include "server/front/thrift/known_calls.h"
#include "server/front/thrift/thrift_service.h"
#include "server/front/thrift/wire_values.h"
#include "thrift/frame_transport.h"
#include "thrift/gen/IdService.h"

namespace firn::front {
namespace {

using BinaryCoding = apache::thrift::protocol::TBinaryProtocolT<FrameTransport<OutBuffer>>;
using CompactCoding = apache::thrift::protocol::TCompactProtocolT<FrameTransport<OutBuffer>>;

constexpr size_t kLengthBytes = 4;

// A shared pointer that owns nothing: Thrift copies it several times in each call, and a copy of
// this one touches no counter.
template <typename T>
std::shared_ptr<T> Borrowed(T& object) {
  return std::shared_ptr<T>(std::shared_ptr<void>(), &object);
}

uint32_t ReadLength(std::string_view in) {
  uint32_t wire;
  std::memcpy(&wire, in.data(), sizeof wire);
  return __builtin_bswap32(wire);
}

void PatchLength(OutBuffer& out, size_t at) {
  const uint32_t wire = __builtin_bswap32(static_cast<uint32_t>(out.size() - at - kLengthBytes));
  out.Patch(at, &wire, sizeof wire);
}

// The entries of a list of servers as they stand in an answer, encoded once for each list.
class ListedEntries {
 public:
  template <typename Coding>
  void Write(const std::shared_ptr<const ListedServers>& list, Coding& coding, OutBuffer& out) {
    if (list == of_) return out.Append(bytes_);
    const size_t before = out.size();
    coding.writeListBegin(apache::thrift::protocol::T_STRUCT,
                          static_cast<uint32_t>(list->servers.size()));
    for (const ListedServer& server : list->servers) ToWire(server).write(&coding);
    coding.writeListEnd();
    of_ = list;
    bytes_ = out.view().substr(before);
  }

 private:
  std::shared_ptr<const ListedServers> of_;
  std::string bytes_;
};

// The generated processor, without the casts by which it finds out its own coding.
template <typename Coding>
class Processor final : public wire::IdServiceProcessorT<Coding> {
 public:
  explicit Processor(ThriftService& service)
      : wire::IdServiceProcessorT<Coding>(Borrowed<wire::IdServiceIf>(service)),
        service_(service) {}

  // The coding writes to `out`. False: the message is not a call.
  bool Process(Coding& coding, OutBuffer& out) {
    out_ = &out;
    return this->processFast(&coding, &coding, nullptr);
  }

 private:
  bool dispatchCallTemplated(Coding* in, Coding* out, const std::string& method, int32_t seqid,
                             void* context) override {
    if (method != "servers") {
      return wire::IdServiceProcessorT<Coding>::dispatchCallTemplated(in, out, method, seqid,
                                                                      context);
    }
    wire::IdService_servers_args args;
    args.read(in);
    in->readMessageEnd();
    out->writeMessageBegin(method, apache::thrift::protocol::T_REPLY, seqid);
    AnswerServers(args.known_version, *out);
    out->writeMessageEnd();
    return true;
  }

  void AnswerServers(int64_t known_version, Coding& out) {
    wire::IdService_servers_result result;
    try {
      service_.servers(result.success, known_version);
    } catch (const wire::Refusal& refusal) {
      result.refusal = refusal;
      result.__isset.refusal = true;
      result.write(&out);
      return;
    }
    using namespace apache::thrift::protocol;  // names of field types
    out.writeStructBegin("IdService_servers_result");
    out.writeFieldBegin("success", T_STRUCT, 0);
    WriteList(result.success, known_version, out);
    out.writeFieldEnd();
    out.writeFieldStop();
    out.writeStructEnd();
  }

  // As the generated code would, but for the entries.
  void WriteList(const wire::ServerList& list, int64_t known_version, Coding& out) {
    using namespace apache::thrift::protocol;
    const auto number = [&out](const char* name, int16_t field, int32_t value) {
      out.writeFieldBegin(name, T_I32, field);
      out.writeI32(value);
      out.writeFieldEnd();
    };
    const auto text = [&out](const char* name, int16_t field, const std::string& value) {
      out.writeFieldBegin(name, T_STRING, field);
      out.writeString(value);
      out.writeFieldEnd();
    };
    out.writeStructBegin("ServerList");
    text("cluster_uuid", 1, list.cluster_uuid);
    text("application", 2, list.application);
    out.writeFieldBegin("version", T_I64, 3);
    out.writeI64(list.version);
    out.writeFieldEnd();
    if (list.version != known_version) {
      out.writeFieldBegin("servers", T_LIST, 4);
      entries_.Write(service_.listed(), out, *out_);
      out.writeFieldEnd();
    }
    number("age_ms", 5, list.age_ms);
    number("ask_again_ms", 6, list.ask_again_ms);
    out.writeFieldStop();
    out.writeStructEnd();
  }

  ThriftService& service_;
  ListedEntries entries_;
  OutBuffer* out_ = nullptr;
};

template <typename Coding>
class ThriftProtocol final : public Protocol {
 public:
  ThriftProtocol(ThriftCoding coding, const Backend& backend, DeskCounters& counters)
      : limits_(backend.limits), known_(coding), service_(backend, counters), processor_(service_) {
    Renew();
  }

  ServeStep Serve(std::string_view in, DoorCall& call, OutBuffer& out) override {
    if (in.size() < kLengthBytes) return ServeStep::NeedMore(kLengthBytes);
    const size_t length = ReadLength(in);
    if (length > limits_.frame_bytes_max) return ServeStep::Close(CloseCause::kFrameTooLarge);
    const size_t whole = kLengthBytes + length;
    if (in.size() < whole) return ServeStep::NeedMore(whole);

    const std::string_view frame = in.substr(kLengthBytes, length);
    if (const KnownCall* const known = known_.Find(frame)) {
      const ServeStep step = AnswerKnown(*known, in, call, out);
      if (step.requests != 0) return step;
    }
    const size_t before = out.size();
    const ServeStep step = Process(frame, call, out);
    if (step.kind != ServeStep::Kind::kServed) {
      out.Truncate(before);
      return step;
    }
    if (const auto& answered = service_.short_answer()) {
      known_.Remember(frame, out.view().substr(before + kLengthBytes), answered->id, answered->tag);
    }
    return ServeStep::Served(whole);
  }

 private:
  // The same request again, and those behind it that are the same, in one go. None, with no trace,
  // where there is more to be told than an id.
  ServeStep AnswerKnown(const KnownCall& known, std::string_view in, const DoorCall& call,
                        OutBuffer& out) {
    const size_t calls = known_.CountLike(known, in, call.together);
    size_t answered = 0, bytes = 0;
    while (answered < calls) {
      const auto run = service_.Run(known.tag(), static_cast<int64_t>(calls - answered), call);
      if (!run) break;
      bytes += known_.Answer(known, in.substr(bytes), *run, out);
      answered += static_cast<size_t>(run->count);
    }
    return ServeStep::Served(bytes, answered);
  }

  ServeStep Process(std::string_view frame, DoorCall& call, OutBuffer& out) {
    const size_t at = out.size();
    out.Append("\0\0\0\0", kLengthBytes);
    transport_.ReadFrom(frame);
    transport_.WriteTo(out);
    service_.Begin(call);
    try {
      if (!processor_.Process(*coding_, out)) return ServeStep::Close(CloseCause::kBadFrame);
    } catch (const ServeStep& parked) {
      return parked;
    } catch (const std::exception&) {
      // A coding keeps track of where in a message it is, and has now lost it.
      Renew();
      return ServeStep::Close(CloseCause::kBadFrame);
    }
    PatchLength(out, at);
    return ServeStep::Served(0);
  }

  void Renew();

  const Limits& limits_;
  KnownCalls known_;
  ThriftService service_;
  FrameTransport<OutBuffer> transport_;
  std::optional<Coding> coding_;
  Processor<Coding> processor_;
};

template <>
void ThriftProtocol<BinaryCoding>::Renew() {
  constexpr bool kStrict = true;
  coding_.emplace(Borrowed(transport_), limits_.string_bytes_max, limits_.container_items_max,
                  kStrict, kStrict);
}

template <>
void ThriftProtocol<CompactCoding>::Renew() {
  coding_.emplace(Borrowed(transport_), limits_.string_bytes_max, limits_.container_items_max);
}

}  // namespace

std::unique_ptr<Protocol> MakeThriftProtocol(ThriftCoding coding, const Backend& backend,
                                             DeskCounters& counters) {
  // The generated code would print a line for each malformed message; they are counted instead.
  apache::thrift::GlobalOutput.setOutputFunction([](const char*) {});
  if (coding == ThriftCoding::kCompact) {
    return std::make_unique<ThriftProtocol<CompactCoding>>(coding, backend, counters);
  }
  return std::make_unique<ThriftProtocol<BinaryCoding>>(coding, backend, counters);
}

}  // namespace firn::front
