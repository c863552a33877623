#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/fork.h"
#include "tests/support/in_child.h"

namespace firn {
namespace {

TEST(ForkCells, AreZeroInAChildAndUnchangedInTheParent) {
  ForkCells cells;
  ForkCells::Cell* cell = cells.Take().value();
  EXPECT_EQ(cell->load(), 0u);
  cell->store(77);
  EXPECT_EQ(InChild([&] { return static_cast<int>(cell->load()); }), 0);
  EXPECT_EQ(cell->load(), 77u);
}

TEST(ForkCells, AreNeverTakenTwice) {
  ForkCells cells;
  std::set<ForkCells::Cell*> seen;
  for (int i = 0; i < 1'000; ++i) {
    ForkCells::Cell* cell = cells.Take().value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(cell) % 64, 0u) << "each has a cache line of its own";
    cell->store(1);
    EXPECT_TRUE(seen.insert(cell).second);
  }
}

TEST(ForkSentinel, DistinguishesAChildFromItsParent) {
  ForkSentinel sentinel;
  EXPECT_FALSE(sentinel.InChild());
  EXPECT_EQ(InChild([&] { return sentinel.InChild() ? 1 : 0; }), 1);
}

TEST(ForkSentinel, AChildsSentinelIsValidInItselfAndNotInItsChildren) {
  const ForkSentinel parents;
  EXPECT_EQ(InChild([&] {
              const ForkSentinel own, second;
              if (own.InChild() || second.InChild() || !parents.InChild()) return 1;
              return InChild([&] {
                const ForkSentinel grandchilds;
                return parents.InChild() && own.InChild() && !grandchilds.InChild() ? 0 : 2;
              });
            }),
            0);
  EXPECT_FALSE(parents.InChild());
  EXPECT_FALSE(ForkSentinel().InChild());
}

TEST(ForkSentinel, ThreadsOfOneProcessAgree) {
  EXPECT_EQ(InChild([] {
              std::vector<std::thread> threads;
              std::atomic<int> strangers = 0;
              const ForkSentinel own;
              for (int i = 0; i < 8; ++i) {
                threads.emplace_back([&] {
                  const ForkSentinel sentinel;
                  strangers += sentinel.InChild() || own.InChild() ? 1 : 0;
                });
              }
              for (std::thread& thread : threads) thread.join();
              return strangers.load();
            }),
            0);
}

}  // namespace
}  // namespace firn
