#include "client/wire/wire_codec.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <thrift/TApplicationException.h>
#include <thrift/protocol/TBinaryProtocol.h>

#include "client/wire/lease_values.h"
#include "client/wire/single_id.h"
#include "client/wire/wire_values.h"
#include "common/base/utf8.h"
#include "thrift/frame_transport.h"
#include "thrift/gen/IdService.h"

namespace firn::client {

namespace thrift = apache::thrift;

namespace {

// Maximum items of a list in an answer. One byte may encode a struct that takes 100 bytes in
// memory.
constexpr int32_t kIdsMax = 1'000'000, kStructsMax = 100'000, kStatusStructsMax = 10'000;

// The lists of an answer.
struct Lists {
  int32_t items_max;
  thrift::protocol::TType of;  // T_STOP: lists of different types
};

Lists ListsOf(Ask::Method method) {
  if (method == Ask::Method::kGetIds) return {kIdsMax, thrift::protocol::T_I64};
  if (method == Ask::Method::kStatus) return {kStatusStructsMax, thrift::protocol::T_STOP};
  return {kStructsMax, thrift::protocol::T_STRUCT};
}

// Compares the type of each list's elements, which the generated code ignores. The base class skips
// the lists of unknown fields.
template <typename Memory>
class ListCheckingProtocol : public thrift::protocol::TBinaryProtocolT<Memory> {
  using Base = thrift::protocol::TBinaryProtocolT<Memory>;

 public:
  using Base::Base;

  void Expect(const Lists& lists) {
    this->setContainerSizeLimit(lists.items_max);
    expected_ = lists.of;
  }

  uint32_t readListBegin(thrift::protocol::TType& of, uint32_t& size) {
    const uint32_t bytes = Base::readListBegin(of, size);
    if (expected_ != thrift::protocol::T_STOP && of != expected_) {
      throw thrift::protocol::TProtocolException(thrift::protocol::TProtocolException::INVALID_DATA,
                                                 "a list has elements of another type");
    }
    return bytes;
  }

 private:
  thrift::protocol::TType expected_ = thrift::protocol::T_STOP;
};

}  // namespace

class WireCodec::Coding {
 public:
  using Memory = FrameTransport<std::string>;
  using Protocol = ListCheckingProtocol<Memory>;

  Coding() { Renew(); }

  // A protocol object tracks its position in a message, which is wrong after an exception.
  void Renew() {
    constexpr int32_t kStringMax = 1 << 20;
    constexpr bool kStrict = true;
    protocol_.emplace(std::shared_ptr<Memory>(std::shared_ptr<void>(), &memory_), kStringMax,
                      kIdsMax, kStrict, kStrict);
  }

  template <typename Args>
  void Write(const char* method, int32_t sequence, const Args& args, std::string& out) {
    const size_t at = out.size();
    out.append(kLengthBytes, '\0');
    memory_.WriteTo(out);
    protocol_->writeMessageBegin(method, thrift::protocol::T_CALL, sequence);
    args.write(&*protocol_);
    protocol_->writeMessageEnd();
    const uint32_t length =
        __builtin_bswap32(static_cast<uint32_t>(out.size() - at - kLengthBytes));
    std::memcpy(out.data() + at, &length, sizeof length);
  }

  // Parses a generated result struct. Returns nullopt if it is valid and ends the frame.
  template <typename Answer>
  std::optional<Outcome> Read(std::string_view frame, const char* method, int32_t sequence,
                              Answer& answer, const Lists& lists) {
    try {
      protocol_->Expect(lists);
      memory_.ReadFrom(frame.substr(kLengthBytes));
      std::string name;
      thrift::protocol::TMessageType type;
      int32_t its_sequence = 0;
      protocol_->readMessageBegin(name, type, its_sequence);
      if (its_sequence != sequence) return Broken("its answer belongs to another call");
      if (type == thrift::protocol::T_EXCEPTION) return ReadDefect();
      if (type != thrift::protocol::T_REPLY || name != method) return Broken("it is not an answer");
      answer.read(&*protocol_);
      protocol_->readMessageEnd();
      if (!memory_.at_end()) return Broken("bytes follow the answer");
      return std::nullopt;
    } catch (const std::exception& error) {
      Renew();
      return Broken(error.what());
    }
  }

  static Outcome Broken(std::string_view detail) {
    return Outcome::Of(AttemptEnd::kBroken, detail);
  }

 private:
  // An older server may not have the method; any other exception is a broken answer.
  Outcome ReadDefect() {
    thrift::TApplicationException defect;
    defect.read(&*protocol_);
    Outcome outcome = Broken(std::string("it says: ") + defect.what());
    outcome.lacks_method = defect.getType() == thrift::TApplicationException::UNKNOWN_METHOD;
    if (outcome.lacks_method) outcome.end = AttemptEnd::kWrongService;
    return outcome;
  }

  Memory memory_;
  std::optional<Protocol> protocol_;
};

namespace {

using Method = Ask::Method;

const char* MethodName(Method method) {
  switch (method) {
    case Method::kGetId:
      return "getId";
    case Method::kGetIds:
      return "getIds";
    case Method::kGetRuns:
      return "getRuns";
    case Method::kGetText:
      return "getText";
    case Method::kExplain:
      return "explain";
    case Method::kServers:
      return "servers";
    case Method::kLease:
      return "lease";
    case Method::kRenewLease:
      return "renewLease";
    case Method::kReleaseLease:
      return "releaseLease";
    case Method::kStatus:
      break;
  }
  return "status";
}

// The generated arguments struct, which refers to the ask.
template <typename Args>
Args OfTag(const Ask& ask) {
  Args args;
  args.tag = &ask.tag;
  return args;
}

template <typename Args, typename Count>
Args OfTagAndCount(const Ask& ask, const Count& count) {
  Args args = OfTag<Args>(ask);
  args.count = &count;
  return args;
}

}  // namespace

WireCodec::WireCodec() : coding_(std::make_unique<Coding>()) {}
WireCodec::~WireCodec() = default;

void WireCodec::AppendCall(const Ask& ask, int32_t sequence, std::string& out) {
  const char* name = MethodName(ask.method);
  const auto count = static_cast<int32_t>(ask.number);
  switch (ask.method) {
    case Method::kGetId:
      if (single_call_.empty() || ask.tag != single_tag_) {
        single_call_.clear();
        coding_->Write(name, 0, OfTag<wire::IdService_getId_pargs>(ask), single_call_);
        single_tag_ = ask.tag;
      }
      return SingleId::AppendCall(single_call_, sequence, out);
    case Method::kGetText:
      return coding_->Write(name, sequence, OfTag<wire::IdService_getText_pargs>(ask), out);
    case Method::kGetIds:
      return coding_->Write(name, sequence, OfTagAndCount<wire::IdService_getIds_pargs>(ask, count),
                            out);
    case Method::kGetRuns:
      return coding_->Write(name, sequence,
                            OfTagAndCount<wire::IdService_getRuns_pargs>(ask, ask.number), out);
    case Method::kExplain: {
      wire::IdService_explain_pargs args;
      args.id = &ask.number;
      args.layout = &ask.layout;
      return coding_->Write(name, sequence, args, out);
    }
    case Method::kServers: {
      wire::IdService_servers_pargs args;
      args.known_version = &ask.number;
      return coding_->Write(name, sequence, args, out);
    }
    case Method::kLease: {
      const wire::LeaseAsk lease = AskToWire(*ask.lease);
      wire::IdService_lease_pargs args;
      args.ask = &lease;
      return coding_->Write(name, sequence, args, out);
    }
    case Method::kRenewLease: {
      const wire::LeaseRenewal renewal = RenewalToWire(*ask.lease);
      wire::IdService_renewLease_pargs args;
      args.renewal = &renewal;
      return coding_->Write(name, sequence, args, out);
    }
    case Method::kReleaseLease: {
      const wire::LeaseEnd end = EndToWire(*ask.lease);
      wire::IdService_releaseLease_pargs args;
      args.lease_end = &end;
      return coding_->Write(name, sequence, args, out);
    }
    case Method::kStatus:
      return coding_->Write(name, sequence, wire::IdService_status_pargs(), out);
  }
}

std::optional<size_t> WireCodec::FrameLength(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) return 0;
  uint32_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  length = __builtin_bswap32(length);
  if (length > kFrameBytesMax) return std::nullopt;
  return kLengthBytes + length;
}

namespace {

// Moves the refusal or the success out of a generated result struct.
template <typename Answer, typename Take>
Outcome Settle(std::optional<Outcome> broken, const Answer& answer, Take take) {
  if (broken) return *std::move(broken);
  if (answer.__isset.refusal) return FromWire(answer.refusal);
  if (!answer.__isset.success) return Outcome::Of(AttemptEnd::kBroken, "the answer is empty");
  std::optional<std::string> fault = take();
  return fault ? Outcome::Of(AttemptEnd::kBroken, *fault) : Outcome();
}

// Returns a fault unless all texts are safe to show to people.
std::optional<std::string> OfTexts(std::initializer_list<std::string_view> texts) {
  if (std::all_of(texts.begin(), texts.end(), IsPrintableUtf8)) return std::nullopt;
  return "a text has a control character, or is not UTF-8";
}

std::optional<std::string> OfIdText(const std::string& text) {
  if (text.empty()) return "the text is empty";
  return OfTexts({text});
}

// `read` parses an answer, and returns a fault of the frame.
template <typename Answer, typename Read>
Outcome ReadLease(Reply& reply, const Layout* layout, Read read) {
  wire::LeaseTerms terms;
  Answer answer;
  constexpr bool kHasTerms = requires { answer.success; };
  if constexpr (kHasTerms) answer.success = &terms;
  if (std::optional<Outcome> broken = read(answer)) return *std::move(broken);
  LeaseOutcome made{.kind = LeaseOutcome::Kind::kReleased};
  if (answer.__isset.refusal) {
    Outcome refused = FromWire(answer.refusal);
    if (refused.refusal != Reason::kNotReady || refused.another_may_help) return refused;
    made = {.kind = LeaseOutcome::Kind::kRefused,
            .status = Unavailable(refused.detail),
            .claiming = true,
            .retry_in = refused.retry_after};
  } else if (answer.__isset.lease_refusal) {
    made = FromWire(answer.lease_refusal);
  } else if constexpr (kHasTerms) {
    if (!answer.__isset.success) return Outcome::Of(AttemptEnd::kBroken, "the answer is empty");
    if (const auto fault = OfTexts({terms.lease, terms.server})) {
      return Outcome::Of(AttemptEnd::kBroken, *fault);
    }
    made = FromWire(terms, layout);
  }
  reply.lease = std::make_shared<const LeaseOutcome>(std::move(made));
  return {};
}

template <typename Read>
Outcome ReadLease(Method method, Reply& reply, const Layout* layout, Read read) {
  if (method == Method::kLease)
    return ReadLease<wire::IdService_lease_presult>(reply, layout, read);
  if (method == Method::kRenewLease) {
    return ReadLease<wire::IdService_renewLease_presult>(reply, layout, read);
  }
  return ReadLease<wire::IdService_releaseLease_presult>(reply, layout, read);
}

// A server that has no list now is still healthy: treats its refusal as OVERLOADED.
Outcome OfServers(Outcome outcome) {
  if (outcome.refusal) outcome.refusal = Reason::kOverloaded;
  return outcome;
}

}  // namespace

Outcome WireCodec::ReadAnswer(std::string_view frame, const Ask& ask, int32_t sequence,
                              Reply& reply, const Layout* layout) {
  const char* name = MethodName(ask.method);
  const auto read = [&](auto& answer) {
    return coding_->Read(frame, name, sequence, answer, ListsOf(ask.method));
  };
  const auto settle = [&](auto& answer, auto take) { return Settle(read(answer), answer, take); };
  using Fault = std::optional<std::string>;
  switch (ask.method) {
    case Method::kGetId: {
      if (const auto id = SingleId::ReadAnswer(frame, sequence)) {
        reply.id = *id;
        return {};
      }
      wire::IdService_getId_presult answer;
      answer.success = &reply.id;
      return settle(answer, [] { return Fault(); });
    }
    case Method::kGetIds: {
      wire::IdService_getIds_presult answer;
      answer.success = &reply.ids;
      return settle(answer, [&] { return FaultOf(reply.ids, ask.number); });
    }
    case Method::kGetRuns: {
      std::vector<wire::IdRun> runs;
      wire::IdService_getRuns_presult answer;
      answer.success = &runs;
      return settle(answer, [&] {
        reply.runs = FromWire(runs);
        return FaultOf(reply.runs, ask.number);
      });
    }
    case Method::kGetText: {
      wire::IdService_getText_presult answer;
      answer.success = &reply.text;
      return settle(answer, [&] { return OfIdText(reply.text); });
    }
    case Method::kExplain: {
      wire::IdFields fields;
      wire::IdService_explain_presult answer;
      answer.success = &fields;
      return settle(answer, [&] {
        reply.explanation = std::make_shared<const Explanation>(FromWire(fields));
        return OfTexts({fields.layout, fields.time_text});
      });
    }
    case Method::kServers: {
      wire::ServerList told;
      wire::IdService_servers_presult answer;
      answer.success = &told;
      return OfServers(settle(answer, [&] {
        reply.told = std::make_shared<const ToldServers>(FromWire(told));
        return OfTexts({told.cluster_uuid});
      }));
    }
    case Method::kLease:
    case Method::kRenewLease:
    case Method::kReleaseLease:
      return ReadLease(ask.method, reply, layout, read);
    case Method::kStatus:
      break;
  }
  wire::ServerStatus status;
  wire::IdService_status_presult answer;
  answer.success = &status;
  return settle(answer, [&] {
    reply.facts = std::make_shared<const ServerFacts>(FromWire(status));
    return OfTexts({status.cluster_uuid, status.cluster_name, status.layout});
  });
}

}  // namespace firn::client
