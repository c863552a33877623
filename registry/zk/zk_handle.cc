#include "registry/zk/zk_handle.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <unistd.h>

#define THREADED
#include <zookeeper/zookeeper.h>

#include "common/base/no_signals.h"

namespace firn {
namespace {

// Status of a write. An error that leaves the outcome open is kUnknown.
Status WriteStatus(int rc) {
  switch (rc) {
    case ZOK:
      return {};
    case ZNONODE:
      return NotFound("the node or its parent does not exist");
    case ZBADVERSION:
      return Conflict("the version differs");
    case ZNODEEXISTS:
      return Conflict("the node exists already");
    case ZNOTEMPTY:
      return Conflict("the node has children");
    case ZNOCHILDRENFOREPHEMERALS:
      return Invalid("the parent is ephemeral");
    case ZNOAUTH:
    case ZINVALIDACL:
      return Denied("ZooKeeper does not permit it with these credentials");
    case ZNOTREADONLY:
      return Unavailable("the ZooKeeper server is read-only");
    default:
      return Unknown(std::string("ZooKeeper: ") + zerror(rc));
  }
}

// Status of a read: an open outcome is kUnavailable.
Status ReadStatus(int rc) {
  Status status = WriteStatus(rc);
  return status.code() == Code::kUnknown ? Unavailable(status.message()) : status;
}

NodeStat FromStat(const Stat& stat) {
  return {stat.version, stat.czxid, WallMs(stat.mtime), stat.ephemeralOwner,
          std::max(stat.mzxid, stat.pzxid)};
}

// Every client may read, so that an audit needs no password; guarded nodes only their owner may
// write.
const ACL_vector& Acl(bool is_guarded) {
  static char auth[] = "auth", world[] = "world", anyone[] = "anyone", empty[] = "";
  static ACL guarded[] = {{ZOO_PERM_ALL, {auth, empty}}, {ZOO_PERM_READ, {world, anyone}}};
  static const ACL_vector vector{2, guarded};
  return is_guarded ? vector : ZOO_OPEN_ACL_UNSAFE;
}

bool IsEphemeral(const Write& write) { return write.lifetime == Lifetime::kEphemeral; }

void CreateOp(const Write& write, bool is_guarded, zoo_op_t* op) {
  zoo_create_op_init(op, write.path.c_str(), write.data.data(), static_cast<int>(write.data.size()),
                     &Acl(is_guarded), IsEphemeral(write) ? ZOO_EPHEMERAL : ZOO_PERSISTENT, nullptr,
                     0);
}

// The library returns a context pointer; ours is a number, so that no object has to live as long.
void* WatchContext(uint64_t watch) {
  return reinterpret_cast<void*>(watch);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

// The data that the library reads and writes until a request's completion has run.
struct ZkHandle::Call {
  ZkHandle* handle;
  uint64_t token;

  // Of a multi, one for each write.
  std::vector<Write> writes{};
  std::vector<zoo_op_t> ops{};
  std::vector<zoo_op_result_t> results{};
  std::vector<Stat> stats{};

  void Prepare();
  WriteOutcome Outcome(int rc, int64_t session) const;
};

void ZkHandle::Call::Prepare() {
  ops.resize(writes.size());
  results.resize(writes.size());
  stats.resize(writes.size());
  const bool with_credentials = !handle->options_.auth.empty();
  const bool shared = handle->options_.shared;
  for (size_t i = 0; i < writes.size(); ++i) {
    const Write& write = writes[i];
    const char* path = write.path.c_str();
    const int size = static_cast<int>(write.data.size());
    const int version = static_cast<int>(write.version);
    switch (write.kind) {
      case Write::Kind::kCheck:
        zoo_check_op_init(&ops[i], path, version);
        break;
      case Write::Kind::kCreate:
        CreateOp(write, with_credentials && (!shared || IsEphemeral(write)), &ops[i]);
        break;
      case Write::Kind::kSet:
        zoo_set_op_init(&ops[i], path, write.data.data(), size, version, &stats[i]);
        break;
      case Write::Kind::kErase:
        zoo_delete_op_init(&ops[i], path, version);
        break;
    }
  }
}

// Only the return code shows whether the multi was applied. The first result that is not 0 is that
// of the failed write; the results before it are 0 although those writes were rolled back.
WriteOutcome ZkHandle::Call::Outcome(int rc, int64_t session) const {
  WriteOutcome outcome;
  outcome.status = WriteStatus(rc);
  if (outcome.status.code() == Code::kUnknown) return outcome;
  if (rc != ZOK) {
    const auto bad =
        std::find_if(results.begin(), results.end(), [](auto& r) { return r.err != 0; });
    if (bad != results.end()) outcome.failed = static_cast<int>(bad - results.begin());
    if (outcome.failed >= 0) {
      outcome.status =
          std::move(outcome.status).WithContext(writes[static_cast<size_t>(outcome.failed)].path);
    }
    return outcome;
  }
  // A multi is one transaction: the zxid and time of a set also apply to the nodes created in it.
  const Stat* told = nullptr;
  outcome.stats.resize(writes.size());
  for (size_t i = 0; i < writes.size(); ++i) {
    if (writes[i].kind != Write::Kind::kSet) continue;
    outcome.stats[i] = FromStat(stats[i]);
    told = &stats[i];
  }
  for (size_t i = 0; i < writes.size(); ++i) {
    if (writes[i].kind != Write::Kind::kCreate) continue;
    NodeStat& stat = outcome.stats[i];
    if (told != nullptr) stat.created_zxid = stat.changed_zxid = told->mzxid;
    if (told != nullptr) stat.modified = WallMs(told->mtime);
    if (writes[i].lifetime == Lifetime::kEphemeral) stat.ephemeral_owner = session;
  }
  return outcome;
}

// The callbacks of the library, on its own threads.
struct ZkHandle::Callbacks {
  static void OnEvent(zhandle_t* zh, int type, int state, const char* /*path*/, void* /*watch*/) {
    if (type != ZOO_SESSION_EVENT) return;
    const auto* handle = static_cast<const ZkHandle*>(zoo_get_context(zh));
    if (state == ZOO_CONNECTED_STATE) {
      handle->sink_(SessionEvent{SessionEvent::Kind::kConnected, zoo_client_id(zh)->client_id});
    } else if (state == ZOO_EXPIRED_SESSION_STATE) {
      handle->sink_(SessionEvent{SessionEvent::Kind::kExpired});
    } else if (state == ZOO_AUTH_FAILED_STATE) {
      handle->sink_(SessionEvent{SessionEvent::Kind::kDenied});
    } else {
      handle->sink_(SessionEvent{SessionEvent::Kind::kDisconnected});
    }
  }

  static void OnWatch(zhandle_t* zh, int type, int /*state*/, const char* /*path*/, void* watch) {
    if (type == ZOO_SESSION_EVENT) return;  // watches receive these too, and stay set
    const auto* handle = static_cast<const ZkHandle*>(zoo_get_context(zh));
    handle->sink_(Noticed{reinterpret_cast<uintptr_t>(watch)});
  }

  static void Tell(const void* context, Answer answer) {
    ZkHandle* handle = static_cast<const Call*>(context)->handle;
    const std::unique_ptr<Call> call = handle->TakeCall(context);
    if (call != nullptr) handle->sink_(Answered{call->token, std::move(answer)});
  }

  static void OnData(int rc, const char* value, int size, const Stat* stat, const void* context) {
    if (rc != ZOK) return Tell(context, Result<Node>(ReadStatus(rc)));
    Node node{{}, FromStat(*stat)};
    if (value != nullptr && size > 0) node.data.assign(value, static_cast<size_t>(size));
    Tell(context, Result<Node>(std::move(node)));
  }

  static void OnNames(int rc, const String_vector* strings, const void* context) {
    if (rc != ZOK) return Tell(context, Result<std::vector<std::string>>(ReadStatus(rc)));
    std::vector<std::string> names;
    for (int i = 0; strings != nullptr && i < strings->count; ++i) {
      names.emplace_back(strings->data[i]);
    }
    std::sort(names.begin(), names.end());
    Tell(context, Result<std::vector<std::string>>(std::move(names)));
  }

  static void OnStat(int rc, const Stat* /*stat*/, const void* context) {
    Tell(context, ReadStatus(rc));
  }

  static void OnString(int rc, const char* /*value*/, const void* context) {
    Tell(context, ReadStatus(rc));
  }

  static void OnMulti(int rc, const void* context) {
    const auto* call = static_cast<const Call*>(context);
    Tell(context, call->Outcome(rc, zoo_client_id(call->handle->zh_)->client_id));
  }

  static void OnAuth(int /*rc*/, const void* /*context*/) {}  // a failure shows as kDenied
  static void OnLog(const char* /*message*/) {}               // states and answers suffice
};

// --- the handle ---------------------------------------------------------------------------------

Result<std::unique_ptr<ZkHandle>> ZkHandle::Open(const Options& options, Sink sink) {
  std::unique_ptr<ZkHandle> handle(new ZkHandle(options, std::move(sink)));
  const NoSignals for_its_threads;
  handle->zh_ = zookeeper_init2(options.hosts.c_str(), &Callbacks::OnEvent,
                                static_cast<int>(options.session_time.count()), nullptr,
                                handle.get(), 0, &Callbacks::OnLog);
  if (handle->zh_ == nullptr) {
    return Unavailable("ZooKeeper at " + options.hosts + ": " + strerror(errno));
  }
  if (!options.auth.empty()) {
    zoo_add_auth(handle->zh_, "digest", options.auth.data(), static_cast<int>(options.auth.size()),
                 &Callbacks::OnAuth, nullptr);
  }
  return handle;
}

ZkHandle::ZkHandle(const Options& options, Sink sink) : options_(options), sink_(std::move(sink)) {}

ZkHandle::~ZkHandle() {
  if (zh_ != nullptr && !sentinel_.InChild()) zookeeper_close(zh_);
}

Milliseconds ZkHandle::session_time() const { return Milliseconds(zoo_recv_timeout(zh_)); }

ZkHandle::Call* ZkHandle::NewCall(uint64_t token) {
  auto call = std::make_unique<Call>(Call{this, token});
  Call* pointer = call.get();
  const std::lock_guard lock(mutex_);
  calls_.emplace(pointer, std::move(call));
  return pointer;
}

std::unique_ptr<ZkHandle::Call> ZkHandle::TakeCall(const void* call) {
  const std::lock_guard lock(mutex_);
  auto entry = calls_.extract(call);
  return entry.empty() ? nullptr : std::move(entry.mapped());
}

Status ZkHandle::Sent(int rc, Call* call) {
  if (rc == ZOK) return {};
  TakeCall(call);
  if (rc == ZBADARGUMENTS) return Invalid("ZooKeeper's client library refused the request");
  return Unavailable(std::string("not sent to ZooKeeper: ") + zerror(rc));
}

Status ZkHandle::Get(const std::string& path, uint64_t token, uint64_t watch) {
  Call* call = NewCall(token);
  return Sent(zoo_awget(zh_, path.c_str(), watch != 0 ? &Callbacks::OnWatch : nullptr,
                        WatchContext(watch), &Callbacks::OnData, call),
              call);
}

Status ZkHandle::Children(const std::string& path, uint64_t token, uint64_t watch) {
  Call* call = NewCall(token);
  return Sent(zoo_awget_children(zh_, path.c_str(), watch != 0 ? &Callbacks::OnWatch : nullptr,
                                 WatchContext(watch), &Callbacks::OnNames, call),
              call);
}

Status ZkHandle::Exists(const std::string& path, uint64_t token, uint64_t watch) {
  Call* call = NewCall(token);
  return Sent(zoo_awexists(zh_, path.c_str(), watch != 0 ? &Callbacks::OnWatch : nullptr,
                           WatchContext(watch), &Callbacks::OnStat, call),
              call);
}

Status ZkHandle::Sync(const std::string& path, uint64_t token) {
  Call* call = NewCall(token);
  return Sent(zoo_async(zh_, path.c_str(), &Callbacks::OnString, call), call);
}

// If the session has ended, the library refuses the first write of a multi, and for each write
// after it, frees a pointer that it has not set. A session ends only in the answer to a new
// connection, so no multi is begun without a connection.
Status ZkHandle::Multi(std::vector<Write> writes, uint64_t token) {
  if (zoo_state(zh_) != ZOO_CONNECTED_STATE) return Unavailable("not connected to ZooKeeper");
  Call* call = NewCall(token);
  call->writes = std::move(writes);
  call->Prepare();
  return Sent(zoo_amulti(zh_, static_cast<int>(call->ops.size()), call->ops.data(),
                         call->results.data(), &Callbacks::OnMulti, call),
              call);
}

}  // namespace firn
