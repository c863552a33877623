#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>

#include "server/front/thrift/id_list.h"
#include "server/front/thrift/thrift_service.h"
#include "server/front/thrift/wire_values.h"
#include "thrift/frame_transport.h"
#include "thrift/gen/IdService.h"
#include "thrift/gen/Peer.h"

namespace firn::front {

using BinaryCoding = apache::thrift::protocol::TBinaryProtocolT<FrameTransport<OutBuffer>>;
using CompactCoding = apache::thrift::protocol::TCompactProtocolT<FrameTransport<OutBuffer>>;

// A shared pointer that owns nothing. Thrift copies such pointers several times in each call, and a
// copy of this one changes no reference count.
template <typename T>
std::shared_ptr<T> Borrowed(T& object) {
  return std::shared_ptr<T>(std::shared_ptr<void>(), &object);
}

// The encoded entries of a list of servers, encoded once for each list.
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

// The encoded status of the server, encoded once for each report.
class EncodedStatus {
 public:
  template <typename Coding>
  void Write(const std::shared_ptr<const StatusCache::Snapshot>& report,
             const ThriftService& service, Coding& coding, OutBuffer& out) {
    if (report == of_) return out.Append(bytes_);
    const size_t before = out.size();
    service.ToWire(*report).write(&coding);
    of_ = report;
    bytes_ = out.view().substr(before);
  }

 private:
  std::shared_ptr<const StatusCache::Snapshot> of_;
  std::string bytes_;
};

// The generated processor without its casts. It writes long answers, and answers of calls that may
// wait, itself, byte for byte as the generated code would: a call that waits keeps its arguments.
template <typename Coding>
class Processor final : public wire::IdServiceProcessorT<Coding> {
 public:
  explicit Processor(ThriftService& service)
      : wire::IdServiceProcessorT<Coding>(Borrowed<wire::IdServiceIf>(service)),
        service_(service) {}

  // Answers a call after its arguments have been read.
  using Call = std::function<void(Coding& coding, OutBuffer& out)>;

  // `coding` writes to `out`. False: the message is not a call. If it throws a ServeStep, the call
  // must be answered later by `parked`.
  bool Process(Coding& coding, OutBuffer& out, Call& parked) {
    out_ = &out;
    parked_ = &parked;
    return this->processFast(&coding, &coding, nullptr);
  }

 private:
  bool dispatchCallTemplated(Coding* in, Coding* out, const std::string& method, int32_t seqid,
                             void* context) override {
    using P = Processor;
    if (method == "getId") return Serve(*in, *out, seqid, &P::AnswerId);
    if (method == "get_id") return Serve(*in, *out, seqid, &P::AnswerTwitterId);
    if (method == "getIds") return Serve(*in, *out, seqid, &P::AnswerIds);
    if (method == "getRuns") return Serve(*in, *out, seqid, &P::AnswerRuns);
    if (method == "getText") return Serve(*in, *out, seqid, &P::AnswerText);
    if (method == "servers") return Serve(*in, *out, seqid, &P::AnswerServers);
    if (method == "status") return Serve(*in, *out, seqid, &P::AnswerStatus);
    if (method == "lease") return Serve(*in, *out, seqid, &P::AnswerLease);
    if (method == "renewLease") return Serve(*in, *out, seqid, &P::AnswerRenewal);
    if (method == "releaseLease") return Serve(*in, *out, seqid, &P::AnswerRelease);
    if (method == "takeOwned") return Serve(*in, *out, seqid, &P::AnswerOwnedTake);
    return wire::IdServiceProcessorT<Coding>::dispatchCallTemplated(in, out, method, seqid,
                                                                    context);
  }

  template <typename Args>
  bool Serve(Coding& in, Coding& out, int32_t seqid,
             void (Processor::*answer)(const Args&, Coding&, int32_t)) {
    const auto args = std::make_shared<Args>();  // the generated code permits no copy of them
    args->read(&in);
    in.readMessageEnd();
    try {
      (this->*answer)(*args, out, seqid);
    } catch (const ServeStep&) {
      *parked_ = [this, args, seqid, answer](Coding& coding, OutBuffer& to) {
        out_ = &to;
        (this->*answer)(*args, coding, seqid);
      };
      throw;
    }
    return true;
  }

  // Writes the answer that `ask(answer)` fills in, or the exception that it throws.
  template <typename Answer, typename Ask>
  static void Write(const char* method, Coding& out, int32_t seqid, Ask ask) {
    Answer answer;
    try {
      ask(answer);
    } catch (const wire::Refusal& refusal) {
      if constexpr (requires { answer.refusal; }) {
        answer.refusal = refusal;
        answer.__isset.refusal = true;
      }
    } catch (const wire::LeaseRefusal& refusal) {
      if constexpr (requires { answer.lease_refusal; }) {
        answer.lease_refusal = refusal;
        answer.__isset.lease_refusal = true;
      }
    } catch (const wire::InvalidUserAgentError& error) {
      if constexpr (requires { answer.invalid_user_agent; }) {
        answer.invalid_user_agent = error;
        answer.__isset.invalid_user_agent = true;
      }
    }
    out.writeMessageBegin(method, apache::thrift::protocol::T_REPLY, seqid);
    answer.write(&out);
    out.writeMessageEnd();
  }

  void AnswerId(const wire::IdService_getId_args& args, Coding& out, int32_t seqid) {
    Write<wire::IdService_getId_result>("getId", out, seqid, [&](auto& answer) {
      answer.success = service_.getId(args.tag);
      answer.__isset.success = true;
    });
  }

  void AnswerTwitterId(const wire::Snowflake_get_id_args& args, Coding& out, int32_t seqid) {
    Write<wire::Snowflake_get_id_result>("get_id", out, seqid, [&](auto& answer) {
      answer.success = service_.get_id(args.useragent);
      answer.__isset.success = true;
    });
  }

  void AnswerRuns(const wire::IdService_getRuns_args& args, Coding& out, int32_t seqid) {
    Write<wire::IdService_getRuns_result>("getRuns", out, seqid, [&](auto& answer) {
      service_.getRuns(answer.success, args.tag, args.count);
      answer.__isset.success = true;
    });
  }

  void AnswerText(const wire::IdService_getText_args& args, Coding& out, int32_t seqid) {
    Write<wire::IdService_getText_result>("getText", out, seqid, [&](auto& answer) {
      service_.getText(answer.success, args.tag);
      answer.__isset.success = true;
    });
  }

  void AnswerLease(const wire::IdService_lease_args& args, Coding& out, int32_t seqid) {
    Write<wire::IdService_lease_result>("lease", out, seqid, [&](auto& answer) {
      service_.lease(answer.success, args.ask);
      answer.__isset.success = true;
    });
  }

  void AnswerRenewal(const wire::IdService_renewLease_args& args, Coding& out, int32_t seqid) {
    Write<wire::IdService_renewLease_result>("renewLease", out, seqid, [&](auto& answer) {
      service_.renewLease(answer.success, args.renewal);
      answer.__isset.success = true;
    });
  }

  void AnswerRelease(const wire::IdService_releaseLease_args& args, Coding& out, int32_t seqid) {
    Write<wire::IdService_releaseLease_result>(
        "releaseLease", out, seqid, [&](auto&) { service_.releaseLease(args.lease_end); });
  }

  // Never parked: a slow tag must not delay the takes of others on this connection.
  void AnswerOwnedTake(const wire::Peer_takeOwned_args& args, Coding& out, int32_t seqid) {
    Write<wire::Peer_takeOwned_result>("takeOwned", out, seqid, [&](auto& answer) {
      answer.success = service_.TakeOwned(args.take);
      answer.__isset.success = true;
    });
  }

  void AnswerIds(const wire::IdService_getIds_args& args, Coding& out, int32_t seqid) {
    const Runs* ids = nullptr;
    const auto refusal = Refused([&] { ids = &service_.Ids(args.tag, args.count); });
    out.writeMessageBegin("getIds", apache::thrift::protocol::T_REPLY, seqid);
    if (refusal) {
      WriteRefusal<wire::IdService_getIds_result>(*refusal, out);
    } else {
      WriteSuccess(apache::thrift::protocol::T_LIST, out, [&] { WriteIds(*ids, out); });
    }
    out.writeMessageEnd();
  }

  void AnswerServers(const wire::IdService_servers_args& args, Coding& out, int32_t seqid) {
    wire::ServerList list;
    const auto refusal = Refused([&] { service_.servers(list, args.known_version); });
    out.writeMessageBegin("servers", apache::thrift::protocol::T_REPLY, seqid);
    if (refusal) {
      WriteRefusal<wire::IdService_servers_result>(*refusal, out);
    } else {
      WriteSuccess(apache::thrift::protocol::T_STRUCT, out,
                   [&] { WriteList(list, args.known_version, out); });
    }
    out.writeMessageEnd();
  }

  void AnswerStatus(const wire::IdService_status_args&, Coding& out, int32_t seqid) {
    const auto report = service_.NewReport();  // first, because it may park the call
    out.writeMessageBegin("status", apache::thrift::protocol::T_REPLY, seqid);
    WriteSuccess(apache::thrift::protocol::T_STRUCT, out,
                 [&] { status_.Write(report, service_, out, *out_); });
    out.writeMessageEnd();
  }

  template <typename Ask>
  static std::optional<wire::Refusal> Refused(Ask ask) {
    try {
      ask();
    } catch (const wire::Refusal& refusal) {
      return refusal;
    }
    return {};
  }

  template <typename Answer>
  static void WriteRefusal(const wire::Refusal& refusal, Coding& out) {
    Answer answer;
    answer.refusal = refusal;
    answer.__isset.refusal = true;
    answer.write(&out);
  }

  template <typename WriteValue>
  static void WriteSuccess(apache::thrift::protocol::TType type, Coding& out, WriteValue write) {
    out.writeStructBegin("");
    out.writeFieldBegin("success", type, 0);
    write();
    out.writeFieldEnd();
    out.writeFieldStop();
    out.writeStructEnd();
  }

  void WriteIds(const Runs& ids, Coding& out) {
    out.writeListBegin(apache::thrift::protocol::T_I64, static_cast<uint32_t>(ids.count()));
    if constexpr (std::is_same_v<Coding, CompactCoding>) {
      AppendVarints(ids, *out_);
    } else {
      AppendBigEndian(ids, *out_);
    }
    out.writeListEnd();
  }

  void WriteList(const wire::ServerList& list, int64_t known_version, Coding& out) {
    using namespace apache::thrift::protocol;  // names of field types
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
  EncodedStatus status_;
  OutBuffer* out_ = nullptr;
  Call* parked_ = nullptr;
};

}  // namespace firn::front
