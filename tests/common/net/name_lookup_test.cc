#include "common/net/name_lookup.h"

#include <condition_variable>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace firn {
namespace {

// A resolver that answers when the test permits it, and the reported results.
class NameLookupTest : public testing::Test {
 protected:
  // Shared by the test and its lookups, because lookups outlive a failed test.
  struct Desk {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
    int asked = 0, answered = 0;
    std::multiset<std::string> told;
  };

  NameLookupTest() { Make(Milliseconds(3'600'000)); }
  ~NameLookupTest() override { LetAnswer(); }

  void Make(Milliseconds hangs_after) {
    lookup_ = std::make_unique<NameLookup>(
        [desk = desk_](const std::string& name, const std::vector<Address>& found) {
          const std::lock_guard lock(desk->mutex);
          EXPECT_EQ(found.size(), 1u);
          desk->told.insert(name);
        },
        [desk = desk_](const Endpoint& endpoint) {
          std::unique_lock lock(desk->mutex);
          ++desk->asked;
          desk->changed.wait(lock, [&] { return desk->open || endpoint.host == "quick"; });
          ++desk->answered;
          return std::vector<Address>{NumericAddress({"127.0.0.1", endpoint.port})};
        },
        hangs_after);
  }

  void LetAnswer() {
    const std::lock_guard lock(desk_->mutex);
    desk_->open = true;
    desk_->changed.notify_all();
  }
  template <typename Number>
  bool Becomes(Number Desk::*what, Number wanted) {
    return Eventually(kPatience, [&] {
      const std::lock_guard lock(desk_->mutex);
      return (*desk_).*what == wanted;
    });
  }

  const std::shared_ptr<Desk> desk_ = std::make_shared<Desk>();
  std::unique_ptr<NameLookup> lookup_;
};

TEST_F(NameLookupTest, ReportsAddressesUnderTheGivenName) {
  LetAnswer();
  lookup_->Start("shop:7609", {"shop", 7609});
  EXPECT_TRUE(Becomes(&Desk::told, {"shop:7609"}));
}

TEST_F(NameLookupTest, RunsOneLookupOfANameAtATime) {
  for (int i = 0; i < 5; ++i) lookup_->Start("shop:7609", {"shop", 7609});
  EXPECT_TRUE(Becomes(&Desk::asked, 1));
  LetAnswer();
  EXPECT_TRUE(Becomes(&Desk::told, {"shop:7609"}));
  lookup_->Start("shop:7609", {"shop", 7609});
  EXPECT_TRUE(Becomes(&Desk::told, {"shop:7609", "shop:7609"}));
}

TEST_F(NameLookupTest, QueuesLookupsBeyondTheLimit) {
  std::multiset<std::string> all;
  for (uint16_t i = 1; i <= NameLookup::kThreadsMax + 3; ++i) {
    all.insert(std::to_string(i));
    lookup_->Start(std::to_string(i), {"shop", i});
  }
  EXPECT_TRUE(Becomes(&Desk::asked, static_cast<int>(NameLookup::kThreadsMax)));
  LetAnswer();
  EXPECT_TRUE(Becomes(&Desk::told, all));
}

TEST_F(NameLookupTest, HangingLookupsDoNotBlockOthers) {
  Make(Milliseconds(1));
  std::multiset<std::string> all{"quick"};
  for (uint16_t i = 1; i <= 10 * NameLookup::kThreadsMax; ++i) {
    all.insert(std::to_string(i));
    lookup_->Start(std::to_string(i), {"hangs", i});
  }
  lookup_->Start("quick", {"quick", 7609});
  EXPECT_TRUE(Becomes(&Desk::told, {"quick"}));
  LetAnswer();
  EXPECT_TRUE(Becomes(&Desk::told, all));
}

TEST_F(NameLookupTest, StopDoesNotWaitForLookupsAndDropsTheirResults) {
  lookup_->Start("shop:7609", {"shop", 7609});
  EXPECT_TRUE(Becomes(&Desk::asked, 1));
  lookup_.reset();
  LetAnswer();
  EXPECT_TRUE(Becomes(&Desk::answered, 1));
  EXPECT_TRUE(Becomes(&Desk::told, {}));
}

TEST(SystemAddressesTest, ResolvesLocalhostAndNoInvalidName) {
  EXPECT_FALSE(NameLookup::SystemAddresses({"localhost", 7609}).empty());
  EXPECT_TRUE(NameLookup::SystemAddresses({"unknown.invalid", 7609}).empty());
}

}  // namespace
}  // namespace firn
