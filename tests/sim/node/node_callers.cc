// Calls to a simulated node, and the checks after each of its rounds.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "server/issue/refusing_strategy.h"
#include "server/node/readiness.h"
#include "tests/sim/node/node_host.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

constexpr size_t kCallsMax = 8;
constexpr uint64_t kIdsMax = 12;  // maximum ids of one call
constexpr Milliseconds kGoesOnWithin{5'000};

// Returns a strategy that refuses a tag as missing.
std::shared_ptr<Strategy> Missing() {
  return std::make_shared<RefusingStrategy>(
      Refusal{.reason = Reason::kInternal, .message = "the tag's node is missing"});
}

// Returns whether the refusal says that a plain tag is missing. The claim covers plain tags, so
// that cannot be true.
bool IsGone(const Refusal& refusal) {
  return refusal.reason == Reason::kInternal || refusal.reason == Reason::kUnknownTag ||
         refusal.message.find("root node") != std::string::npos;
}

}  // namespace

std::unique_ptr<NodeHost::Call> NodeHost::NewCall(std::string_view tag, int64_t count) {
  auto call = std::make_unique<Call>();
  call->tag = tag;
  const Request request{.tag = tag, .count = count, .method = Method::kEmbedded};
  const Tag* const known = process_->node->issuer().Resolve(tag);
  known != nullptr ? call->issue.Begin(*known, request) : call->issue.Begin(request);
  return call;
}

void NodeHost::Serve() {
  if (!up() || process_->stopping) return;
  auto& calls = process_->calls;
  if (calls.size() < kCallsMax) {
    const std::string& tag = shared_.tags[shared_.dice.Below(shared_.tags.size())];
    calls.push_back(NewCall(tag, 1 + static_cast<int64_t>(shared_.dice.Below(kIdsMax))));
  }
  for (size_t count = calls.size(); count > 0; --count) {
    std::unique_ptr<Call> call = std::move(calls.front());
    calls.pop_front();
    if (Try(*call) != Verdict::kWait) continue;
    if (shared_.OneIn(50)) {
      process_->node->issuer().GiveUp(call->issue);
    } else {
      calls.push_back(std::move(call));
    }
  }
}

Verdict NodeHost::Try(Call& call) {
  const Verdict verdict = process_->node->issuer().Issue(call.issue);
  if (verdict == Verdict::kIssued) Record(call);
  call.waited |= verdict == Verdict::kWait;
  return verdict;
}

void NodeHost::Record(const Call& call) {
  Require(!is_copy_ || !shared_.is_static, 3, "ids were issued under a copy of a grant");
  std::string text;
  call.issue.AppendText(0, shared_.clock.Wall(), text);
  const std::string tag(call.tag);
  call.issue.runs().ForEach([&](int64_t id) { shared_.oracle.Record(tag, id, text); });
  JudgeOrder(call);
  served_.insert(tag);
  has_issued_ = true;
  adopts_ = went_back_ = false;
}

// Checks all snowflake tags: a call that starts after another call has ended must not get an
// earlier tick.
void NodeHost::JudgeOrder(const Call& call) {
  if (call.tag == "numbers") return;
  const Layout& layout = process_->node->layout();
  Tick& highest = process_->highest;
  const Runs& runs = call.issue.runs();
  const auto tick_of = [&layout](int64_t id) { return layout.Unpack(id)->tick; };
  Require(call.waited || tick_of(runs[0].first) >= highest, 8,
          "a later call got an id of an earlier tick");
  highest = std::max(highest, tick_of(runs[runs.size() - 1].last()));
}

// --- checks after each round --------------------------------------------------------------------

void NodeHost::Judge() {
  const IssuingNodeStatus status = process_->node->status();
  if (status.misguessed) {  // as main.cc does, but without waiting
    Trace("had guessed wrong");
    return Kill();
  }
  Require(reached() || !status.claim.connected, 4, "it reports that it is connected, but is not");
  JudgeOfflineStart(status);
  JudgeReadiness(status);
}

// Checks a start without the registry, after its waiting time.
void NodeHost::JudgeOfflineStart(const IssuingNodeStatus& status) {
  std::optional<Grant>& goes_on = process_->goes_on;
  if (reached()) goes_on.reset();
  const BootMs now = clock_.Boot();
  if (!process_->first_round) process_->first_round = now;
  if (!goes_on || now - *process_->first_round < kGoesOnWithin) return;
  Require(status.claims.front().state == ClaimState::kHolding ||
              goes_on->clocks.TimeAt(now) >= goes_on->bound,
          7, "a start that does not reach its registry does not resume its grant");
}

bool NodeHost::SaysReady(const IssuingNodeStatus& status) const {
  if (shared_.mutant != NodeMutant::kReadyByClaim) return !status.why_not_ready.has_value();
  return status.claim.state == ClaimState::kHolding;
}

void NodeHost::JudgeReadiness(const IssuingNodeStatus& status) {
  const std::unique_ptr<Call> call = NewCall(shared_.probe, 1);
  const bool ready = SaysReady(status);
  if (shared_.mutant == NodeMutant::kLostRootStopsAll && !status.root_trouble.empty()) {
    TagBinding gone{.name = shared_.probe, .strategy = Missing(), .plugins = {}};
    if (!process_->node->issuer().Set(std::move(gone)).ok()) Die("no refused tag");
  }
  const BootMs now = shared_.clock.Boot();
  auto& since = process_->refused_since;
  switch (Try(*call)) {
    case Verdict::kRefused:
      if (!status.root_trouble.empty() && status.tags_known && IsGone(call->issue.refusal())) {
        throw Violation(10, "it refuses a plain tag because the root node is missing: " +
                                call->issue.refusal().message);
      }
      if (!since.has_value()) since = now;
      return Require(!ready || now - *since < Readiness::kStands, 5,
                     "it reports that it is ready, but issues no id");
    case Verdict::kIssued:
      Require(ready || !status.tags_known, 5, "it reports that it is not ready, but issues an id");
      break;
    case Verdict::kWait:
      process_->node->issuer().GiveUp(call->issue);
  }
  since.reset();
}

}  // namespace firn
