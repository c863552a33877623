#include "server/front/thrift/thrift_service.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "common/base/cat.h"
#include "common/id/explain.h"
#include "common/time/civil_time.h"
#include "server/front/thrift/wire_values.h"

namespace firn::front {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Twitter's rule for user agents: a letter, then letters, digits and dashes.
bool IsUserAgent(std::string_view text) {
  if (text.empty() || !IsLetter(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLetter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

}  // namespace

ThriftService::ThriftService(const Backend& backend, DeskCounters& counters, LeaseDesk* leases)
    : backend_(backend),
      desk_(backend.issuer, counters, Method::kThrift, backend.default_tag, backend.rights),
      leases_(backend, leases) {}

const IssueCall& ThriftService::Ask(std::string_view tag, int64_t count, Form form) {
  WaitingIds& ids = waiting_->ids;
  switch (ids != nullptr ? desk_.Continue(std::move(ids), *door_)
                         : desk_.Ask(tag, count, form, *door_)) {
    case Verdict::kIssued:
      break;
    case Verdict::kWait:
      ids = desk_.TakeWaiting();
      if (ids->has_all_ids()) throw ServeStep::More(nullptr);
      // Clients end an attempt before a lookup would have ended, and fail over.
      throw ServeStep::Park(ids->ask_again_in(), nullptr, 0, ids->tag());
    case Verdict::kRefused:
      throw front::ToWire(desk_.call().refusal());
  }
  return desk_.call();
}

void ThriftService::Refuse(Refusal refusal) {
  desk_.Refuse(std::move(refusal));
  throw front::ToWire(desk_.call().refusal());
}

template <typename T>
T ThriftService::ValueOf(Result<T> result) {
  if (!result.ok()) Refuse(BadRequest(result.status()));
  return std::move(result).value();
}

MachineId ThriftService::Machine() {
  const auto machine = backend_.view.machine();
  if (!machine) Refuse({Reason::kNotReady, "this server holds no machine id", 0, true});
  return *machine;
}

// --- Twitter's -----------------------------------------------------------------------------------

// Twitter's clients find both numbers in bits 12 to 16 and 17 to 21 of an id, whichever bits of the
// machine id name the rack here.
constexpr int kWorkerBits = 5;

int64_t ThriftService::get_worker_id() { return Machine().value() & ((1 << kWorkerBits) - 1); }
int64_t ThriftService::get_datacenter_id() { return Machine().value() >> kWorkerBits; }
int64_t ThriftService::get_timestamp() { return backend_.view.wall().ms(); }

int64_t ThriftService::get_id(const std::string& useragent) {
  if (!IsUserAgent(useragent)) {
    wire::InvalidUserAgentError error;
    error.__set_message("a user agent is a letter, then letters, digits and dashes");
    throw error;
  }
  return getId({});
}

// --- Firn's --------------------------------------------------------------------------------------

int64_t ThriftService::getId(const std::string& tag) {
  if (waiting_->refusal) throw front::ToWire(*waiting_->refusal);
  const Tag* const known = desk_.Resolve(tag);
  auto id = waiting_->ids != nullptr ? std::nullopt : desk_.One(known);
  bool is_short = id.has_value();
  if (!id) {
    id = Ask(tag, 1, Form::kNumbers).runs()[0].first;
    is_short = known != nullptr && desk_.Joins(*known);
  }
  if (is_short && known->name() == desk_.NameOf(tag)) short_.emplace(*known, *id);
  return *id;
}

const Runs& ThriftService::Ids(const std::string& tag, int32_t count) {
  const int64_t most = backend_.limits.list_ids_max;
  if (count < 1 || count > most) {
    Refuse({Reason::kBadRequest,
            Cat("count is ", count, ", a list has 1 to ", most, " ids; more come as runs")});
  }
  return Ask(tag, count, Form::kNumbers).runs();
}

void ThriftService::getIds(std::vector<int64_t>& out, const std::string& tag, int32_t count) {
  Ids(tag, count).ForEach([&out](int64_t id) { out.push_back(id); });
}

void ThriftService::getRuns(std::vector<wire::IdRun>& out, const std::string& tag, int64_t count) {
  if (count < 1 || count > kRunsIdsMax) {
    Refuse(
        {Reason::kBadRequest, Cat("count is ", count, ", a call has 1 to ", kRunsIdsMax, " ids")});
  }
  front::ToWire(Ask(tag, count, Form::kRuns).runs(), out);
}

void ThriftService::getText(std::string& out, const std::string& tag) {
  const IssueCall& call = Ask(tag, 1, Form::kText);
  call.AppendText(call.runs()[0].first, backend_.view.wall(), out);
}

void ThriftService::explain(wire::IdFields& out, int64_t id, const std::string& layout) {
  const Layout read_by = ValueOf(backend_.LayoutOf(layout));
  out = front::ToWire(ValueOf(Explain(id, read_by, backend_.SplitOf(read_by))));
}

int64_t ThriftService::compose(const wire::ComposeRequest& request) {
  const Layout layout = ValueOf(backend_.LayoutOf(request.layout));
  const ComposeRequest fields = ValueOf(FromWire(request));
  if (!fields.tick && !fields.time) {
    Refuse({Reason::kBadRequest, "neither time_ms nor ticks is given"});
  }
  return ValueOf(Compose(fields, layout, backend_.SplitOf(layout), IdFields{}));
}

void ThriftService::formatTime(std::string& out, int64_t ticks, const std::string& layout) {
  out = FormatRfc3339(ValueOf(TimeOfTick(ValueOf(backend_.LayoutOf(layout)), ticks)));
}

wire::OwnedRange ThriftService::TakeOwned(const wire::OwnedTake& take) {
  wire::OwnedRange answer;
  if (!backend_.take_owned) return answer;
  const Result<Range> taken = backend_.take_owned(
      {.secret = take.secret, .tag = take.tag, .form = take.form, .count = take.count});
  // Only a server of the cluster can know the secret.
  if (taken.code() != Code::kNotFound) door_->of_server = true;
  if (taken.ok()) {
    answer.__set_first(taken->begin);
    answer.__set_count(taken->size());
  } else if (taken.code() == Code::kNotFound) {
    answer.__set_elsewhere(taken.status().message());
  } else {
    answer.__set_trouble(taken.status().message());
    answer.__set_exhausted(taken.code() == Code::kExhausted);
  }
  return answer;
}

std::shared_ptr<const StatusCache::Snapshot> ThriftService::NewReport() {
  std::shared_ptr<const StatusCache::Snapshot> report = backend_.status.GetNew(*door_);
  if (report == nullptr) throw ServeStep::Park(StatusCache::kAskAgain, nullptr);
  return report;
}

void ThriftService::status(wire::ServerStatus& out) { out = ToWire(*NewReport()); }

wire::ServerStatus ThriftService::ToWire(const StatusCache::Snapshot& snapshot) const {
  return front::ToWire(snapshot.report, backend_.view.layout(), backend_.view.rack_split(),
                       snapshot.sums.issued);
}

void ThriftService::servers(wire::ServerList& out, int64_t) {
  ShownServers shown = backend_.view.servers();
  if (shown.list == nullptr) Refuse(Backend::NoServersYet());
  listed_ = std::move(shown.list);
  out.cluster_uuid = listed_->cluster_uuid;
  out.application = listed_->application;
  out.version = listed_->version;
  out.age_ms = static_cast<int32_t>(std::min<int64_t>(shown.age.count(), INT32_MAX));
  out.ask_again_ms = static_cast<int32_t>(backend_.ask_again().count());
}

// --- leases --------------------------------------------------------------------------------------

template <typename Request>
LeaseGrant ThriftService::AskForLease(const Request& request) {
  LeaseCalls::Waiting& waiting = waiting_->lease;
  std::optional<LeaseResult> result =
      waiting != nullptr ? LeaseCalls::Continue(*waiting, *door_)
                         : leases_.Ask(waiting, *door_, [&] { return FromWire(request); });
  if (!result) throw ServeStep::Park(StatusCache::kAskAgain, nullptr, LeaseCalls::kPatienceMs);
  if (auto* refusal = std::get_if<Refusal>(&*result)) throw front::ToWire(*refusal);
  if (auto* refusal = std::get_if<LeaseRefusal>(&*result)) throw front::ToWire(*refusal);
  auto* grant = std::get_if<LeaseGrant>(&*result);
  return grant != nullptr ? std::move(*grant) : LeaseGrant();
}

void ThriftService::lease(wire::LeaseTerms& out, const wire::LeaseAsk& ask) {
  out = front::ToWire(AskForLease(ask));
}

void ThriftService::renewLease(wire::LeaseTerms& out, const wire::LeaseRenewal& renewal) {
  out = front::ToWire(AskForLease(renewal));
}

void ThriftService::releaseLease(const wire::LeaseEnd& end) { AskForLease(end); }

}  // namespace firn::front
