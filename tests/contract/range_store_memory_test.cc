#include <memory>

#include "tests/contract/range_store_contract.h"
#include "tests/support/memory_store.h"

namespace firn {
namespace {

// The counters of one process, which all its stores use.
class MemoryWorld final : public RangeStoreWorld {
 public:
  class Lent final : public RangeStore {
   public:
    explicit Lent(MemoryStore& store) : store_(store) {}

    std::string_view name() const override { return store_.name(); }
    Status Check(const TagDefinition& tag) override { return store_.Check(tag); }
    Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override {
      return store_.Advance(tag, at_least, size);
    }

   private:
    MemoryStore& store_;
  };

  std::unique_ptr<RangeStore> Open() override { return std::make_unique<Lent>(store_); }
  bool is_shared() const override { return false; }

 private:
  MemoryStore store_;
};

INSTANTIATE_TEST_SUITE_P(Memory, RangeStoreContract,
                         testing::Values(RangeWorldMaker{
                             "map", [] { return std::make_unique<MemoryWorld>(); }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
