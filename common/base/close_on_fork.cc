#include "common/base/close_on_fork.h"

#include <pthread.h>
#include <unistd.h>

#include "common/base/status.h"

namespace firn {
namespace {

constinit std::mutex process_mutex;
constinit CloseOnFork* first_set = nullptr;  // under process_mutex

}  // namespace

std::mutex& CloseOnFork::Mutex() { return process_mutex; }

void CloseOnFork::InParent() { process_mutex.unlock(); }

// Between fork() and its return the child may do little: closing files is among it.
void CloseOnFork::InChild() {
  for (CloseOnFork* set = first_set; set != nullptr; set = set->next_) {
    for (const int fd : set->held_) close(fd);
    set->held_.clear();
  }
  process_mutex.unlock();
}

CloseOnFork::CloseOnFork() {
  static const int registered =
      pthread_atfork([] { process_mutex.lock(); }, &CloseOnFork::InParent, &CloseOnFork::InChild);
  if (registered != 0) Die("the C library takes no more fork handlers");
  const std::lock_guard lock(process_mutex);
  next_ = first_set;
  first_set = this;
}

CloseOnFork::~CloseOnFork() {
  const std::lock_guard lock(process_mutex);
  CloseOnFork** at = &first_set;
  while (*at != this) at = &(*at)->next_;
  *at = next_;
}

}  // namespace firn
