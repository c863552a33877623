#include "registry/dir/dir_tree.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/printed_command.h"
#include "registry/dir/dir_draft.h"
#include "registry/seam/requests.h"

namespace firn {
namespace {

constexpr size_t kFileBytesMax = Coordinator::kRequestBytesMax + 8192;
constexpr size_t kJournalBytesMax = 16 << 20;
constexpr int kLockPollMs = 2;
constexpr Milliseconds kLastPatience{250};  // for the lock at the end of a session

bool TryLock(int fd) {
  int result = 0;
  do {
    result = flock(fd, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

std::string Below(std::string folder, std::string_view name) {
  folder += '/';
  folder += name;
  return folder;
}

// A symbolic link does not count as a folder: it might lead in a circle.
bool IsFolder(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

// Holds the tree's lock as long as the object lives. Only the process that took it releases it: in
// a forked child the descriptor is closed, and its number may belong to another file.
class DirTree::Lock {
 public:
  explicit Lock(DirTree& tree) : tree_(tree) {}
  ~Lock() {
    if (!tree_.sentinel_.InChild()) flock(tree_.lock_.fd(), LOCK_UN);
  }

 private:
  DirTree& tree_;
};

// --- opening ------------------------------------------------------------------------------------

Result<std::unique_ptr<DirTree>> DirTree::Open(const DirOptions& options, const Clock& clock,
                                               Entropy& entropy) {
  std::unique_ptr<DirTree> tree(new DirTree(options, clock, entropy));
  FIRN_TRY(tree->Prepare());
  return tree;
}

DirTree::DirTree(const DirOptions& options, const Clock& clock, Entropy& entropy)
    : options_(options),
      clock_(clock),
      entropy_(entropy),
      own_(options.path + "/.firn"),
      changes_([this](const std::string& path) { return OpenOwn(path, O_RDWR | O_CREAT); }) {}

Status DirTree::Prepare() {
  FIRN_TRY(MakeFolders(options_.path));
  FIRN_TRY(CheckFileSystem(options_.path));
  FIRN_ASSIGN(owner_, OwnerIn(options_.path));
  FIRN_TRY(MakeFolder(own_, owner_));
  FIRN_TRY(MakeFolder(own_ + "/sessions", owner_));
  FIRN_ASSIGN(lock_, OpenOwn(own_ + "/lock", O_RDWR | O_CREAT));
  FIRN_TRY(changes_.Start(own_ + "/change"));
  FIRN_TRY(AwaitLock(Patience()));
  const Lock lock(*this);
  FIRN_TRY(CheckReplaced());
  FIRN_TRY(CheckPlace());
  // While the folder is open, its inode number cannot be reused for another folder.
  FIRN_ASSIGN(folder_, FileHandle::Open(options_.path, O_RDONLY | O_DIRECTORY));
  FIRN_ASSIGN(witness_, DirWitness::Stand(options_.path, identity_.inode));
  FIRN_TRY(OpenSession());
  FIRN_TRY(Recover());
  return EndDeadSessions();
}

// Opens a file of the registry's owner; creates it if it is missing.
Result<UnsharedFile> DirTree::OpenOwn(const std::string& path, int flags) const {
  FIRN_ASSIGN(UnsharedFile file, UnsharedFile::Open(path, flags));
  struct stat info {};
  if (fstat(file.fd(), &info) != 0) return FileFailure("stat", path, errno);
  if (info.st_uid == geteuid()) {
    FIRN_TRY(GiveFile(file.fd(), owner_.who, owner_.file_mode(), path));
  }
  return file;
}

Status DirTree::CheckPlace() {
  FIRN_ASSIGN(identity_, Identify(options_.path, options_.machine_id_file));
  const Result<std::string> text = ReadFile(own_ + "/identity", kFileBytesMax);
  if (text.ok()) {
    const Result<DirIdentity> recorded = ParseIdentity(*text);
    Status same = recorded.ok() ? CheckIdentity(*recorded, identity_, options_.path)
                                : recorded.status().WithContext(options_.path);
    // With `adopt`, the format must match all the same.
    if (same.ok() || !options_.adopt || recorded.code() == Code::kInvalid) return same;
  } else if (text.code() != Code::kNotFound) {
    return text.status();
  } else if (!options_.adopt) {
    FIRN_ASSIGN(const std::vector<std::string> names, ListFolder(options_.path));
    if (names.size() > 1) {
      return Corrupt(options_.path +
                     " is not a registry: it is not empty and has no .firn/identity");
    }
  }
  // Also with `adopt`. Without an identity, the contents were deleted under all its users.
  const auto same = text.ok() ? std::optional(identity_.inode) : std::nullopt;
  FIRN_ASSIGN(const auto pid, DirWitness::StaleUser(options_.path, same));
  if (pid) {
    return Conflict(Cat("process ", *pid, " still uses the registry that was at ", options_.path,
                        " earlier; stop this process first"));
  }
  Replaced replaced;
  return ReplaceFile(own_, "identity", RenderIdentity(identity_), owner_, &replaced);
}

Status DirTree::OpenSession() {
  session_ = static_cast<int64_t>(entropy_.Next() >> 2) + 1;
  const std::string path = Cat(own_, "/sessions/", session_);
  FIRN_ASSIGN(session_file_, OpenOwn(path, O_RDWR | O_CREAT | O_EXCL));
  if (!TryLock(session_file_.fd())) return FileFailure("lock", path, errno);
  return {};
}

DirTree::~DirTree() {
  if (session_ == 0 || sentinel_.InChild()) return;
  aborted_ = false;
  if (!Enter(kLastPatience).ok()) return;
  const Lock lock(*this);
  static_cast<void>(EraseNodesOf(session_));
  static_cast<void>(RemoveFile(own_ + "/sessions", std::to_string(session_)));
}

// --- the lock -----------------------------------------------------------------------------------

Status DirTree::AwaitLock(Milliseconds patience) {
  if (sentinel_.InChild()) return Unavailable("a forked child cannot use " + options_.path);
  const int64_t tries = std::max<int64_t>(1, patience.count() / kLockPollMs);
  for (int64_t i = 0; i < tries && !aborted_; ++i) {
    if (TryLock(lock_.fd())) return {};
    if (errno != EWOULDBLOCK) return FileFailure("lock", own_ + "/lock", errno);
    poll(nullptr, 0, kLockPollMs);
  }
  return Unavailable("another process holds " + own_ + "/lock");
}

// Takes the lock, completes an interrupted multi and ends dead sessions. Ok: the lock is held.
// Never returns kNotFound, which would be mistaken for a missing node.
Status DirTree::Enter(Milliseconds patience) {
  FIRN_TRY(AwaitLock(patience));
  Status status = CheckReplaced();
  if (status.ok()) status = Recover();
  if (status.ok()) status = EndDeadSessions();
  if (!status.ok()) flock(lock_.fd(), LOCK_UN);
  if (status.code() == Code::kNotFound) return Unavailable(status.message());
  return status;
}

Status DirTree::CheckReplaced() const {
  struct stat on_path {
  }, held{};
  if (stat((own_ + "/lock").c_str(), &on_path) != 0) return FileFailure("stat", own_, errno);
  if (fstat(lock_.fd(), &held) != 0) return FileFailure("stat", own_, errno);
  if (on_path.st_ino == held.st_ino && on_path.st_dev == held.st_dev) return {};
  return Corrupt(options_.path + " has been replaced");
}

Status DirTree::Recover() {
  const Result<std::string> bytes = ReadFile(own_ + "/journal", kJournalBytesMax);
  if (bytes.code() == Code::kNotFound) return {};
  if (!bytes.ok()) return bytes.status();
  const auto parsed = ParseJournal(*bytes);
  if (!parsed.ok()) {
    return Corrupt(own_ + "/journal: " + parsed.status().message() +
                   ": a write was interrupted; remove that file, then run " +
                   PrintCommand(PrintedCommand::kRestore));
  }
  const std::vector<NodeChange>& changes = *parsed;
  changes_.Begin(clock_.Wall());
  changes_.Count();
  Replaced replaced;
  for (const NodeChange& change : changes) FIRN_TRY(ApplyChange(change, &replaced));
  return RemoveFile(own_, "journal");
}

Status DirTree::EndDeadSessions() {
  const std::string folder = own_ + "/sessions";
  FIRN_ASSIGN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    const std::optional<int64_t> session = ParseNumber<int64_t>(name);
    if (!session || *session == session_) continue;
    const Result<UnsharedFile> file = UnsharedFile::Open(Below(folder, name), O_RDWR);
    if (!file.ok() || !TryLock(file->fd())) continue;
    FIRN_TRY(EraseNodesOf(*session));
    FIRN_TRY(RemoveFile(folder, name));
  }
  return {};
}

Status DirTree::EraseNodesOf(int64_t session) {
  std::vector<std::string> found;
  FIRN_TRY(FindNodesOf(session, "/", found));
  if (found.empty()) return {};
  changes_.Begin(clock_.Wall());
  changes_.Count();
  Replaced replaced;
  for (const std::string& path : found) {
    FIRN_TRY(ApplyChange({path, std::nullopt}, &replaced));
  }
  return {};
}

Status DirTree::FindNodesOf(int64_t session, const std::string& path,
                            std::vector<std::string>& found) {
  const Result<std::optional<Node>> node = Load(path);
  if (node.ok() && node->has_value() && (*node)->stat.ephemeral_owner == session) {
    found.push_back(path);
    return {};  // it has no children
  }
  const Result<std::vector<std::string>> names = Names(path);
  if (!names.ok()) return names.code() == Code::kNotFound ? Status() : names.status();
  for (const std::string& name : *names) {
    FIRN_TRY(FindNodesOf(session, ChildPath(path, name), found));
  }
  return {};
}

// --- reading ------------------------------------------------------------------------------------

// A node that cannot be examined may exist: its absence would count as a loss or a deletion.
Result<bool> DirTree::IsThere(const std::string& path) const {
  const std::string file = Below(Folder(path), kNodeFile);
  struct stat info {};
  if (lstat(file.c_str(), &info) == 0) return true;
  const Status failed = FileFailure("examine", file, errno);
  if (failed.code() == Code::kNotFound) return false;
  return failed;
}

// Reads a node, if it exists; needs the lock.
Result<std::optional<Node>> DirTree::Load(const std::string& path) const {
  const std::string folder = Folder(path);
  Result<std::string> bytes = ReadFile(Below(folder, kNodeFile), kFileBytesMax);
  if (bytes.code() == Code::kNotFound) return std::optional<Node>();
  if (!bytes.ok()) return bytes.status();
  Result<NodeFile> file = ParseNode(*bytes);
  if (!file.ok()) return file.status().WithContext(Below(folder, kNodeFile));
  if (file->name != NameOf(path)) return Corrupt(Below(folder, kNodeFile) + " is another node's");
  file->node.stat.changed_zxid = DirChanges::StampOf(folder);
  return std::optional<Node>(std::move(file->node));
}

// Lists the children of a node, unsorted; needs the lock. Ignores entries that are not nodes.
Result<std::vector<std::string>> DirTree::Names(const std::string& path) const {
  const std::string folder = Folder(path);
  FIRN_ASSIGN(const std::vector<std::string> entries, ListFolder(folder));
  std::vector<std::string> names;
  for (const std::string& entry : entries) {
    const std::string place = Below(folder, entry);
    const std::string file = Below(place, kNodeFile);
    if (entry.starts_with('.') || !IsFolder(place)) continue;
    if (access(file.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) continue;
    std::string name = NameOfFolder(entry);
    if (name.empty() && entry.starts_with('~')) {
      const Result<std::string> bytes = ReadFile(file, kFileBytesMax);
      Result<NodeFile> node = bytes.ok() ? ParseNode(*bytes) : Result<NodeFile>(bytes.status());
      if (node.ok()) name = std::move(node->name);
    }
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

Result<Node> DirTree::Read(const std::string& path) {
  FIRN_TRY(Enter(Patience()));
  const Lock lock(*this);
  FIRN_ASSIGN(std::optional<Node> node, Load(path));
  if (!node.has_value()) return NotFound(path + " does not exist");
  return std::move(*node);
}

Result<std::vector<std::string>> DirTree::List(const std::string& path) {
  FIRN_TRY(Enter(Patience()));
  const Lock lock(*this);
  FIRN_ASSIGN(const bool there, IsThere(path));
  if (!there) return NotFound(path + " does not exist");
  FIRN_ASSIGN(std::vector<std::string> names, Names(path));
  std::sort(names.begin(), names.end());
  return names;
}

Status DirTree::Sync() {
  FIRN_TRY(Enter(Patience()));
  const Lock lock(*this);
  return {};
}

Result<uint64_t> DirTree::Changes() {
  FIRN_TRY(Enter(Patience()));
  const Lock lock(*this);
  return changes_.last();
}

// A missing parent is just being created, or was removed before the journal was repeated.
Status DirTree::StampParentOf(const std::string& path) const {
  if (path.size() == 1) return {};
  Status stamped = changes_.Stamp(Folder(std::string(ParentOf(path))));
  return stamped.code() == Code::kNotFound ? Status() : stamped;
}

// --- writing ------------------------------------------------------------------------------------

WriteOutcome DirTree::Multi(const std::vector<Write>& writes) {
  Status entered = Enter(Patience());
  if (!entered.ok()) return {std::move(entered), -1, {}};
  const Lock lock(*this);
  const WallMs now = clock_.Wall();
  DirDraft draft(
      [this](const std::string& path) { return Load(path); },
      [this](const std::string& path) { return Names(path); },
      {now, static_cast<int64_t>(entropy_.Next() >> 2) + 1, session_, changes_.Begin(now)});
  WriteOutcome outcome = draft.Apply(writes);
  const std::vector<NodeChange> changes = draft.Changes();
  if (!outcome.status.ok() || changes.empty()) return outcome;
  changes_.Count();
  // Here and not where files change: there, a re-created node is just a file that is replaced.
  for (const Write& write : writes) {
    if (write.kind != Write::Kind::kCreate) continue;
    Status stamped = StampParentOf(write.path);
    if (!stamped.ok()) return {std::move(stamped), -1, {}};
  }
  return Commit(changes, std::move(outcome.stats));
}

WriteOutcome DirTree::Commit(const std::vector<NodeChange>& changes, std::vector<NodeStat> stats) {
  Replaced replaced = Replaced::kNo;
  Status status = changes.size() == 1 ? ApplyChange(changes.front(), &replaced)
                                      : CommitByJournal(changes, &replaced);
  if (status.ok()) return {{}, -1, std::move(stats)};
  if (replaced == Replaced::kPerhaps) status = Unknown(status.message());
  if (status.code() == Code::kNotFound) status = Unavailable(status.message());
  return {std::move(status), -1, {}};
}

Status DirTree::CommitByJournal(const std::vector<NodeChange>& changes, Replaced* replaced) {
  FIRN_TRY(ReplaceFile(own_, "journal", RenderJournal(changes), owner_, replaced));
  *replaced = Replaced::kPerhaps;
  Replaced ignored;
  for (const NodeChange& change : changes) FIRN_TRY(ApplyChange(change, &ignored));
  return RemoveFile(own_, "journal");
}

// Repeatable: writes or removes the same file.
Status DirTree::ApplyChange(const NodeChange& change, Replaced* replaced) {
  const std::string folder = Folder(change.path);
  const std::string parent = Folder(std::string(ParentOf(change.path)));
  if (change.bytes.has_value()) {
    if (access(Below(folder, kNodeFile).c_str(), F_OK) != 0) {
      FIRN_TRY(MakeFolder(folder, owner_));
      if (change.path.size() > 1) {
        FIRN_TRY(SyncFolder(parent));
        FIRN_TRY(StampParentOf(change.path));
      }
    }
    FIRN_TRY(changes_.Stamp(folder));
    return ReplaceFile(folder, kNodeFile, *change.bytes, owner_, replaced);
  }
  FIRN_TRY(StampParentOf(change.path));
  *replaced = Replaced::kPerhaps;
  FIRN_TRY(RemoveFile(folder, kNodeFile));
  FIRN_TRY(RemoveFile(folder, std::string(".") + kNodeFile + ".new"));
  DirChanges::Erase(folder);
  if (change.path.size() == 1) return {};
  // A folder with other contents stays, but is not a node any more.
  static_cast<void>(RemoveFolder(parent, FolderOfName(NameOf(change.path))));
  return {};
}

}  // namespace firn
