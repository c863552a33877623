#include "server/lease/lease_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/cat.h"
#include "common/log/log.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_checks.h"
#include "server/lease/lease_id.h"

namespace firn {
namespace {

constexpr uint64_t kLaterMs = 500;

}  // namespace

LeaseTable::LeaseTable(LeaseOptions options, Coordinator& coordinator, Entropy& entropy,
                       LeaseMemory& memory, ClaimHooks hooks)
    : options_(std::move(options)),
      coordinator_(coordinator),
      entropy_(entropy),
      hooks_(std::move(hooks)),
      bounds_(memory, options_.claim.kept),
      highest_bound_(options_.claim.kept.highest()) {}

std::string LeaseTable::Lease::title() const { return Cat("lease ", number, " (", ask.name, ")"); }

void LeaseTable::OnSession(const SessionEvent& event) {
  session_ = event.kind == SessionEvent::Kind::kConnected ? event.session : 0;
  for (const auto& [id, lease] : leases_) lease->claim->OnSession(event);
  for (const Ended& ended : ended_) ended.claim->OnSession(event);
}

// --- calls ---------------------------------------------------------------------------------------

void LeaseTable::Handle(const LeaseCall& call, Done done) {
  // Before the first Tick no time is known.
  if (now_.clocks.wall == WallMs()) return Refuse(LeaseVerdict::kLater, server_.why_not, done);
  if (const auto* ask = std::get_if<LeaseAsk>(&call)) return Ask(*ask, std::move(done));
  if (const auto* more = std::get_if<LeaseRenewal>(&call)) return Renew(*more, std::move(done));
  End(std::get<LeaseEnd>(call), done);
}

void LeaseTable::Ask(const LeaseAsk& ask, Done done) {
  std::string fault = FaultOf(ask.ahead, ask.clock);
  if (!IsLeaseToken(ask.token)) fault = "token must have 32 lower-case hexadecimal digits";
  if (!IsLeaseName(ask.name)) {
    fault = Cat("name must have 1 to ", SlotLease::kNameBytesMax,
                " letters, digits or characters of -_.:/@");
  }
  const uint32_t racks = options_.split.racks();
  if (ask.rack.value_or(0) >= racks) {
    fault = Cat("rack is ", *ask.rack, ", but racks are numbered from 0 to ", racks - 1);
  }
  if (!fault.empty()) return Refuse(LeaseVerdict::kBadRequest, std::move(fault), done);
  const auto known = ids_.find(ask.token);
  if (known != ids_.end()) return AskAgain(*leases_.at(known->second), std::move(done));
  LeaseReply why_not = WhyNot();
  if (!why_not.message.empty()) {
    return Refuse(why_not.verdict, std::move(why_not.message), done);
  }
  Begin(ask, std::move(done));
}

// Rule 5. Once a program renews, it has the first answer: who asks again is late, or a copy.
void LeaseTable::AskAgain(Lease& lease, Done done) {
  if (!lease.granted) return AddWaiting(lease, {std::move(done), {}});
  if (!lease.revoked.empty()) return Refuse(LeaseVerdict::kRevoked, lease.revoked, done);
  if (lease.turns.any()) {
    return Refuse(LeaseVerdict::kOutdated,
                  "the lease of this token has been renewed; use another token", done);
  }
  Promise(lease, lease.first_until, std::move(done));
}

LeaseReply LeaseTable::WhyNot() {
  if (layout().tick_ms() > kTickMax.count()) {
    return {
        .verdict = LeaseVerdict::kRefused,
        .message = Cat("no leases: the layout's ticks are longer than ", DurationText(kTickMax))};
  }
  if (options_.leases_max == 0) {
    return {.verdict = LeaseVerdict::kRefused,
            .message = "this server grants no leases; see its flag --leases_max"};
  }
  if (stopped_) return Later("this server is stopping; use another one");
  if (!server_.why_not.empty()) return Later(server_.why_not);
  if (session_ == 0) return Later("the registry is unreachable");
  if (leases_.size() + ended_.size() >= options_.leases_max) {
    return Later(Cat("this server has ", leases_.size() + ended_.size(),
                     " leases, as many as --leases_max permits; use another one"));
  }
  if (!bounds_.trouble().ok()) return CannotKeep();
  if (claims_under_way() >= kClaimsMax) {
    return Later(Cat(kClaimsMax, " machine ids are being claimed for other leases"));
  }
  if (claims_due_ > now_.clocks.boot + (kBurst - 1) * kClaimEvery) {
    return Later(Cat("this server grants ", kBurst, " leases at once, then one each ",
                     DurationText(kClaimEvery)));
  }
  return {};
}

// Rule 1: the claim begins after the request has arrived.
void LeaseTable::Begin(const LeaseAsk& ask, Done done) {
  claims_due_ = std::max(claims_due_, now_.clocks.boot) + kClaimEvery;
  ClaimOptions claim = options_.claim;
  claim.kept = {};
  claim.worker.reset();
  claim.rack = ask.rack.value_or(claim.rack);
  claim.lease = {.name = ask.name, .server = options_.address};
  // Another owner than the server: neither takes the other's slot for its own past.
  claim.identity.owner += "/" + ask.name;
  auto lease = std::make_unique<Lease>();
  lease->number = ++last_number_;
  lease->id = DrawLeaseId(entropy_, options_.address);
  lease->ask = ask;
  lease->waiting.push_back({std::move(done), {}});
  LeaseClaim::Input input{.uuid = server_.uuid, .session = session_, .hooks = hooks_};
  lease->claim = std::make_unique<LeaseClaim>(std::move(claim), coordinator_, entropy_,
                                              std::move(input), now_);
  ids_[ask.token] = lease->id;
  leases_[lease->id] = std::move(lease);
}

void LeaseTable::Renew(const LeaseRenewal& renewal, Done done) {
  Lease* const lease = Find(renewal.lease, done);
  if (lease == nullptr) return;
  std::string fault = FaultOf(renewal.ahead, renewal.clock);
  const bool has_turns = IsLeaseToken(renewal.turn) &&
                         (renewal.acknowledged.empty() || IsLeaseToken(renewal.acknowledged));
  if (!has_turns) fault = "a turn must have 32 lower-case hexadecimal digits";
  if (!fault.empty()) return Refuse(LeaseVerdict::kBadRequest, std::move(fault), done);
  switch (lease->turns.Judge(renewal.turn, renewal.acknowledged)) {
    case LeaseTurns::Kind::kNext:
      lease->turns.Accept(renewal.turn);
      ++counts_.renewed;
      return Promise(*lease, EndFor(*lease, renewal.ahead), std::move(done));
    case LeaseTurns::Kind::kRepeated:
      return Promise(*lease, lease->promised, std::move(done));
    case LeaseTurns::Kind::kOutdated:
      return Refuse(LeaseVerdict::kOutdated, "a later renewal of this lease has been answered",
                    done);
    case LeaseTurns::Kind::kCopied:
      ++counts_.copies;
      Revoke(*lease,
             "two processes renew the same lease: the program was copied with its memory; both "
             "must take leases of their own");
      return Refuse(LeaseVerdict::kRevoked, lease->revoked, done);
  }
}

// Rule 4. A copy, such as a forked child, does not know the latest turn: its use says nothing.
void LeaseTable::End(const LeaseEnd& end, const Done& done) {
  Lease* const lease = Find(end.lease, done);
  if (lease == nullptr) return;
  firn::Tick bound = lease->promised;
  if (end.used.has_value() && end.turn == lease->turns.last()) {
    if (*end.used >= lease->promised) {
      return Refuse(LeaseVerdict::kBadRequest, "used_tick is not below the lease's end", done);
    }
    bound = std::min(bound, std::max(*end.used + 1, lease->from()));
  }
  ++counts_.ended;
  LogInfo("lease_ended").With("lease", lease->number) << lease->title() << " was given back";
  Close(lease->id, layout().StartOf(bound));
  done({.verdict = LeaseVerdict::kEnded});
}

LeaseTable::Lease* LeaseTable::Find(const std::string& id, const Done& done) {
  const auto found = leases_.find(id);
  const bool known = found != leases_.end() && found->second->granted;
  if (known && found->second->revoked.empty()) return found->second.get();
  if (known) {
    Refuse(LeaseVerdict::kRevoked, found->second->revoked, done);
    return nullptr;
  }
  const Result<std::string> server = ServerOfLease(id);
  if (!server.ok()) {
    Refuse(LeaseVerdict::kBadRequest, server.status().message(), done);
  } else if (*server != options_.address) {
    ++counts_.refused[static_cast<size_t>(LeaseVerdict::kElsewhere)];
    done({.verdict = LeaseVerdict::kElsewhere,
          .message = "the lease belongs to server " + *server,
          .server = *server});
  } else {
    Refuse(LeaseVerdict::kUnknown,
           "this server has no such lease: it has ended, or the server was restarted", done);
  }
  return nullptr;
}

// Rule 3: ids of a program whose clock is wrong would have a wrong time.
std::string LeaseTable::FaultOf(Milliseconds ahead, WallMs clock) const {
  const Milliseconds least = Milliseconds(2 * layout().tick_ms()) + Milliseconds(1'000);
  const Milliseconds most = options_.claim.window;
  if (ahead < least || ahead > most) {
    return Cat("ahead_ms is ", ahead.count(), "; it must be ", least.count(), " to ", most.count());
  }
  const Milliseconds off = clock - now_.clocks.wall;
  if (std::chrono::abs(off) <= options_.claim.skew_max) return {};
  return Cat("the program's clock is ", DurationText(std::chrono::abs(off)),
             off > Milliseconds(0) ? " ahead of" : " behind", " the server's (",
             FormatRfc3339(clock), ", server ", FormatRfc3339(now_.clocks.wall),
             "); correct the clock");
}

void LeaseTable::Refuse(LeaseVerdict verdict, std::string message, const Done& done) {
  ++counts_.refused[static_cast<size_t>(verdict)];
  LeaseReply reply{.verdict = verdict, .message = std::move(message)};
  if (verdict == LeaseVerdict::kLater) reply.retry_after = Later({}).retry_after;
  done(std::move(reply));
}

LeaseReply LeaseTable::CannotKeep() {
  return Later("the state folder cannot be written: " + bounds_.trouble().message());
}

// With jitter: programs that were refused together do not return together.
LeaseReply LeaseTable::Later(std::string message) {
  return {.verdict = LeaseVerdict::kLater,
          .message = std::move(message),
          .retry_after = Milliseconds(kLaterMs + entropy_.Below(2 * kLaterMs))};
}

size_t LeaseTable::claims_under_way() const {
  return static_cast<size_t>(std::count_if(leases_.begin(), leases_.end(),
                                           [](const auto& one) { return !one.second->granted; }));
}

}  // namespace firn
