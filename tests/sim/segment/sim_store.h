#pragma once

#include <cstdint>
#include <string_view>

#include "server/issue/segment/range_store.h"
#include "tests/sim/segment/segment_host.h"

namespace firn {

// A host's connection to the database. It loses requests and answers, executes a command after the
// client's timeout, raises a row without returning its numbers, and rolls back a take.
class SimStore final : public RangeStore {
 public:
  explicit SimStore(SegmentShared& shared) : shared_(shared) {}

  std::string_view name() const override { return "database"; }
  Status Check(const TagDefinition&) override { return {}; }
  bool permits_stand_in() const override { return true; }
  bool away() const override { return true; }  // after every failure

  Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override;

 private:
  SegmentShared& shared_;
};

}  // namespace firn
