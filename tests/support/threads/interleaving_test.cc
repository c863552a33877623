// The results of the search for the small programs that distinguish memory models.

#include "tests/support/threads/interleaving.h"

#include <mutex>

#include <gtest/gtest.h>

#include "common/base/atomic.h"

namespace firn {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kBoth = std::memory_order_acq_rel;

bool IsFound(const Scenario& scenario) {
  const Exploration found = Explore(scenario);
  EXPECT_TRUE(found.violation || found.complete) << "the search was cut short";
  return found.violation.has_value();
}

Scenario Message(std::memory_order store, std::memory_order load) {
  return [=](Interleaving& run) {
    Atomic<int64_t> text(0), sent(0);
    run.Run({[&] {
               text.store(7, kRelaxed);
               sent.store(1, store);
             },
             [&] {
               if (sent.load(load) == 1) run.Expect(text.load(kRelaxed) == 7, "an old text");
             }});
  };
}

TEST(Interleaving, AMessageArrivesWholeOnlyWithReleaseAndAcquire) {
  EXPECT_FALSE(IsFound(Message(kRelease, kAcquire)));
  EXPECT_TRUE(IsFound(Message(kRelaxed, kAcquire)));
  EXPECT_TRUE(IsFound(Message(kRelease, kRelaxed)));
}

TEST(Interleaving, FindsAWeakenedSiteBySearchAndBySeed) {
  const Exploration whole = Explore(Message(kRelease, kAcquire));
  ASSERT_EQ(whole.orders.size(), 2u);
  for (const Weakening& one : whole.orders) {
    EXPECT_TRUE(Explore(Message(kRelease, kAcquire), {}, one).violation) << one.site.text();
    EXPECT_TRUE(ExploreAtRandom(Message(kRelease, kAcquire), 1, 1'000, one).violation);
  }
}

TEST(Interleaving, StoresAreBuffered) {
  EXPECT_TRUE(IsFound([](Interleaving& run) {
    Atomic<int64_t> a(0), b(0);
    int64_t seen_a = 1, seen_b = 1;
    run.Run({[&] {
               a.store(1, kRelease);
               seen_b = b.load(kAcquire);
             },
             [&] {
               b.store(1, kRelease);
               seen_a = a.load(kAcquire);
             }});
    run.Expect(seen_a == 1 || seen_b == 1, "both read what was there before");
  }));
}

// Each thread reads a value that the other one stores later, unless one of the loads precedes
// everything.
Scenario LoadsAreBuffered(std::memory_order store, std::memory_order load) {
  return [=](Interleaving& run) {
    Atomic<int64_t> a(0), b(0);
    int64_t seen_a = 0, seen_b = 0;
    run.Run({[&] {
               seen_a = a.load(kRelaxed);
               b.store(1, store);
             },
             [&] {
               seen_b = b.load(load);
               a.store(1, kRelaxed);
             }});
    run.Expect(seen_a == 0 || seen_b == 0, "both read what was stored later");
  };
}

TEST(Interleaving, ALoadMaySeeALaterStoreThatDoesNotDependOnIt) {
  EXPECT_TRUE(IsFound(LoadsAreBuffered(kRelaxed, kAcquire)));
  EXPECT_TRUE(IsFound(LoadsAreBuffered(kRelease, kRelaxed)));
  EXPECT_FALSE(IsFound(LoadsAreBuffered(kRelease, kAcquire)));
}

TEST(Interleaving, OneObjectNeverGoesBack) {
  EXPECT_FALSE(IsFound([](Interleaving& run) {
    Atomic<int64_t> a(0);
    run.Run({[&] {
               a.store(1, kRelaxed);
               a.store(2, kRelaxed);
             },
             [&] {
               const int64_t first = a.load(kRelaxed);
               run.Expect(a.load(kRelaxed) >= first, "it went back");
             }});
    run.Expect(a.load(kRelaxed) == 2, "joining a thread makes its stores visible");
  }));
}

// The second thread changes the flag between the sender and the reader.
Scenario PassedOn(bool by_modification) {
  return [=](Interleaving& run) {
    Atomic<int64_t> text(0), flag(0);
    run.Run({[&] {
               text.store(7, kRelaxed);
               flag.store(1, kRelease);
             },
             [&] {
               if (by_modification) {
                 flag.fetch_add(1, kRelaxed);
               } else if (flag.load(kRelaxed) == 1) {
                 flag.store(2, kRelaxed);
               }
             },
             [&] {
               if (flag.load(kAcquire) == 2) run.Expect(text.load(kRelaxed) == 7, "an old text");
             }});
  };
}

TEST(Interleaving, AModificationPassesOnAReleaseAndAStoreDoesNot) {
  EXPECT_FALSE(IsFound(PassedOn(true)));
  EXPECT_TRUE(IsFound(PassedOn(false)));
}

TEST(Interleaving, AModificationIsAtomicAndALoadWithAStoreIsNot) {
  const auto count = [](bool at_once) {
    return [=](Interleaving& run) {
      Atomic<int64_t> a(0);
      const auto add = [&] {
        if (at_once) {
          a.fetch_add(1, kRelaxed);
        } else {
          a.store(a.load(kBoth) + 1, kBoth);
        }
      };
      run.Run({add, add, add});
      run.Expect(a.load(kRelaxed) == 3, "one was lost");
    };
  };
  EXPECT_FALSE(IsFound(count(true)));
  EXPECT_TRUE(IsFound(count(false)));
}

TEST(Interleaving, AMutexExcludesOthersAndPublishesWrites) {
  EXPECT_FALSE(IsFound([](Interleaving& run) {
    Atomic<int64_t> a(0);
    Mutex mutex;
    const auto add = [&] {
      const std::lock_guard lock(mutex);
      a.store(a.load(kRelaxed) + 1, kRelaxed);
    };
    run.Run({add, add, add});
    run.Expect(a.load(kRelaxed) == 3, "one was lost");
  }));
}

TEST(Interleaving, ARestingThreadWaitsForTheOthers) {
  EXPECT_FALSE(IsFound([](Interleaving& run) {
    Atomic<bool> held(false);
    Atomic<int64_t> a(0);
    const auto add = [&] {
      while (held.exchange(true, kAcquire)) PauseOnce();
      a.store(a.load(kRelaxed) + 1, kRelaxed);
      held.store(false, kRelease);
    };
    run.Run({add, add});
    run.Expect(a.load(kRelaxed) == 2, "one was lost");
  }));
}

TEST(Interleaving, APointerIsReadWithItsTarget) {
  const auto publish = [](std::memory_order load) {
    return [=](Interleaving& run) {
      int value = 0;
      Atomic<int*> shared(nullptr);
      run.Run({[&] {
                 value = 7;
                 shared.store(&value, kRelease);
               },
               [&] { shared.load(load); }});
    };
  };
  EXPECT_FALSE(IsFound(publish(kAcquire)));
  EXPECT_TRUE(IsFound(publish(kRelaxed)));
}

TEST(Interleaving, ALimitedSearchReportsThatItIsIncomplete) {
  const Exploration found = Explore(Message(kRelease, kAcquire), {.runs = 2});
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.runs, 2);
}

}  // namespace
}  // namespace firn
