#include "common/base/fork_cells.h"

#include <set>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace firn {
namespace {

// What `f` returns in a forked child, as the exit code that it becomes.
template <typename F>
int InChild(F&& f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkCells, AreZeroInAChildAndUnchangedInTheParent) {
  ForkCells cells;
  ForkCells::Cell* cell = cells.Take().value();
  EXPECT_EQ(cell->load(), 0u);
  cell->store(77);
  EXPECT_EQ(InChild([&] { return static_cast<int>(cell->load()); }), 0);
  EXPECT_EQ(cell->load(), 77u);
}

TEST(ForkCells, AreNeverHandedOutTwice) {
  ForkCells cells;
  std::set<ForkCells::Cell*> seen;
  for (int i = 0; i < 1'000; ++i) {
    ForkCells::Cell* cell = cells.Take().value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(cell) % 64, 0u) << "each has a cache line of its own";
    cell->store(1);
    EXPECT_TRUE(seen.insert(cell).second);
  }
}

TEST(ForkSentinel, TellsAChildFromItsParent) {
  ForkSentinel sentinel;
  EXPECT_FALSE(sentinel.InChild());
  EXPECT_EQ(InChild([&] { return sentinel.InChild() ? 1 : 0; }), 1);
}

}  // namespace
}  // namespace firn
