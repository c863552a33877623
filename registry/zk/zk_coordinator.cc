#include "registry/zk/zk_coordinator.h"

#include <algorithm>
#include <optional>
#include <variant>

#include <unistd.h>

#include "registry/seam/requests.h"

namespace firn {

using Kind = SessionEvent::Kind;

namespace {

template <typename Result>
Code CodeOf(const Result& result) {
  return result.code();
}
Code CodeOf(const WriteOutcome& outcome) { return outcome.status.code(); }

}  // namespace

ZkCoordinator::ZkCoordinator(ZkOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      names_(
          std::make_unique<NameProbe>(options_.hosts, [inbox = inbox_.get()] { inbox->Wake(); })) {}

ZkCoordinator::~ZkCoordinator() {
  if (!sentinel_.InChild()) return;
  // In a forked child somebody may seem to wait for the inbox for ever, or to hold the lock of the
  // names: whoever did so in the parent.
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
  const Token token = requests_.Add(std::move(done), clock_.Boot() + options_.time_limit);
  if (!changed) return SentOrRefused(token, handle_.zk->Get(Absolute(path), token, 0));
  const auto entry =
      watching_.emplace(token, Watching{WatchKind::kNode, path, std::move(changed)}).first;
  SentOrRefused(token, Ask(token, entry->second));
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
  if (sentinel_.InChild()) return TellRefused();
  int delivered = Tend();
  std::vector<Tagged> events = inbox_->Take(delivered > 0 ? Milliseconds(0) : Patience(wait));
  for (Tagged& tagged : events) delivered += OnEvent(tagged);
  return delivered + Tend();
}

// What has to be done without an event.
int ZkCoordinator::Tend() {
  const BootMs now = clock_.Boot();
  if (handle_.zk == nullptr && now >= open_at_) OpenHandle(handle_);
  LookElsewhere(now);
  int delivered = 0;
  if (looker_session_ != 0 && now >= switch_at_) delivered += Switch();
  return delivered + TellRefused() + TellOverdue();
}

void ZkCoordinator::OpenHandle(Handle& handle) {
  const std::optional<bool> named = names_->Ask();
  if (!named) return;
  open_at_ = clock_.Boot() + options_.reopen_after;
  if (!*named) return;
  const uint64_t number = ++last_handle_;
  Result<std::unique_ptr<ZkHandle>> opened =
      ZkHandle::Open({options_.hosts, options_.session_time, options_.auth},
                     [this, number](ZkHandle::Event event) {
                       inbox_->Push({number, std::move(event)});
                     });
  if (!opened.ok()) return;  // tried again, whatever it was
  handle = {std::move(*opened), number};
}

void ZkCoordinator::LookElsewhere(BootMs now) {
  const bool lost = handle_.zk != nullptr && !connected_ && session_ != 0;
  if (!lost || looker_.zk != nullptr || now < open_at_) return;
  if (now >= disconnected_since_ + 2 * handle_.zk->session_time()) OpenHandle(looker_);
}

// `wait`, but not beyond the next thing that is due by time alone.
Milliseconds ZkCoordinator::Patience(Milliseconds wait) const {
  const BootMs now = clock_.Boot();
  const auto until = [&](BootMs due) { wait = std::clamp(due - now, Milliseconds(0), wait); };
  if (const auto due = requests_.NextDue()) until(*due);
  const bool may_open = !names_->under_way();
  if (handle_.zk == nullptr && may_open) until(open_at_);
  if (looker_session_ != 0) until(switch_at_);
  const bool lost = handle_.zk != nullptr && !connected_ && session_ != 0;
  if (lost && looker_.zk == nullptr && may_open) {
    until(std::max(open_at_, disconnected_since_ + 2 * handle_.zk->session_time()));
  }
  return wait;
}

int ZkCoordinator::TellRefused() {
  auto refused = std::exchange(refused_, {});
  for (auto& [done, status] : refused) AnswerFailure(done, std::move(status));
  return static_cast<int>(refused.size());
}

int ZkCoordinator::TellOverdue() {
  const auto overdue = requests_.TakeDue(clock_.Boot());
  for (const auto& [token, done] : overdue) {
    watching_.erase(token);
    AnswerLost(done, "ZooKeeper has not answered in time");
  }
  return static_cast<int>(overdue.size());
}

// --- what the handles tell ----------------------------------------------------------------------

int ZkCoordinator::OnEvent(Tagged& tagged) {
  const auto* state = std::get_if<SessionEvent>(&tagged.event);
  if (looker_.zk != nullptr && tagged.handle == looker_.number) {
    return state != nullptr ? OnLookerState(*state) : 0;
  }
  if (handle_.zk == nullptr || tagged.handle != handle_.number) return 0;
  if (state != nullptr) return OnState(*state);
  if (const auto* noticed = std::get_if<Noticed>(&tagged.event)) {
    return TellAll(watches_.Fire(noticed->watch));
  }
  return OnAnswered(std::get<Answered>(tagged.event));
}

int ZkCoordinator::OnState(const SessionEvent& state) {
  switch (state.kind) {
    case Kind::kConnected:
      looker_ = {};
      looker_session_ = 0;
      connected_ = true;
      session_ = state.session;
      return TellState({Kind::kConnected, session_});
    case Kind::kDisconnected:
      if (!connected_) return 0;
      connected_ = false;
      disconnected_since_ = clock_.Boot();
      return TellState({Kind::kDisconnected});
    case Kind::kExpired:
      open_at_ = BootMs();
      return LoseSession("the session has expired", Kind::kExpired);
    case Kind::kDenied:
      open_at_ = clock_.Boot() + options_.reopen_after;
      return LoseSession("the credentials are refused", Kind::kDenied);
  }
  return 0;
}

int ZkCoordinator::OnLookerState(const SessionEvent& state) {
  if (state.kind == Kind::kConnected) {
    if (looker_session_ == 0) switch_at_ = clock_.Boot() + handle_.zk->session_time() / 2;
    looker_session_ = state.session;
    return 0;
  }
  looker_session_ = 0;
  if (state.kind != Kind::kDisconnected) looker_ = {};
  return 0;
}

int ZkCoordinator::Switch() {
  Handle found = std::exchange(looker_, {});
  const int64_t session = std::exchange(looker_session_, 0);
  const int told = LoseSession("the session is given up", Kind::kExpired);
  handle_ = std::move(found);
  return told + OnState({Kind::kConnected, session});
}

// Ends handle and session: everything asked is answered, and every watch lost.
int ZkCoordinator::LoseSession(const char* why, SessionEvent::Kind kind) {
  connected_ = false;
  session_ = 0;
  handle_ = {};
  looker_ = {};
  looker_session_ = 0;
  watching_.clear();
  const std::vector<AnyDone> lost = requests_.TakeAll();
  for (const AnyDone& done : lost) AnswerLost(done, why);
  int told = static_cast<int>(lost.size());
  told += TellState({kind});
  return told + TellAll(watches_.FireAll());
}

int ZkCoordinator::TellState(SessionEvent event) {
  if (on_session_) on_session_(event);
  return 1;
}

int ZkCoordinator::TellAll(const WatchTable::Fired& fired) {
  for (const Changed& changed : fired) changed();
  return static_cast<int>(fired.size());
}

int ZkCoordinator::OnAnswered(Answered& answered) {
  if (KeepWatching(answered.token, answered.answer)) return 0;
  const std::optional<AnyDone> done = requests_.Take(answered.token);
  if (!done.has_value()) return 0;  // answered when its time was up
  Tell(*done, std::move(answered.answer));
  return 1;
}

// A read with a watch takes more than one request when the node is not there: a watch for its
// creation is left by asking for its existence, and if it has come meanwhile, it is read again.
// True when another request is under way; otherwise `answer` is the verb's.
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
    Status sent = Unavailable("the node comes and goes");
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
