#include "server/lease/lease_file.h"

#include <mutex>
#include <utility>

#include <fcntl.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/printed_command.h"
#include "common/log/log.h"
#include "registry/claim/claim_checks.h"

namespace firn {

struct LeaseFile::Shared {
  explicit Shared(PostToLeases with) : post(std::move(with)) {}

  std::mutex mutex{};
  PostToLeases post;  // under mutex, like `done`; empty after the LeaseFile's destruction
  Kept done{};
};

LeaseFile::LeaseFile(const std::string& stem, PostToLeases post)
    : path_(PathOf(stem)),
      shared_(std::make_shared<Shared>(std::move(post))),
      writer_([shared = shared_](const std::string& path, std::string_view bytes) {
        const Status kept = ReplaceFile(path, {.path = path + ".new", .mode = 0600}, bytes);
        const std::scoped_lock lock(shared->mutex);
        if (shared->post)
          shared->post([done = std::exchange(shared->done, {}), kept] {
            if (done) done(kept);
          });
        return kept;
      }) {}

LeaseFile::~LeaseFile() {
  const std::scoped_lock lock(shared_->mutex);
  shared_->post = {};
}

Result<KeptBounds> LeaseFile::ReadFrom(const std::string& stem) {
  const std::string path = PathOf(stem);
  Result<std::string> text = ReadRegularFile(path, kKeptBoundsBytesMax, O_NOFOLLOW);
  if (text.code() == Code::kNotFound) return KeptBounds();
  if (!text.ok()) return text.status();
  Result<KeptBounds> kept = ParseKeptBounds(*text);
  return kept.ok() ? kept : kept.status().WithContext(path);
}

void LeaseFile::LoadInto(const std::string& stem, ClaimOptions& claim) {
  if (stem.empty()) return;
  Result<KeptBounds> kept = ReadFrom(stem);
  if (kept.ok()) {
    claim.kept = *std::move(kept);
    return;
  }
  const char* const remedy =
      kept.code() == Code::kCorrupt
          ? "; if the registry has lost no data since, delete the file and restart the server, "
            "otherwise restore the cluster first with "
          : "; correct the file's permissions or the disk, and restart the server";
  std::string why = Cat(kept.status().message(), remedy);
  if (kept.code() == Code::kCorrupt) why += PrintCommand(PrintedCommand::kRestore);
  claim.kept_fault = Cat(kKeptFault, why);
  // A claim resumed offline would have to be compared with the registry later.
  claim.offline_start = false;
  LogError("leases_unreadable") << "cannot read the bounds of earlier leases: " << why;
}

void LeaseFile::Keep(std::string text, Kept done) {
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->done = std::move(done);
  }
  writer_.Replace(path_, std::move(text));
}

}  // namespace firn
