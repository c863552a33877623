#include "registry/seam/requests.h"

#include <utility>

namespace firn {
namespace {

Status CheckName(std::string_view name) {
  if (name.empty()) return Invalid("a path has an empty part");
  if (name.size() > Coordinator::kNameBytesMax) return Invalid("a part of a path is too long");
  if (name == "." || name == "..") return Invalid("a path has a relative part");
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return Invalid("a path has a control character");
  }
  return {};
}

}  // namespace

Status CheckPath(std::string_view path) {
  if (path.empty() || path.front() != '/') return Invalid("a path must begin with a slash");
  if (path.size() > Coordinator::kPathBytesMax) return Invalid("a path is too long");
  if (path.size() == 1) return {};
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    FIRN_TRY(CheckName(path.substr(begin, end - begin)));
    begin = end + 1;
  }
  return {};
}

Status CheckWrites(const std::vector<Write>& writes) {
  if (writes.empty()) return Invalid("a multi without a write");
  if (writes.size() > Coordinator::kWritesMax) return Invalid("a multi has too many writes");
  size_t bytes = 0;
  for (const Write& write : writes) {
    FIRN_TRY(CheckPath(write.path));
    bytes += write.path.size() + write.data.size();
    if (write.path.size() == 1 && write.lifetime == Lifetime::kEphemeral) {
      return Invalid("the root cannot be ephemeral");
    }
  }
  if (bytes > Coordinator::kRequestBytesMax) return Invalid("a multi has too much data");
  return {};
}

std::string_view ParentOf(std::string_view path) {
  if (path.size() <= 1) return {};
  const size_t slash = path.rfind('/');
  return path.substr(0, slash == 0 ? 1 : slash);
}

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string ChildPath(std::string_view path, std::string_view name) {
  std::string child(path.size() == 1 ? std::string_view() : path);
  child += '/';
  child += name;
  return child;
}

namespace {

// Creates the ancestors of `path` from the top, one after another; `next` is the end of the next
// ancestor's path.
void EnsureFrom(Coordinator& coordinator, std::string path, size_t next,
                Coordinator::SyncDone done) {
  std::string ancestor = path.substr(0, next);
  const size_t after = path.find('/', next + 1);
  coordinator.Multi(
      {Write::Create(std::move(ancestor), "", Lifetime::kPersistent)},
      [&coordinator, path = std::move(path), after, done = std::move(done)](WriteOutcome outcome) {
        const bool there = outcome.status.ok() || outcome.status.code() == Code::kConflict;
        if (!there) return done(std::move(outcome.status));
        if (after == std::string::npos) return done({});
        EnsureFrom(coordinator, path, after, done);
      });
}

}  // namespace

void EnsureParents(Coordinator& coordinator, const std::string& path, Coordinator::SyncDone done) {
  const size_t first = path.find('/', 1);
  if (first == std::string::npos) return coordinator.Sync("/", std::move(done));
  EnsureFrom(coordinator, path, first, std::move(done));
}

}  // namespace firn
