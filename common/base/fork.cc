#include "common/base/fork.h"

#include <new>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace firn {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kCellBytes = 64;

using Generation = std::atomic<uint64_t>;

constinit Generation last_generation = 0;                     // of this process and its ancestors
constinit std::atomic<Generation*> own_generation = nullptr;  // created on first use

constinit std::mutex process_mutex;
constinit CloseOnFork* first_set = nullptr;  // under process_mutex

// Returns a page that is zero in a child.
Result<std::byte*> MapPage() {
  void* page =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return Unavailable("no memory for a page of fork cells");
  if (madvise(page, kPageBytes, MADV_WIPEONFORK) != 0) {
    munmap(page, kPageBytes);
    return Unavailable("this kernel cannot wipe memory in a forked child (MADV_WIPEONFORK)");
  }
  return static_cast<std::byte*>(page);
}

// Lives in memory that is never freed. Uses no lock, because fork() may be called at any time.
Generation& OwnGeneration() {
  Generation* own = own_generation.load(std::memory_order_acquire);
  if (own != nullptr) return *own;
  const Result<std::byte*> page = MapPage();
  if (!page.ok()) Die(page.status().ToString());
  auto* const made = new (*page) Generation(0);
  if (own_generation.compare_exchange_strong(own, made, std::memory_order_acq_rel)) return *made;
  munmap(*page, kPageBytes);
  return *own;
}

// A child finds 0, and continues counting at its parent's number.
uint64_t ReadOrDraw(Generation& own) {
  uint64_t generation = own.load(std::memory_order_relaxed);
  if (generation != 0) return generation;
  const uint64_t next = last_generation.fetch_add(1, std::memory_order_relaxed) + 1;
  const bool first = own.compare_exchange_strong(generation, next, std::memory_order_relaxed);
  return first ? next : generation;
}

}  // namespace

// --- cells ---------------------------------------------------------------------------------------

ForkCells::~ForkCells() {
  for (std::byte* page : pages_) munmap(page, kPageBytes);
}

Result<ForkCells::Cell*> ForkCells::Take() {
  const std::lock_guard lock(mutex_);
  if (pages_.empty() || used_ == kPageBytes) FIRN_TRY(AddPage());
  std::byte* place = pages_.back() + used_;
  used_ += kCellBytes;
  return new (place) Cell(0);
}

Status ForkCells::AddPage() {
  if (pages_.size() == kPagesMax) return Exhausted("a process has a million fork cells at most");
  FIRN_ASSIGN(std::byte * page, MapPage());
  pages_.push_back(page);
  used_ = 0;
  return {};
}

ForkSentinel::ForkSentinel()
    : generation_of_process_(OwnGeneration()), generation_(ReadOrDraw(OwnGeneration())) {}

// --- descriptors ---------------------------------------------------------------------------------

std::mutex& CloseOnFork::Mutex() { return process_mutex; }

void CloseOnFork::InParent() { process_mutex.unlock(); }

// A fork handler of the child may call only a few functions; close() is one of them.
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
