#include "registry/zk/zk_coordinator.h"

#include <algorithm>
#include <optional>
#include <variant>

#include <unistd.h>

#include "common/base/fnv.h"
#include "registry/seam/node_version.h"
#include "registry/seam/requests.h"

namespace firn {

using Kind = SessionEvent::Kind;

namespace {

template <typename Result>
Code CodeOf(const Result& result) {
  return result.code();
}
Code CodeOf(const WriteOutcome& outcome) { return outcome.status.code(); }

// Tokens of the second handle's two requests.
constexpr uint64_t kProbeSync = 1;
constexpr uint64_t kProbeRead = 2;

}  // namespace

ZkCoordinator::ZkCoordinator(ZkOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      names_(
          std::make_unique<NameProbe>(options_.hosts, [inbox = inbox_.get()] { inbox->Wake(); })) {}

ZkCoordinator::~ZkCoordinator() {
  if (!sentinel_.InChild()) return;
  // In a forked child, threads of the parent may seem to wait in the inbox or to hold the lock of
  // the names.
  static_cast<void>(inbox_.release());
  static_cast<void>(names_.release());
}

// --- requests -----------------------------------------------------------------------------------

std::string ZkCoordinator::Absolute(const std::string& path) const {
  if (path.size() > 1) return options_.root + path;
  return options_.root.empty() ? "/" : options_.root;
}

Status ZkCoordinator::Ready(Status checked) const {
  if (!checked.ok()) return checked;
  if (sentinel_.InChild()) return Unavailable("a forked child has no session");
  if (!connected_) return Unavailable("not connected to ZooKeeper");
  if (requests_.size() >= kPendingMax) return Unavailable("too many requests at once");
  return {};
}

void ZkCoordinator::Refuse(AnyDone done, Status status) {
  refused_.emplace_back(std::move(done), std::move(status));
}

void ZkCoordinator::SentOrRefused(Token token, Status sent) {
  if (sent.ok()) return;
  watching_.erase(token);
  Refuse(*requests_.Take(token), std::move(sent));
}

void ZkCoordinator::Read(const std::string& path, ReadDone done, Changed changed) {
  Status ready = Ready(CheckPath(path));
  if (!ready.ok()) return Refuse(std::move(done), std::move(ready));
  if (path == "/") done = NotingRoot(std::move(done));
  const Token token = requests_.Add(std::move(done), clock_.Boot() + options_.time_limit);
  if (!changed) return SentOrRefused(token, handle_.zk->Get(Absolute(path), token, 0));
  const auto entry =
      watching_.emplace(token, Watching{WatchKind::kNode, path, std::move(changed)}).first;
  SentOrRefused(token, Ask(token, entry->second));
}

ZkCoordinator::ReadDone ZkCoordinator::NotingRoot(ReadDone done) {
  return [this, done = std::move(done)](Result<Node> root) {
    if (root.ok()) root_seen_ = {root->stat.created_zxid, root->stat.version};
    if (root.code() == Code::kNotFound) root_seen_.reset();
    done(std::move(root));
  };
}

void ZkCoordinator::List(const std::string& path, ListDone done, Changed changed) {
  Status ready = Ready(CheckPath(path));
  if (!ready.ok()) return Refuse(std::move(done), std::move(ready));
  const Token token = requests_.Add(std::move(done), clock_.Boot() + options_.time_limit);
  if (!changed) return SentOrRefused(token, handle_.zk->Children(Absolute(path), token, 0));
  const auto entry =
      watching_.emplace(token, Watching{WatchKind::kChildren, path, std::move(changed)}).first;
  SentOrRefused(token, Ask(token, entry->second));
}

Status ZkCoordinator::Ask(Token token, Watching& watching) {
  watching.id = watches_.IdOf(watching.kind, watching.path);
  const std::string path = Absolute(watching.path);
  return watching.kind == WatchKind::kNode ? handle_.zk->Get(path, token, watching.id)
                                           : handle_.zk->Children(path, token, watching.id);
}

Status ZkCoordinator::AskExistence(Token token, Watching& watching) {
  watching.id = watches_.IdOf(WatchKind::kNode, watching.path);
  return handle_.zk->Exists(Absolute(watching.path), token, watching.id);
}

void ZkCoordinator::Sync(const std::string& path, SyncDone done) {
  Status ready = Ready(CheckPath(path));
  if (!ready.ok()) return Refuse(std::move(done), std::move(ready));
  const Token token = requests_.Add(std::move(done), clock_.Boot() + options_.time_limit);
  SentOrRefused(token, handle_.zk->Sync(Absolute(path), token));
}

void ZkCoordinator::Multi(std::vector<Write> writes, WriteDone done) {
  Status ready = Ready(CheckWrites(writes));
  if (!ready.ok()) return Refuse(std::move(done), std::move(ready));
  for (Write& write : writes) write.path = Absolute(write.path);
  MultiAt(std::move(writes), std::move(done));
}

void ZkCoordinator::MultiAt(std::vector<Write> writes, WriteDone done) {
  const Token token = requests_.Add(std::move(done), clock_.Boot() + options_.time_limit);
  SentOrRefused(token, handle_.zk->Multi(std::move(writes), token));
}

void ZkCoordinator::PrepareRoot(SyncDone done) {
  const size_t first = options_.root.find('/', 1);
  if (first == std::string::npos) return Sync("/", std::move(done));
  PrepareFrom(first, std::move(done));
}

// Creates the ancestor of the root whose path ends at `end`, then the next.
void ZkCoordinator::PrepareFrom(size_t end, SyncDone done) {
  Status ready = Ready({});
  if (!ready.ok()) return Refuse(std::move(done), std::move(ready));
  MultiAt({Write::Create(options_.root.substr(0, end), "", Lifetime::kPersistent)},
          [this, end, done = std::move(done)](WriteOutcome outcome) {
            const bool there = outcome.status.ok() || outcome.status.code() == Code::kConflict;
            if (!there) return done(std::move(outcome.status));
            const size_t next = options_.root.find('/', end + 1);
            if (next == std::string::npos) return done({});
            PrepareFrom(next, done);
          });
}

void ZkCoordinator::OnSession(std::function<void(SessionEvent)> handler) {
  on_session_ = std::move(handler);
}

// --- Dispatch -----------------------------------------------------------------------------------

int ZkCoordinator::Dispatch(Milliseconds wait) {
  if (sentinel_.InChild()) return ReportRefused();
  int delivered = Tend();
  std::vector<Tagged> events = inbox_->Take(delivered > 0 ? Milliseconds(0) : Patience(wait));
  for (Tagged& tagged : events) delivered += OnEvent(tagged);
  return delivered + Tend();
}

// Work that needs no event.
int ZkCoordinator::Tend() {
  const BootMs now = clock_.Boot();
  if (handle_.zk == nullptr && now >= open_at_) OpenHandle(handle_, options_.session_time);
  TendProbe(now);
  int delivered = 0;
  if (give_up_at_ && now >= *give_up_at_) {
    delivered += LoseSession("the session was given up", Kind::kExpired);
  }
  return delivered + ReportRefused() + ReportOverdue();
}

void ZkCoordinator::OpenHandle(Handle& handle, Milliseconds session_time) {
  const std::optional<bool> named = names_->Ask();
  if (!named) return;
  open_at_ = clock_.Boot() + options_.reopen_after;
  if (!*named) return;
  const uint64_t number = ++last_handle_;
  Result<std::unique_ptr<ZkHandle>> opened =
      ZkHandle::Open({options_.hosts, session_time, options_.auth, options_.shared},
                     [this, number](ZkHandle::Event event) {
                       inbox_->Push({number, std::move(event)});
                     });
  if (!opened.ok()) return;  // retried after any failure
  handle = {std::move(*opened), number};
}

BootMs ZkCoordinator::ProbeAt() const {
  const auto spread = static_cast<uint64_t>(kProbeSpread.count());
  const auto part = static_cast<int64_t>(Fnv1a(std::to_string(session_)) % spread);
  return std::max(open_at_, disconnected_since_ + kProbeAfter + Milliseconds(part));
}

void ZkCoordinator::TendProbe(BootMs now) {
  if (probe_due_ && now >= *probe_due_) AskProbe(now);
  if (!disconnected() || probe_.zk != nullptr || now < ProbeAt()) return;
  OpenHandle(probe_, std::min(options_.session_time, kProbeSession));
}

// Closing a handle may wait for a silent server, so the same handle retries the read.
void ZkCoordinator::AskProbe(BootMs now) {
  probe_due_ = now + options_.time_limit;
  if (!probe_.zk->Sync(Absolute("/"), kProbeSync).ok()) RetryProbe(now);
}

void ZkCoordinator::RetryProbe(BootMs now) { probe_due_ = now + options_.reopen_after; }

// The next handle has seen no data yet, so no server refuses it.
void ZkCoordinator::EndProbe() {
  probe_ = {};
  probe_due_.reset();
  give_up_at_.reset();
}

// Returns `wait`, limited to the time of the next timed action.
Milliseconds ZkCoordinator::Patience(Milliseconds wait) const {
  const BootMs now = clock_.Boot();
  const auto until = [&](BootMs due) { wait = std::clamp(due - now, Milliseconds(0), wait); };
  if (const auto due = requests_.NextDue()) until(*due);
  const bool may_open = !names_->under_way();
  if (handle_.zk == nullptr && may_open) until(open_at_);
  if (give_up_at_) until(*give_up_at_);
  if (probe_due_) until(*probe_due_);
  if (disconnected() && probe_.zk == nullptr && may_open) until(ProbeAt());
  return wait;
}

int ZkCoordinator::ReportRefused() {
  auto refused = std::exchange(refused_, {});
  for (auto& [done, status] : refused) AnswerFailure(done, std::move(status));
  return static_cast<int>(refused.size());
}

int ZkCoordinator::ReportOverdue() {
  const auto overdue = requests_.TakeDue(clock_.Boot());
  for (const auto& [token, done] : overdue) {
    watching_.erase(token);
    AnswerLost(done, "ZooKeeper did not answer in time");
  }
  return static_cast<int>(overdue.size());
}

// --- events of the handles ----------------------------------------------------------------------

int ZkCoordinator::OnEvent(Tagged& tagged) {
  if (probe_.zk != nullptr && tagged.handle == probe_.number) return OnProbe(tagged);
  const auto* state = std::get_if<SessionEvent>(&tagged.event);
  if (handle_.zk == nullptr || tagged.handle != handle_.number) return 0;
  if (state != nullptr) return OnState(*state);
  if (const auto* noticed = std::get_if<Noticed>(&tagged.event)) {
    return NotifyAll(watches_.Fire(noticed->watch));
  }
  return OnAnswered(std::get<Answered>(tagged.event));
}

int ZkCoordinator::OnState(const SessionEvent& state) {
  switch (state.kind) {
    case Kind::kConnected:
      EndProbe();
      connected_ = true;
      session_ = state.session;
      return ReportState({Kind::kConnected, session_});
    case Kind::kDisconnected:
      if (!connected_) return 0;
      connected_ = false;
      disconnected_since_ = clock_.Boot();
      return ReportState({Kind::kDisconnected});
    case Kind::kExpired:
      open_at_ = BootMs();
      return LoseSession("the session has expired", Kind::kExpired);
    case Kind::kDenied:
      open_at_ = clock_.Boot() + options_.reopen_after;
      return LoseSession("the credentials are refused", Kind::kDenied);
  }
  return 0;
}

// The second handle syncs once it is connected, then reads the root node. A failure is retried; a
// lost connection ends it, and TendProbe opens another.
int ZkCoordinator::OnProbe(Tagged& tagged) {
  const BootMs now = clock_.Boot();
  if (const auto* state = std::get_if<SessionEvent>(&tagged.event)) {
    if (state->kind == Kind::kConnected) {
      AskProbe(now);
    } else {
      EndProbe();
    }
  } else if (auto* answered = std::get_if<Answered>(&tagged.event)) {
    if (const auto* read = std::get_if<Result<Node>>(&answered->answer)) return OnProbeRead(*read);
    const auto* synced = std::get_if<Status>(&answered->answer);
    const bool sent =
        synced != nullptr && synced->ok() && probe_.zk->Get(Absolute("/"), kProbeRead, 0).ok();
    if (!sent) RetryProbe(now);
  }
  return 0;
}

int ZkCoordinator::OnProbeRead(const Result<Node>& root) {
  if (!root.ok() && root.code() != Code::kNotFound) {
    RetryProbe(clock_.Boot());
    return 0;
  }
  probe_due_.reset();
  const bool same = root.ok() && root_seen_ &&
                    root->stat.created_zxid == root_seen_->created_zxid &&
                    !IsOlder(root->stat.version, root_seen_->version);
  if (root_seen_ && !same) {
    open_at_ = BootMs();
    return LoseSession("the registry has lost data", Kind::kExpired);
  }
  const Milliseconds session = handle_.zk->session_time();
  give_up_at_ = std::max(clock_.Boot(), disconnected_since_ + 2 * session) + session / 2;
  return 0;
}

// Ends handle and session: all requests are answered, and all watches fire.
int ZkCoordinator::LoseSession(const char* why, SessionEvent::Kind kind) {
  connected_ = false;
  session_ = 0;
  root_seen_.reset();
  handle_ = {};
  EndProbe();
  watching_.clear();
  const std::vector<AnyDone> lost = requests_.TakeAll();
  for (const AnyDone& done : lost) AnswerLost(done, why);
  int told = static_cast<int>(lost.size());
  told += ReportState({kind});
  return told + NotifyAll(watches_.FireAll());
}

int ZkCoordinator::ReportState(SessionEvent event) {
  if (on_session_) on_session_(event);
  return 1;
}

int ZkCoordinator::NotifyAll(const WatchTable::Fired& fired) {
  for (const Changed& changed : fired) changed();
  return static_cast<int>(fired.size());
}

int ZkCoordinator::OnAnswered(Answered& answered) {
  if (KeepWatching(answered.token, answered.answer)) return 0;
  const std::optional<AnyDone> done = requests_.Take(answered.token);
  if (!done.has_value()) return 0;  // answered when its time limit passed
  Tell(*done, std::move(answered.answer));
  return 1;
}

// A read with a watch takes more than one request if the node is missing: an existence request sets
// the watch for its creation, and if the node was created meanwhile, it is read again.
// True if another request was sent; otherwise `answer` is the answer to the read.
bool ZkCoordinator::KeepWatching(Token token, Answer& answer) {
  constexpr int kRoundsMax = 5;
  const auto entry = watching_.find(token);
  if (entry == watching_.end()) return false;
  Watching& watching = entry->second;
  const auto* existence = std::get_if<Status>(&answer);
  const auto fail = [&](Status status) -> Answer {
    if (watching.kind == WatchKind::kNode) return Result<Node>(std::move(status));
    return Result<std::vector<std::string>>(std::move(status));
  };
  const Code code = std::visit([](const auto& result) { return CodeOf(result); }, answer);
  const bool absent = existence == nullptr && code == Code::kNotFound;
  const bool come = existence != nullptr && code == Code::kOk;
  if (absent || come) {
    Status sent = Unavailable("the node was created and deleted during every attempt");
    if (++watching.rounds <= kRoundsMax) {
      sent = absent ? AskExistence(token, watching) : Ask(token, watching);
    }
    if (sent.ok()) return true;
    answer = fail(std::move(sent));
  } else {
    if (code == Code::kOk) {
      watches_.Add(watching.id, watching.kind, watching.path, std::move(watching.changed));
    } else if (code == Code::kNotFound) {
      watches_.Add(watching.id, WatchKind::kNode, watching.path, std::move(watching.changed));
    }
    if (existence != nullptr) answer = fail(*existence);
  }
  watching_.erase(entry);
  return false;
}

}  // namespace firn
