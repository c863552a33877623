// Part of the suite in coordinator_contract.cc: the numbers of changes.

#include <cstdint>
#include <string>

#include "tests/contract/coordinator_contract.h"

namespace firn {

int64_t CoordinatorContract::ChangedAt(const std::string& path) {
  EXPECT_TRUE(a->Sync().ok());
  const Result<Node> node = a->Read(path);
  EXPECT_TRUE(node.ok()) << path << ": " << node.status();
  return node.ok() ? node->stat.changed_zxid : 0;
}

TEST_P(CoordinatorContract, ASetChangesTheNumberOfItsNodeOnly) {
  ASSERT_TRUE(a->Create("/x", "0").status.ok());
  ASSERT_TRUE(a->Create("/y", "0").status.ok());
  const int64_t root = ChangedAt("/");
  const int64_t x = ChangedAt("/x");
  const int64_t y = ChangedAt("/y");
  EXPECT_GT(y, x) << "it was made later";
  const WriteOutcome set = b->Set("/x", "1", 0);
  ASSERT_TRUE(set.status.ok()) << set.status;
  EXPECT_GT(ChangedAt("/x"), y);
  EXPECT_EQ(ChangedAt("/x"), set.stats.at(0).changed_zxid);
  EXPECT_EQ(ChangedAt("/y"), y);
  EXPECT_EQ(ChangedAt("/"), root);
}

TEST_P(CoordinatorContract, AddedAndRemovedChildrenChangeTheirParentsNumber) {
  ASSERT_TRUE(a->Create("/x", "").status.ok());
  ASSERT_TRUE(a->Create("/y", "").status.ok());
  const int64_t empty = ChangedAt("/x");
  ASSERT_TRUE(b->Create("/x/1", "").status.ok());
  const int64_t one = ChangedAt("/x");
  EXPECT_GT(one, empty);
  ASSERT_TRUE(b->Create("/y/1", "").status.ok());
  EXPECT_GT(ChangedAt("/y"), one) << "numbers of two folders compare";
  EXPECT_EQ(ChangedAt("/x"), one);
  ASSERT_TRUE(b->Set("/x/1", "new", 0).status.ok());
  EXPECT_EQ(ChangedAt("/x"), one) << "a child's data are its own";
  ASSERT_TRUE(b->Erase("/x/1").status.ok());
  EXPECT_GT(ChangedAt("/x"), ChangedAt("/y"));
}

TEST_P(CoordinatorContract, AReplacedChildChangesItsParentsNumber) {
  ASSERT_TRUE(a->Create("/x", "").status.ok());
  ASSERT_TRUE(a->Create("/x/1", "old").status.ok());
  const int64_t before = ChangedAt("/x");
  const WriteOutcome done =
      b->Multi({Write::Erase("/x/1", 0), Write::Create("/x/1", "new", Lifetime::kEphemeral)});
  ASSERT_TRUE(done.status.ok()) << done.status;
  const int64_t replaced = ChangedAt("/x");
  EXPECT_GT(replaced, before);
  b->Close();
  EXPECT_TRUE(a->Await([&] { return a->Read("/x/1").code() == Code::kNotFound; }));
  EXPECT_GT(ChangedAt("/x"), replaced) << "it went with its session";
}

TEST_P(CoordinatorContract, ARefusedMultiChangesNoNumber) {
  ASSERT_TRUE(a->Create("/x", "").status.ok());
  ASSERT_TRUE(a->Create("/x/1", "").status.ok());
  const int64_t root = ChangedAt("/");
  const int64_t x = ChangedAt("/x");
  const WriteOutcome refused =
      b->Multi({Write::Set("/x", "1", 0), Write::Erase("/x/1", 0),
                Write::Create("/x/2", "", Lifetime::kPersistent),
                Write::Create("/y", "", Lifetime::kPersistent), Write::Check("/", 9)});
  EXPECT_EQ(refused.failed, 4);
  EXPECT_EQ(ChangedAt("/"), root);
  EXPECT_EQ(ChangedAt("/x"), x);
}

}  // namespace firn
