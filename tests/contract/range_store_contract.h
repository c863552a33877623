#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "common/tag/tag_definition.h"
#include "server/issue/segment/range_store.h"

namespace firn {

// A place where ranges come from, and that several stores can be opened on.
class RangeStoreWorld {
 public:
  virtual ~RangeStoreWorld() = default;

  // A store with a connection of its own.
  virtual std::unique_ptr<RangeStore> Open() = 0;
  // Whatever a tag needs there before its first range.
  virtual void Prepare(const TagDefinition&) {}
  // Whether a tag may be called so there.
  virtual bool Permits(const std::string&) const { return true; }
  // The end of the numbers that it can count.
  virtual int64_t end() const { return kRangeEnd; }
  // Whether it can be told where a range has to begin; otherwise somebody behind it knows.
  virtual bool begins_where_told() const { return true; }
  // Whether nothing is lost as long as nobody dies. A tiered store throws a segment away when two
  // servers have brought one at the same time.
  virtual bool gives_all() const { return true; }
  // Whether its tags are those whose ledger stands in for a store that is away.
  virtual bool stands_in() const { return false; }
  // Whether there may be such tags in it.
  virtual bool permits_stand_in() const { return stands_in(); }
  // Whether stores in other processes see the same counters.
  virtual bool is_shared() const { return true; }
};

// What the suite in range_store_contract.cc runs against. Each store's test program compiles the
// suite and names its worlds with INSTANTIATE_TEST_SUITE_P.
struct RangeWorldMaker {
  std::string name;
  std::function<std::unique_ptr<RangeStoreWorld>()> make;

  friend std::ostream& operator<<(std::ostream& out, const RangeWorldMaker& maker) {
    return out << maker.name;
  }
};

class RangeStoreContract : public testing::TestWithParam<RangeWorldMaker> {
 protected:
  void SetUp() override;

  // A segment tag that the world knows.
  TagDefinition Tag(const std::string& name, int64_t start = 1);

  std::unique_ptr<RangeStoreWorld> world;
  std::unique_ptr<RangeStore> store;
};

}  // namespace firn
