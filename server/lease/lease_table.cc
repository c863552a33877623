#include "server/lease/lease_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/cat.h"
#include "common/id/lease_name.h"
#include "common/log/log.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_checks.h"
#include "server/lease/lease_id.h"

namespace firn {
namespace {

constexpr uint64_t kLaterMs = 500;

}  // namespace

LeaseTable::LeaseTable(LeaseTableOptions options, Coordinator& coordinator, Entropy& entropy,
                       LeaseMemory& memory, ClaimHooks hooks)
    : options_(std::move(options)),
      coordinator_(coordinator),
      entropy_(entropy),
      hooks_(std::move(hooks)),
      bounds_(memory, options_.claim.kept, options_.boot),
      highest_bound_(options_.claim.kept.highest()) {
  LoadEarlier();
}

std::string LeaseTable::Lease::title() const { return Cat("lease ", number, " (", ask.name, ")"); }

void LeaseTable::OnSession(const SessionEvent& event) {
  session_ = event.kind == SessionEvent::Kind::kConnected ? event.session : 0;
  server_.why_not = kUnchecked;  // until the next Tick
  server_.resumes = false;
  for (const auto& [id, lease] : leases_) lease->claim->OnSession(event);
  for (const Ended& ended : ended_) ended.claim->OnSession(event);
  for (const auto& [id, earlier] : earlier_) {
    if (earlier.claim != nullptr) earlier.claim->OnSession(event);
  }
}

LeaseTable::Server LeaseTable::ServerOf(const ClaimStatus& own, bool checked) {
  const bool holds = own.state == ClaimState::kHolding ||
                     (own.state == ClaimState::kLapsing && !AsksForRestore(own));
  if (!holds) {
    return {.why_not = Cat("this server has no machine id of its own: ", own.reason),
            .resumes = own.clock_checked,
            .uuid = own.uuid,
            .copies = own.copies};
  }
  return {.why_not = checked ? "" : kUnchecked,
          .resumes = checked,
          .uuid = own.uuid,
          .copies = own.copies};
}

// --- calls ---------------------------------------------------------------------------------------

void LeaseTable::Handle(const LeaseCall& call, Done done) {
  // The time is unknown before the first Tick.
  if (now_.clocks.wall == WallMs()) return Refuse(LeaseVerdict::kLater, server_.why_not, done);
  if (stop_until_) return Refuse(LeaseVerdict::kLater, kStopping, done);
  if (const auto* ask = std::get_if<LeaseAsk>(&call)) return Ask(*ask, std::move(done));
  if (const auto* more = std::get_if<LeaseRenewal>(&call)) return Renew(*more, std::move(done));
  End(std::get<LeaseEnd>(call), done);
}

void LeaseTable::Ask(const LeaseAsk& ask, Done done) {
  std::string fault = FaultOf(ask.ahead, ask.clock);
  if (!IsLeaseToken(ask.token)) fault = "token must have 32 lower-case hexadecimal digits";
  if (!IsLeaseName(ask.name)) {
    fault = Cat("name must have 1 to ", kLeaseNameMax, " letters, digits or characters of -_.:/@");
  }
  const uint32_t racks = options_.split.racks();
  if (ask.rack.value_or(0) >= racks) {
    fault = Cat("rack is ", *ask.rack, ", but racks are numbered from 0 to ", racks - 1);
  }
  if (!fault.empty()) return Refuse(LeaseVerdict::kBadRequest, std::move(fault), done);
  const auto known = ids_.find(ask.token);
  if (known != ids_.end()) return AskAgain(*leases_.at(known->second), std::move(done));
  LeaseReply why_not = WhyNot(ask);
  if (!why_not.message.empty()) {
    return Refuse(why_not.verdict, std::move(why_not.message), done);
  }
  const std::optional<uint32_t> rack = RackFor(ask);
  if (!rack) {
    const uint32_t named = ask.rack.value_or(options_.claim.rack);
    return Refuse(LeaseVerdict::kLater, full_racks_.at(named).why, done);
  }
  Begin(ask, *rack, std::move(done));
}

// Rule 5. A program that renews has received the first answer. So a later request with the same
// token is a late duplicate or comes from a copy.
void LeaseTable::AskAgain(Lease& lease, Done done) {
  if (!lease.granted) return AddWaiting(lease, std::move(done), {});
  if (!lease.revoked.empty()) return Refuse(LeaseVerdict::kRevoked, lease.revoked, done);
  if (lease.turns.any()) {
    return Refuse(LeaseVerdict::kOutdated,
                  "the lease of this token has been renewed; use another token", done);
  }
  Promise(lease, lease.first_until, std::move(done));
}

LeaseReply LeaseTable::WhyNot(const LeaseAsk& ask) {
  if (layout().tick_ms() > kTickMax.count()) {
    return {
        .verdict = LeaseVerdict::kRefused,
        .message = Cat("no leases: the layout's ticks are longer than ", DurationText(kTickMax))};
  }
  if (options_.claim.window < AheadMin()) {
    return {.verdict = LeaseVerdict::kRefused,
            .message = Cat("no leases: --claim_window_ms is ", options_.claim.window.count(),
                           " ms, and leases require at least ", AheadMin().count(),
                           " ms; raise it, or use another server")};
  }
  if (options_.leases_max == 0) {
    return {.verdict = LeaseVerdict::kRefused,
            .message = "this server grants no leases; see its flag --leases_max"};
  }
  if (session_ == 0) return Later("the registry is unreachable; repeat the request");
  if (!server_.why_not.empty()) return Later(server_.why_not);
  if (now_.clocks.boot < no_share_until_) {
    return {.verdict = LeaseVerdict::kRefused, .message = no_share_};
  }
  const size_t ending = static_cast<size_t>(
      std::ranges::count_if(leases_, [](const auto& one) { return IsReplaced(*one.second); }));
  const size_t leases = leases_.size() - ending + ended_.size() + earlier_.size();
  if (leases >= options_.leases_max) {
    return Later(Cat("this server has ", leases,
                     " leases, as many as --leases_max permits; use another one"));
  }
  const LeaseClient& client = ask.client;
  const size_t of_client = client.leases_max ? LeasesOf(client) : 0;
  if (client.leases_max && of_client >= *client.leases_max) {
    return {.verdict = LeaseVerdict::kLimit,
            .message = Cat(client.name, " has ", of_client, of_client == 1 ? " lease" : " leases",
                           " of this server, and its right is @lease:", *client.leases_max,
                           "; give one back, use another server, or raise the number in "
                           "--rights_file")};
  }
  if (!bounds_.trouble().ok()) return CannotKeep();
  if (claims_under_way() >= kClaimsMax) {
    return Later(
        Cat(kClaimsMax, " machine ids are being claimed for other leases; repeat the request"));
  }
  if (claims_due_ > now_.clocks.boot + (kBurst - 1) * kClaimEvery) {
    return Later(Cat("this server claims machine ids for ", kBurst,
                     " leases at once, then for one each ", DurationText(kClaimEvery),
                     "; repeat the request"));
  }
  return {};
}

// Rule 1: the claim begins after the request has arrived.
void LeaseTable::Begin(const LeaseAsk& ask, uint32_t rack, Done done) {
  auto lease = std::make_unique<Lease>();
  lease->number = ++last_number_;
  lease->id = DrawLeaseId(entropy_, options_.address);
  lease->ask = ask;
  AddWaiting(*lease, std::move(done), {});
  lease->claim = ClaimFor(*lease, rack);
  ids_[ask.token] = lease->id;
  leases_[lease->id] = std::move(lease);
}

std::unique_ptr<LeaseClaim> LeaseTable::ClaimFor(const Lease& lease, uint32_t rack,
                                                 std::optional<LeaseClaim::Dead> resumed) {
  if (!resumed) {
    claims_due_ = std::max(claims_due_, now_.clocks.boot) + kClaimEvery;
    const auto full = full_racks_.find(rack);
    if (full != full_racks_.end()) full->second.until = now_.clocks.boot + kRackEvery;
  }
  ClaimOptions claim = options_.claim;
  claim.kept = {};
  claim.worker.reset();
  claim.rack = rack;
  claim.lease = {.name = lease.ask.name, .server = options_.address};
  // The owner differs from that of the server's own claim, so that neither claim mistakes the slot
  // of the other one for its own earlier slot.
  claim.identity.owner += "/" + lease.ask.name;
  ClaimHooks hooks = hooks_;
  if (hooks_.event) {
    hooks.event = [event = hooks_.event, title = lease.title()](const ClaimEvent& seen) {
      event({seen.kind, Cat(title, ": ", seen.text)});
    };
  }
  LeaseClaim::Input input{.uuid = server_.uuid,
                          .session = session_,
                          .hooks = std::move(hooks),
                          .resumed = std::move(resumed)};
  return std::make_unique<LeaseClaim>(std::move(claim), coordinator_, entropy_, std::move(input),
                                      now_);
}

std::optional<uint32_t> LeaseTable::RackFor(const LeaseAsk& ask) const {
  const uint32_t racks = options_.split.racks(), first = ask.rack.value_or(options_.claim.rack);
  for (uint32_t i = 0; i < (ask.rack ? 1 : racks); ++i) {
    const uint32_t rack = (first + i) % racks;
    const auto full = full_racks_.find(rack);
    if (full == full_racks_.end() || now_.clocks.boot >= full->second.until) return rack;
  }
  return std::nullopt;
}

bool LeaseTable::TryAnotherRack(Lease& lease) {
  if (lease.ask.rack || ++lease.racks_tried >= options_.split.racks()) return false;
  const std::optional<uint32_t> rack = RackFor(lease.ask);
  if (!rack) return false;
  lease.claim = ClaimFor(lease, *rack);
  return true;
}

void LeaseTable::Renew(const LeaseRenewal& renewal, Done done) {
  Lease* const lease = Find(renewal.lease, done);
  if (lease == nullptr) return;
  std::string fault = FaultOf(renewal.ahead, renewal.clock);
  const bool has_turns = IsLeaseToken(renewal.turn) &&
                         (renewal.acknowledged.empty() || IsLeaseToken(renewal.acknowledged));
  if (!has_turns) fault = "a turn must have 32 lower-case hexadecimal digits";
  if (!fault.empty()) return Refuse(LeaseVerdict::kBadRequest, std::move(fault), done);
  // FaultOf refuses requests with an older clock.
  lease->turns.Forget(now_.clocks.wall - options_.claim.skew_max);
  switch (lease->turns.Judge(renewal.turn, renewal.acknowledged, renewal.clock)) {
    case LeaseTurns::Kind::kNext:
      if (lease->turns.remembered() >= turns_max()) {
        return Refuse(LeaseVerdict::kLater,
                      Cat("the lease is renewed more often than every ", DurationText(kRenewMin)),
                      done);
      }
      lease->turns.Accept(renewal.turn, renewal.clock);
      lease->turn_answered = false;
      return Promise(*lease, EndFor(*lease, AheadOf(renewal.ahead)), std::move(done));
    case LeaseTurns::Kind::kRepeated: {
      // If the turn was never answered, its end may have passed already.
      const firn::Tick until =
          lease->turn_answered ? lease->until : EndFor(*lease, AheadOf(renewal.ahead));
      return Promise(*lease, until, std::move(done));
    }
    case LeaseTurns::Kind::kOutdated:
      return Refuse(LeaseVerdict::kOutdated, "a later renewal of this lease has been answered",
                    done);
    case LeaseTurns::Kind::kEarly:
      return Refuse(LeaseVerdict::kLater,
                    "this server was restarted after the request was sent; repeat it", done);
    case LeaseTurns::Kind::kCopied:
      ++counts_.copies;
      Revoke(*lease,
             "two processes renew the same lease (the program was copied with its memory), or a "
             "renewal did not pass the last turn as 'acknowledged'; take a new lease");
      return Refuse(LeaseVerdict::kRevoked, lease->revoked, done);
  }
}

// Rule 4. A copy, such as a forked child, does not know the latest turn, so its highest tick is
// ignored.
void LeaseTable::End(const LeaseEnd& end, const Done& done) {
  Lease* const lease = Find(end.lease, done);
  if (lease == nullptr) return;
  firn::Tick bound = lease->promised;
  if (end.used.has_value() && !lease->turns.unknown() && end.turn == lease->turns.last()) {
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
  if (earlier_.contains(id)) {
    Refuse(LeaseVerdict::kLater,
           "this server was restarted and has not resumed the lease yet; repeat the request", done);
    return nullptr;
  }
  const Result<std::string> server = ServerOfLease(id);
  if (!server.ok()) {
    Refuse(LeaseVerdict::kBadRequest, server.status().message(), done);
  } else if (*server != options_.address) {
    ++counts_.refused[static_cast<size_t>(LeaseVerdict::kElsewhere)];
    done({.verdict = LeaseVerdict::kElsewhere,
          .message = "the lease belongs to server " + *server,
          .terms = {.server = *server}});
  } else {
    Refuse(LeaseVerdict::kUnknown,
           "this server has no such lease: it has ended, or the server was restarted and could not "
           "resume it",
           done);
  }
  return nullptr;
}

Milliseconds LeaseTable::AheadOf(const std::optional<Milliseconds>& asked) const {
  return std::min(asked.value_or(kLeaseAhead), options_.claim.window);
}

Milliseconds LeaseTable::AheadMin() const {
  return Milliseconds(2 * layout().tick_ms()) + Milliseconds(1'000);
}

// A request's clock passes the check for at most twice skew_max. kLeast applies if skew_max is
// small.
size_t LeaseTable::turns_max() const {
  constexpr int64_t kLeast = 16;
  return static_cast<size_t>(std::max(kLeast, 2 * options_.claim.skew_max / kRenewMin));
}

// Rule 3. The ids of a program with a wrong clock would contain wrong times.
std::string LeaseTable::FaultOf(const std::optional<Milliseconds>& ahead, WallMs clock) const {
  if (ahead && *ahead < AheadMin()) {
    return Cat("ahead_ms is ", ahead->count(), "; it must be at least ", AheadMin().count());
  }
  const Milliseconds off = clock - now_.clocks.wall;
  if (off >= AheadOf(ahead)) {
    return Cat("the program's clock is ", DurationText(off),
               " ahead of the server's, so an interval of ", DurationText(AheadOf(ahead)),
               " would have ended there; correct the clock, or request a longer interval");
  }
  if (std::chrono::abs(off) <= options_.claim.skew_max) return {};
  return Cat("the program's clock is ", DurationText(std::chrono::abs(off)),
             off > Milliseconds(0) ? " ahead of" : " behind", " the server's (",
             FormatRfc3339(clock), ", server ", FormatRfc3339(now_.clocks.wall),
             "); correct the clock");
}

void LeaseTable::Refuse(LeaseVerdict verdict, std::string message, const Done& done) {
  ++counts_.refused[static_cast<size_t>(verdict)];
  LeaseReply reply{.verdict = verdict, .message = std::move(message)};
  const bool again = verdict == LeaseVerdict::kLater || verdict == LeaseVerdict::kLimit;
  if (again) reply.retry_after = Later({}).retry_after;
  done(std::move(reply));
}

LeaseReply LeaseTable::CannotKeep() {
  return Later("the state folder cannot be written: " + bounds_.trouble().message());
}

// The jitter spreads the retries of programs that were refused together.
LeaseReply LeaseTable::Later(std::string message) {
  return {.verdict = LeaseVerdict::kLater,
          .message = std::move(message),
          .retry_after = Milliseconds(kLaterMs + entropy_.Below(2 * kLaterMs))};
}

size_t LeaseTable::claims_under_way() const {
  return static_cast<size_t>(std::count_if(leases_.begin(), leases_.end(),
                                           [](const auto& one) { return !one.second->granted; }));
}

// An ended lease counts until its machine id is free, as it does for --leases_max.
size_t LeaseTable::LeasesOf(const LeaseClient& client) const {
  const auto living = std::count_if(leases_.begin(), leases_.end(), [&](const auto& one) {
    return one.second->ask.client.name == client.name && !IsReplaced(*one.second);
  });
  const auto ended = std::count_if(ended_.begin(), ended_.end(), [&](const Ended& one) {
    return one.shown.client == client.name;
  });
  const auto earlier = std::count_if(earlier_.begin(), earlier_.end(), [&](const auto& one) {
    return one.second.kept.client == client.name;
  });
  return static_cast<size_t>(living + ended + earlier);
}

}  // namespace firn
