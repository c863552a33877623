#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "common/tag/tag_definition.h"
#include "server/issue/segment/range_store.h"

namespace firn {

// A source of ranges on which several stores can be opened.
class RangeStoreWorld {
 public:
  virtual ~RangeStoreWorld() = default;

  // Returns a store with a separate connection.
  virtual std::unique_ptr<RangeStore> Open() = 0;
  // Creates what the tag needs before its first range.
  virtual void Prepare(const TagDefinition&) {}
  // Whether it permits this name of a tag.
  virtual bool Permits(const std::string&) const { return true; }
  // The end of the numbers that it can store.
  virtual int64_t end() const { return kRangeEnd; }
  // Whether the caller can set the beginning of a range; otherwise the ledger behind it decides.
  virtual bool begins_where_told() const { return true; }
  // Whether no number is lost without a crash. A tiered store discards a segment if two servers
  // fetch one at the same time.
  virtual bool gives_all() const { return true; }
  // Whether the ledger of its tags supplies numbers while the store is unreachable.
  virtual bool stands_in() const { return false; }
  // Whether it permits a tag with such a ledger.
  virtual bool permits_stand_in() const { return stands_in(); }
  // Whether its counters are marked for one cluster.
  virtual bool marks_cluster() const { return false; }
  // Whether two stores may take ranges of one tag at the same time.
  virtual bool is_atomic() const { return true; }
  // Whether stores in other processes see the same counters.
  virtual bool is_shared() const { return true; }
};

// The fixture of the suite in range_store_contract.cc. Each store's test program compiles the suite
// and lists its worlds with INSTANTIATE_TEST_SUITE_P.
struct RangeWorldMaker {
  std::string name;
  std::function<std::unique_ptr<RangeStoreWorld>()> make;  // null: skips the tests

  friend std::ostream& operator<<(std::ostream& out, const RangeWorldMaker& maker) {
    return out << maker.name;
  }
};

class RangeStoreContract : public testing::TestWithParam<RangeWorldMaker> {
 protected:
  void SetUp() override;

  // Returns a segment tag that is prepared in the world.
  TagDefinition Tag(const std::string& name, int64_t start = 1);

  std::unique_ptr<RangeStoreWorld> world;
  std::unique_ptr<RangeStore> store;
};

}  // namespace firn
