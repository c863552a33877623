#include "server/front/dubbo/dubbo_protocol.h"

#include <algorithm>
#include <array>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/cat.h"
#include "common/id/explain.h"
#include "server/front/desk/vesta_ids.h"
#include "server/front/dubbo/dubbo_answer.h"
#include "server/front/dubbo/dubbo_request.h"

namespace firn::front {
namespace {

constexpr std::string_view kVestaId = "com.robert.vesta.service.bean.Id";

// The last announcement on a connection.
struct DubboSession final : DoorSession {
  bool read_only = false;
};

using Fields = std::array<std::pair<std::string_view, int64_t>, 6>;

Fields FieldsOf(const IdFields& id) {
  const auto number = [](auto value) { return static_cast<int64_t>(value); };
  return {{{"machine", number(id.machine.value())},
           {"seq", number(id.sequence)},
           {"time", id.tick.count()},
           {"genMethod", number(id.method.value_or(0))},
           {"type", number(id.type.value_or(0))},
           {"version", number(id.version.value_or(0))}}};
}

// Generic callers do not have the class.
void WriteAsMap(const Fields& fields, HessianWriter& out) {
  out.BeginMap();
  out.Text("class");
  out.Text(kVestaId);
  for (const auto& [name, value] : fields) {
    out.Text(name);
    out.Long(value);
  }
  out.EndMap();
}

void WriteAsObject(const Fields& fields, HessianWriter& out) {
  out.Class(kVestaId, {fields[0].first, fields[1].first, fields[2].first, fields[3].first,
                       fields[4].first, fields[5].first});
  out.Object();
  for (const auto& [name, value] : fields) out.Long(value);
}

// The fields of makeId's five forms. Each form adds one in front of the others.
Result<ComposeRequest> FieldsToMake(std::span<const int64_t> numbers, VestaOrder order) {
  const auto negative =
      std::find_if(numbers.begin(), numbers.end(), [](int64_t n) { return n < 0; });
  if (negative != numbers.end()) return Invalid(Cat("a field of makeId is ", *negative));
  ComposeRequest fields;
  const auto number = [&](size_t from_end) {
    return static_cast<uint64_t>(numbers[numbers.size() - from_end]);
  };
  const size_t count = numbers.size();
  const bool has_machine = count >= 3;
  if (has_machine && order == VestaOrder::kMachineFirst) {
    fields.machine = number(3);
    fields.tick = static_cast<int64_t>(number(2));
    fields.sequence = number(1);
  } else {
    const size_t last = has_machine ? 1 : 0;
    if (has_machine) fields.machine = number(1);
    fields.sequence = number(last + 1);
    fields.tick = static_cast<int64_t>(number(last + 2));
  }
  if (count >= 4) fields.method = number(4);
  if (count >= 5) fields.type = number(5);
  if (count >= 6) fields.version = number(6);
  return fields;
}

class DubboProtocol final : public Protocol {
 public:
  DubboProtocol(const Backend& backend, IdDesk& desk, const DubboState& state,
                DubboCounters& counters)
      : backend_(backend), desk_(desk), state_(state), counters_(counters) {}

  ServeStep Serve(std::string_view in, DoorCall& call, OutBuffer& out) override {
    if (!std::string_view("\xda\xbb").starts_with(in.substr(0, 2))) {
      return ServeStep::Close(CloseCause::kBadFrame);
    }
    if (in.size() < DubboHeader::kBytes) return ServeStep::NeedMore(DubboHeader::kBytes);
    const DubboHeader header = DubboHeader::Read(in);
    const size_t whole = DubboHeader::kBytes + header.body_bytes;
    if (whole > kFrameBytesMax) {
      return ServeStep::Close(CloseCause::kFrameTooLarge);
    }
    if (in.size() < whole) return ServeStep::NeedMore(whole);
    if (!header.is_request()) return ServeStep::Close(CloseCause::kBadFrame);
    if (header.serialization() != DubboHeader::kHessian2) {
      if (header.is_two_way() && !header.is_event()) AppendWrongSerialization(header, out);
      return ServeStep::Close(CloseCause::kBadFrame);
    }
    if (header.is_event()) {
      Beat(header, out);
    } else if (!header.is_two_way()) {
      counters_.one_way.Add(1);
    } else {
      header_ = header;
      const std::string_view body = in.substr(DubboHeader::kBytes, header.body_bytes);
      ServeStep step = Safely(call, out, [&] { return Answer(body, call, out); });
      step.bytes = whole;
      return step;
    }
    if (header.is_two_way()) TellReadOnly(call, out);
    return ServeStep::Served(whole);
  }

 private:
  // Answers a heartbeat. Other events need no answer.
  void Beat(const DubboHeader& header, OutBuffer& out) {
    if (!header.is_two_way()) return;
    counters_.heartbeats.Add(1);
    AppendDubbo({.flags = DubboHeader::kEvent | DubboHeader::kHessian2,
                 .status = static_cast<uint8_t>(DubboStatus::kOk),
                 .id = header.id},
                "N", out);
  }

  // Announces a change of read-only. Consumers read the event, a request without an answer, only on
  // connections that they use, so it follows an answer.
  void TellReadOnly(DoorCall& call, OutBuffer& out) {
    const bool read_only = state_.read_only.load(std::memory_order_relaxed);
    auto* session = static_cast<DubboSession*>(call.session.get());
    if (session == nullptr) {
      if (!read_only) return;
      call.session = std::make_unique<DubboSession>();
      session = static_cast<DubboSession*>(call.session.get());
    }
    if (session->read_only == read_only) return;
    session->read_only = read_only;
    constexpr uint8_t kFlags = DubboHeader::kRequest | DubboHeader::kEvent | DubboHeader::kHessian2;
    const std::string_view event = read_only ? "\x01R" : "\x01W";
    AppendDubbo({.flags = kFlags}, event, out);
  }

  // Appends the response in answer_. Like all steps below, this one consumes nothing.
  ServeStep Answered(DoorCall& call, OutBuffer& out) {
    call.trace_id.clear();
    answer_.Append(header_, out);
    TellReadOnly(call, out);
    return ServeStep::Served(0);
  }

  // Runs `serve()`. If it throws, the answer is an error.
  template <typename Serve>
  ServeStep Safely(DoorCall& call, OutBuffer& out, Serve serve) {
    const size_t before = out.size();
    try {
      return serve();
    } catch (const std::exception& e) {
      out.Truncate(before);
      answer_.Begin(answer_.attachments());
      answer_.Refuse({Reason::kInternal, Cat("a defect: ", e.what()), 0, true});
      return Answered(call, out);
    }
  }

  ServeStep Answer(std::string_view body, DoorCall& call, OutBuffer& out) {
    std::string fault = request_.Read(body, kStringBytesMax);
    answer_.Begin(request_.takes_attachments);
    call.trace_id = request_.trace_id;
    if (!fault.empty()) {
      Bad(std::move(fault));
      return Answered(call, out);
    }
    switch (request_.method) {
      case DubboMethod::kEcho:
        answer_.Raw(request_.echo);
        break;
      case DubboMethod::kNextId:
        return NextId(request_.tag, call, out);
      case DubboMethod::kGenId:
        return NextId({}, call, out);
      case DubboMethod::kNextIds:
        return NextIds(call, out);
      case DubboMethod::kNextText:
        return NextText(call, out);
      case DubboMethod::kExpId:
        ExplainId();
        break;
      case DubboMethod::kMakeId:
        MakeId();
        break;
      case DubboMethod::kTransTime:
        TransTime();
        break;
    }
    return Answered(call, out);
  }

  void Bad(std::string message) {
    desk_.Refuse({Reason::kBadRequest, std::move(message), 0, false});
    answer_.Refuse(desk_.call().refusal());
  }

  ServeStep NextId(std::string_view tag, DoorCall& call, OutBuffer& out) {
    if (const auto id = desk_.One(desk_.Resolve(tag))) {
      answer_.Value().Long(*id);
      return Answered(call, out);
    }
    return Ask(tag, 1, Form::kNumbers, call, out,
               [this](const Runs& runs, DoorCall& door, OutBuffer& to) {
                 answer_.Value().Long(runs[0].first);
                 return Answered(door, to);
               });
  }

  ServeStep NextIds(DoorCall& call, OutBuffer& out) {
    const int64_t count = request_.numbers[0], most = backend_.limits.list_ids_max;
    if (count < 1 || count > most) {
      Bad(Cat("count is ", count, ", a list has 1 to ", most, " ids"));
      return Answered(call, out);
    }
    return Ask(request_.tag, count, Form::kNumbers, call, out,
               [this](const Runs& runs, DoorCall& door, OutBuffer& to) {
                 HessianWriter& list = answer_.Value();
                 list.List(static_cast<size_t>(runs.count()));
                 return List(desk_.TakeWaiting(), {}, list, door, to);
               });
  }

  // Writes the ids of a list, in several turns if there are many. The header, which contains the
  // length, follows the last one.
  ServeStep List(WaitingIds ids, RunsCursor at, HessianWriter& list, DoorCall& call,
                 OutBuffer& out) {
    if (at.ForNext(ids->runs(), IdDesk::kIdsPerTurn, [&list](int64_t id) { list.Long(id); })) {
      desk_.GiveBack(std::move(ids));
      return Answered(call, out);
    }
    std::string body = answer_.Interrupt();
    const size_t memory = ids->runs().memory() + body.capacity();
    return ServeStep::More(ParkedAs(
        [this, header = header_, attachments = answer_.attachments(), own = std::move(ids), at,
         begun = std::move(body)](DoorCall& door, OutBuffer& to) mutable {
          header_ = header;
          HessianWriter& rest = answer_.Resume(attachments, std::move(begun));
          return Safely(door, to, [&] { return List(std::move(own), at, rest, door, to); });
        },
        memory));
  }

  ServeStep NextText(DoorCall& call, OutBuffer& out) {
    return Ask(request_.tag, 1, Form::kText, call, out,
               [this](const Runs& runs, DoorCall& door, OutBuffer& to) {
                 text_.clear();
                 desk_.call().AppendText(runs[0].first, backend_.view.wall(), text_);
                 answer_.Value().Text(text_);
                 return Answered(door, to);
               });
  }

  void ExplainId() {
    const Result<IdFields> fields = backend_.view.layout().Unpack(request_.numbers[0]);
    if (!fields.ok()) return Bad(fields.status().message());
    HessianWriter& out = answer_.Value();
    if (request_.generic) {
      WriteAsMap(FieldsOf(*fields), out);
    } else {
      WriteAsObject(FieldsOf(*fields), out);
    }
  }

  void MakeId() {
    const auto fields =
        FieldsToMake({request_.numbers.data(), request_.numbers_count}, state_.make_id_order);
    if (!fields.ok()) return Bad(fields.status().message());
    const Result<int64_t> id = MakeVestaId(*fields, backend_, Method::kDubbo);
    if (!id.ok()) return Bad(id.status().message());
    answer_.Value().Long(*id);
  }

  void TransTime() {
    const Result<WallMs> time = TimeOfTick(backend_.view.layout(), request_.numbers[0]);
    if (!time.ok()) return Bad(time.status().message());
    answer_.Value().Date(time->ms());
  }

  template <typename Write>
  ServeStep Ask(std::string_view tag, int64_t count, Form form, DoorCall& call, OutBuffer& out,
                Write write) {
    return Finish(desk_.Ask(tag, count, form, call), call, out, write);
  }

  template <typename Write>
  ServeStep Finish(Verdict verdict, DoorCall& call, OutBuffer& out, Write write) {
    switch (verdict) {
      case Verdict::kWait:
        return desk_.Park([this, header = header_, attachments = answer_.attachments(), write](
                              WaitingIds waiting, DoorCall& door, OutBuffer& to) {
          header_ = header;
          answer_.Begin(attachments);
          return Safely(door, to, [&] {
            return Finish(desk_.Continue(std::move(waiting), door), door, to, write);
          });
        });
      case Verdict::kRefused:
        answer_.Refuse(desk_.call().refusal());
        break;
      case Verdict::kIssued:
        return write(desk_.call().runs(), call, out);
    }
    return Answered(call, out);
  }

  const Backend& backend_;
  IdDesk& desk_;
  const DubboState& state_;
  DubboCounters& counters_;
  DubboHeader header_;  // of the current request
  DubboRequest request_;
  DubboAnswer answer_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Protocol> MakeDubboProtocol(const Backend& backend, IdDesk& desk,
                                            const DubboState& state, DubboCounters& counters) {
  return std::make_unique<DubboProtocol>(backend, desk, state, counters);
}

}  // namespace firn::front
