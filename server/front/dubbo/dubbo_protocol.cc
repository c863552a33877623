#include "server/front/dubbo/dubbo_protocol.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/cat.h"
#include "common/id/explain.h"
#include "server/front/desk/vesta_ids.h"
#include "server/front/dubbo/dubbo_answer.h"
#include "server/front/dubbo/dubbo_request.h"
#include "server/issue/issue_call.h"

namespace firn::front {
namespace {

constexpr std::string_view kVestaId = "com.robert.vesta.service.bean.Id";

// What the server has announced on a connection.
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

// Generic callers have no class for it.
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

// The fields of makeId's five forms. Each form has one more, before the others.
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
    if (whole > backend_.limits.frame_bytes_max) {
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
      if (!Answer(in.substr(DubboHeader::kBytes, header.body_bytes), call)) {
        return ServeStep::Park(call.parked->ask_again_in());
      }
      call.trace_id.clear();
      answer_.Append(header, out);
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

  // The event is a request without an answer, so consumers see it behind an answer of theirs.
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

  // False: the call is parked.
  bool Answer(std::string_view body, DoorCall& call) {
    const auto text_bytes_max = static_cast<size_t>(backend_.limits.string_bytes_max);
    std::string fault = request_.Read(body, text_bytes_max);
    answer_.Begin(request_.takes_attachments);
    // A retry of a parked call stores the same bytes in the same place.
    call.trace_id = request_.trace_id;
    if (!fault.empty()) return Bad(std::move(fault));
    switch (request_.method) {
      case DubboMethod::kEcho:
        answer_.Raw(request_.echo);
        return true;
      case DubboMethod::kNextId:
        return NextId(request_.tag, call);
      case DubboMethod::kGenId:
        return NextId({}, call);
      case DubboMethod::kNextIds:
        return NextIds(call);
      case DubboMethod::kNextText:
        return NextText(call);
      case DubboMethod::kExpId:
        return ExplainId();
      case DubboMethod::kMakeId:
        return MakeId();
      case DubboMethod::kTransTime:
        return TransTime();
    }
    return Bad("no such method");
  }

  bool Bad(std::string message) {
    desk_.Refuse({Reason::kBadRequest, std::move(message), 0, false});
    answer_.Refuse(desk_.call().refusal());
    return true;
  }

  bool NextId(std::string_view tag, DoorCall& call) {
    if (const auto id = desk_.One(desk_.Resolve(tag), call)) {
      answer_.Value().Long(*id);
      return true;
    }
    return Ask(tag, 1, Form::kNumbers, call,
               [this](const Runs& runs) { answer_.Value().Long(runs[0].first); });
  }

  bool NextIds(DoorCall& call) {
    const int64_t count = request_.numbers[0], most = backend_.limits.list_ids_max;
    if (count < 1 || count > most) {
      return Bad(Cat("count is ", count, ", a list has 1 to ", most, " ids"));
    }
    return Ask(request_.tag, count, Form::kNumbers, call, [this, count](const Runs& runs) {
      HessianWriter& out = answer_.Value();
      out.List(static_cast<size_t>(count));
      runs.ForEach([&out](int64_t id) { out.Long(id); });
    });
  }

  bool NextText(DoorCall& call) {
    return Ask(request_.tag, 1, Form::kText, call, [this](const Runs& runs) {
      text_.clear();
      desk_.call().AppendText(runs[0].first, backend_.view.wall(), text_);
      answer_.Value().Text(text_);
    });
  }

  bool ExplainId() {
    const Result<IdFields> fields = backend_.view.layout().Unpack(request_.numbers[0]);
    if (!fields.ok()) return Bad(fields.status().message());
    HessianWriter& out = answer_.Value();
    if (request_.generic) {
      WriteAsMap(FieldsOf(*fields), out);
    } else {
      WriteAsObject(FieldsOf(*fields), out);
    }
    return true;
  }

  bool MakeId() {
    const auto fields =
        FieldsToMake({request_.numbers.data(), request_.numbers_count}, state_.make_id_order);
    if (!fields.ok()) return Bad(fields.status().message());
    const Result<int64_t> id = MakeVestaId(*fields, backend_, Method::kDubbo);
    if (!id.ok()) return Bad(id.status().message());
    answer_.Value().Long(*id);
    return true;
  }

  bool TransTime() {
    const Result<WallMs> time = TimeOfTick(backend_.view.layout(), request_.numbers[0]);
    if (!time.ok()) return Bad(time.status().message());
    answer_.Value().Date(time->ms());
    return true;
  }

  template <typename Write>
  bool Ask(std::string_view tag, int64_t count, Form form, DoorCall& call, Write&& write) {
    switch (desk_.Ask(tag, count, form, call)) {
      case Verdict::kWait:
        return false;
      case Verdict::kRefused:
        answer_.Refuse(desk_.call().refusal());
        break;
      case Verdict::kIssued:
        write(desk_.call().runs());
        break;
    }
    return true;
  }

  const Backend& backend_;
  IdDesk& desk_;
  const DubboState& state_;
  DubboCounters& counters_;
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
