#include "server/front/thrift/thrift_service.h"

#include <utility>

#include "common/id/explain.h"
#include "common/time/civil_time.h"
#include "server/front/desk/id_desk.h"
#include "server/front/thrift/wire_values.h"
#include "thrift/gen/IdService.h"

namespace firn::front {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Twitter's rule: a letter, then letters, digits and dashes.
bool IsUserAgent(std::string_view text) {
  if (text.empty() || !IsLetter(text[0])) return false;
  for (const char c : text) {
    if (!IsLetter(c) && !(c >= '0' && c <= '9') && c != '-') return false;
  }
  return true;
}

class ThriftService final : public ThriftHandler, public wire::IdServiceIf {
 public:
  ThriftService(const Backend& backend, DeskCounters& counters)
      : backend_(backend), desk_(backend.issuer, counters, Method::kThrift, backend.default_tag) {}

  void Begin(Attempt& attempt) override { attempt_ = &attempt; }
  wire::IdServiceIf& service() override { return *this; }

  // --- Twitter's -------------------------------------------------------------------------------

  int64_t get_worker_id() override { return backend_.view.rack_split().WorkerOf(Machine()); }
  int64_t get_datacenter_id() override { return backend_.view.rack_split().RackOf(Machine()); }
  int64_t get_timestamp() override { return backend_.view.wall().ms(); }

  int64_t get_id(const std::string& useragent) override {
    if (!IsUserAgent(useragent)) {
      wire::InvalidUserAgentError error;
      error.__set_message("a user agent is a letter, then letters, digits and dashes");
      throw error;
    }
    return getId({});
  }

  // --- Firn's ----------------------------------------------------------------------------------

  int64_t getId(const std::string& tag) override {
    if (int64_t id; !attempt_->parked && desk_.One(tag, &id)) return id;
    Ask(tag, 1, Form::kNumbers);
    return desk_.runs()[0].first;
  }

  void getIds(std::vector<int64_t>& out, const std::string& tag, const int32_t count) override {
    const int64_t most = backend_.limits.list_ids_max;
    if (count < 1 || count > most) {
      Refuse({Reason::kBadRequest, "count is " + std::to_string(count) + ", a list has 1 to " +
                                       std::to_string(most) + " ids; more come as runs"});
    }
    Ask(tag, count, Form::kNumbers);
    out.reserve(static_cast<size_t>(count));
    desk_.runs().ForEach([&out](int64_t id) { out.push_back(id); });
  }

  void getRuns(std::vector<wire::IdRun>& out, const std::string& tag,
               const int64_t count) override {
    const int64_t most = backend_.limits.runs_ids_max;
    if (count < 1 || count > most) {
      Refuse({Reason::kBadRequest, "count is " + std::to_string(count) + ", a call has 1 to " +
                                       std::to_string(most) + " ids"});
    }
    Ask(tag, count, Form::kRuns);
    ToWire(desk_.runs(), out);
  }

  void getText(std::string& out, const std::string& tag) override {
    Ask(tag, 1, Form::kText);
    desk_.AppendText(desk_.runs()[0].first, backend_.view.wall(), out);
  }

  void explain(wire::IdFields& out, const int64_t id, const std::string& layout) override {
    const Layout read_by = ValueOf(backend_.LayoutOf(layout));
    out = ToWire(ValueOf(Explain(id, read_by, backend_.SplitOf(read_by))));
  }

  int64_t compose(const wire::ComposeRequest& request) override {
    const Layout layout = ValueOf(backend_.LayoutOf(request.layout));
    const ComposeRequest fields = ValueOf(FromWire(request));
    if (!fields.tick && !fields.time) {
      Refuse({Reason::kBadRequest, "neither time_ms nor ticks is given"});
    }
    return ValueOf(Compose(fields, layout, backend_.SplitOf(layout), IdFields{}));
  }

  void formatTime(std::string& out, const int64_t ticks, const std::string& layout) override {
    out = FormatRfc3339(ValueOf(TimeOfTick(ValueOf(backend_.LayoutOf(layout)), ticks)));
  }

  void status(wire::ServerStatus& out) override {
    out = ToWire(backend_.view.Report(), backend_.view.layout(), backend_.view.rack_split(),
                 backend_.sums().issued);
  }

  void ping() override {}

 private:
  // Returns with the ids at the desk, or not at all.
  void Ask(std::string_view tag, int64_t count, Form form) {
    switch (desk_.Ask(tag, count, form, *attempt_)) {
      case Verdict::kIssued:
        return;
      case Verdict::kWait:
        throw NoIdsYet{desk_.again_us()};
      case Verdict::kRefused:
        throw ToWire(desk_.refusal());
    }
  }

  [[noreturn]] void Refuse(Refusal refusal) {
    desk_.Refuse(std::move(refusal));
    throw ToWire(desk_.refusal());
  }

  template <typename T>
  T ValueOf(Result<T> result) {
    if (!result.ok()) Refuse(BadRequest(result.status()));
    return std::move(result).value();
  }

  MachineId Machine() {
    const auto machine = backend_.view.machine();
    if (!machine) Refuse({Reason::kNotReady, "this server holds no machine id", 0, true});
    return *machine;
  }

  const Backend& backend_;
  IdDesk desk_;
  Attempt* attempt_ = nullptr;
};

}  // namespace

std::unique_ptr<ThriftHandler> MakeThriftService(const Backend& backend, DeskCounters& counters) {
  return std::make_unique<ThriftService>(backend, counters);
}

}  // namespace firn::front
