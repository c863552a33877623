#include "common/base/file_writer.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "common/base/no_signals.h"

namespace firn {

struct FileWriter::Shared {
  explicit Shared(Replacer with) : replace(std::move(with)) {}

  const Replacer replace;
  std::mutex mutex{};
  std::condition_variable changed{};
  std::map<std::string, std::string> waiting{};  // under mutex, as all below
  bool ending = false;
  bool ended = false;
  Status failure{};
};

Status FileWriter::ReplaceDurably(const std::string& path, std::string_view bytes) {
  return ReplaceFile(path, {.path = path + ".new"}, bytes);
}

FileWriter::FileWriter(Replacer replace)
    : shared_(std::make_shared<Shared>(replace ? std::move(replace) : ReplaceDurably)),
      thread_(ThreadWithoutSignals([shared = shared_] { Work(shared); })) {}

FileWriter::~FileWriter() {
  if (sentinel_.InChild()) {
    // A forked child does not have the thread, and the mutex may stay locked.
    thread_.detach();
    static_cast<void>(new std::shared_ptr<Shared>(std::move(shared_)));
    return;
  }
  std::unique_lock lock(shared_->mutex);
  shared_->ending = true;
  shared_->changed.notify_all();
  const bool ended =
      shared_->changed.wait_for(lock, kEndPatience, [this] { return shared_->ended; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void FileWriter::Replace(const std::string& path, std::string bytes) {
  if (sentinel_.InChild()) return;
  const std::scoped_lock lock(shared_->mutex);
  shared_->waiting.insert_or_assign(path, std::move(bytes));
  shared_->changed.notify_all();
}

Status FileWriter::TakeFailure() {
  if (sentinel_.InChild()) return {};
  const std::scoped_lock lock(shared_->mutex);
  return std::exchange(shared_->failure, Status());
}

void FileWriter::Work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&] { return shared->ending || !shared->waiting.empty(); });
    if (shared->waiting.empty()) break;
    const auto next = shared->waiting.extract(shared->waiting.begin());
    lock.unlock();
    Status replaced = shared->replace(next.key(), next.mapped());
    lock.lock();
    if (!replaced.ok()) shared->failure = std::move(replaced);
  }
  shared->ended = true;
  shared->changed.notify_all();
}

}  // namespace firn
