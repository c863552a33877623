#include "tests/client/trouble_ledger.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "client/fleet/retry_budget.h"
#include "common/base/cat.h"
#include "common/time/clock.h"

namespace firn {
namespace {

// The value that a fake server adds to an id to make its time wrong.
constexpr int64_t kFarTime = int64_t{1} << 62;

}  // namespace

TroubleLedger::Page& TroubleLedger::OwnPage() {
  static std::atomic<size_t> threads = 0;
  thread_local const size_t own = threads++;
  return pages_[own % pages_.size()];
}

TroubleLedger::CallPtr TroubleLedger::Began(const Asked& asked) {
  ++began_;
  auto call = std::make_shared<Call>();
  call->asked = asked;
  call->due = SystemClock().BootMicros() + asked.time;
  return call;
}

void TroubleLedger::Ended(Call& call, const Status& status, const std::vector<int64_t>& ids) {
  const Micros now = SystemClock().BootMicros();
  Page& page = OwnPage();
  const std::lock_guard lock(page.mutex);
  if (call.ended.exchange(true)) return Fault(page.faults, "a call ended twice");
  ++ended_;
  ++page.sum.calls;
  page.sum.ids += ids.size();
  page.ids.insert(page.ids.end(), ids.begin(), ids.end());
  if (now > call.due + kPunctual) page.late.push_back({call.due, now, status.message()});
  status.ok() ? CheckAnswer(call, ids, page) : CheckFailure(call, status, now, page);
}

void TroubleLedger::CheckAnswer(const Call& call, const std::vector<int64_t>& ids, Page& page) {
  const auto got = static_cast<int>(ids.size());
  if (const int asked = call.asked.count.value_or(got); got != asked) {
    Fault(page.faults, Cat(got, " ids were given, ", asked, " were asked for"));
  }
  const auto lie = [](int64_t id) { return id >= kFarTime; };
  if (call.asked.timed && std::any_of(ids.begin(), ids.end(), lie)) {
    Fault(page.faults, "an id of another time was given");
  }
  const std::vector<CallAttempt>& attempts = call.report.attempts;
  const auto answers = std::count_if(attempts.begin(), attempts.end(), [](const auto& one) {
    return one.end == AttemptEnd::kAnswered;
  });
  const bool from_memory = call.report.from_memory;
  if (from_memory ? !call.asked.local || !attempts.empty() : answers != 1) {
    Fault(page.faults, Cat("a call was answered that reports ", attempts.size(), " attempts, ",
                           answers, " of them answered", from_memory ? ", and memory" : ""));
  }
}

void TroubleLedger::CheckFailure(const Call& call, const Status& status, Micros now, Page& page) {
  ++page.sum.failed;
  if (ending_) return;
  bool free_next = false;
  std::optional<Micros> since_asked;  // minimum time since the healthy server was tried
  for (const CallAttempt& one : call.report.attempts) {
    if (status.message().find(one.ToString()) == std::string::npos) {
      Fault(page.faults, Cat(one.ToString(), " is left out: ", status.message()));
    }
    // No connection was opened, because one had just failed.
    const bool deferred = one.end == AttemptEnd::kUnreachable && one.took.count() == 0;
    if (deferred) continue;
    const bool timed_out =
        one.end == AttemptEnd::kTimeout || one.end == AttemptEnd::kConnectTimeout;
    if (one.server == well_ && !timed_out && one.end != AttemptEnd::kAbandoned) {
      Fault(page.faults, "a call lost the well server: " + status.message());
    }
    if (one.server == well_ || since_asked)
      since_asked = since_asked.value_or(Micros(0)) + one.took;
    free_next = one.end == AttemptEnd::kUnreachable || one.end == AttemptEnd::kConnectTimeout;
  }
  const bool denied = status.message().find("retry budget") != std::string::npos;
  if (denied && free_next) {
    Fault(page.faults, "the retry budget was to pay for what is free: " + status.message());
  } else if (denied) {
    ++page.sum.denied;
  } else if (!call.asked.patient && now >= call.due) {
    ++page.sum.impatient;
  } else if (since_asked) {
    // A connection that is silent for an attempt's timeout is also closed for this call.
    const Micros from = now - *since_asked - call.asked.attempt;
    page.slow.push_back({from, now, status.message(), call.asked.attempt});
  } else {
    Fault(page.faults,
          Cat("a call failed without asking ", well_, ", which is well: ", status.message()));
  }
}

void TroubleLedger::ClientsEnd(uint64_t retries) {
  retries_ = retries;
  ending_ = true;
}

void TroubleLedger::CheckLateness(const Page& page, const Scheduling& scheduling) {
  for (const Slow& one : page.late) {
    ++sum_.late;
    // Events that are queued before the deadline are handled after it.
    const Micros kept = scheduling.Kept(one.from - kPunctual, one.ended);
    const Micros unexplained = one.ended - one.from - kept;
    sum_.unexplained = std::max(sum_.unexplained, unexplained);
    if (unexplained <= kPunctual) continue;
    Fault(faults_, Cat("a call ended ", (one.ended - one.from).count() / 1'000,
                       " ms after its deadline, of which the machine kept it waiting for ",
                       kept.count() / 1'000, " ms: ", one.outcome.empty() ? "ok" : one.outcome));
  }
}

void TroubleLedger::CheckSlowness(const Page& page, const Scheduling& scheduling) {
  for (const Slow& one : page.slow) {
    ++sum_.slow;
    if (scheduling.Kept(one.from, one.ended) >= one.attempt / 4) continue;
    Fault(faults_, Cat("a call failed though ", well_,
                       ", which is well, was asked and the machine was quick: ", one.outcome));
  }
}

std::string TroubleLedger::Faults(const Scheduling& scheduling) {
  std::vector<int64_t> ids;
  for (Page& page : pages_) {
    const std::lock_guard lock(page.mutex);
    ids.insert(ids.end(), page.ids.begin(), page.ids.end());
    sum_ += page.sum;
    if (!page.faults.empty()) Fault(faults_, page.faults);
    CheckLateness(page, scheduling);
    CheckSlowness(page, scheduling);
  }
  if (began_ != ended_) Fault(faults_, Cat(began_ - ended_, " calls did not end"));
  CheckIds(std::move(ids));
  constexpr auto kFull = static_cast<uint64_t>(client::RetryBudget::kMost);
  if (sum_.denied > 0 && retries_ + 1 < kFull) {
    Fault(faults_, Cat("retries were denied after ", retries_, ", the budget holds ", kFull));
  }
  return faults_;
}

void TroubleLedger::CheckIds(std::vector<int64_t> ids) {
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) Fault(faults_, Cat("the id ", *twice, " was given twice"));
  if (!ids.empty() && ids.front() <= ids_above_) {
    Fault(faults_, Cat("the id ", ids.front(), " was given, which is none of these servers'"));
  }
  const auto lies = std::lower_bound(ids.begin(), ids.end(), kFarTime);
  last_id_ = lies == ids.begin() ? ids_above_ : *(lies - 1);
}

void TroubleLedger::Fault(std::string& faults, const std::string& text) {
  constexpr size_t kFaultsShown = 4'000;  // bytes
  if (faults.size() < kFaultsShown) faults += text + "\n";
}

TroubleLedger::Sum& TroubleLedger::Sum::operator+=(const Sum& other) {
  calls += other.calls;
  failed += other.failed;
  impatient += other.impatient;
  denied += other.denied;
  slow += other.slow;
  ids += other.ids;
  late += other.late;
  unexplained = std::max(unexplained, other.unexplained);
  return *this;
}

std::string TroubleLedger::Sum::ToString() const {
  return Cat(calls, " calls, ", ids, " ids; ", failed, " calls failed, ", impatient,
             " of them with little time, ", denied, " for want of a retry budget, ", slow,
             " as this machine was slow; ", late, " ended late, at most ",
             unexplained.count() / 1'000, " ms more than the machine kept them waiting");
}

}  // namespace firn
