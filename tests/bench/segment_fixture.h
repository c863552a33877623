#pragma once

#include <chrono>
#include <memory>

#include "common/sequence/owned_term.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/owned_numbers.h"
#include "server/issue/segment/segment.h"
#include "tests/bench/issue_fixture.h"
#include "tests/support/endless_source.h"

namespace firn {

struct SegmentFixture {
  explicit SegmentFixture(int64_t step, bool owned = false) {
    const TagDefinition order{
        .name = "order", .strategy = "segment", .step = step, .step_max = step};
    const RangedParts parts{source, SystemClock(), SystemEntropy()};
    if (owned) {
      term.Begin(1, SystemClock().Boot() + std::chrono::hours(24));
      segment = *OwnedNumbers::Make(order, parts, term);
    } else {
      segment = *Segment::Make(order, parts);
    }
    if (!issuer.Set({"order", segment, {}}).ok()) Die("no tag");
    tag = issuer.Resolve("order");
  }

  // The slow path, for the first number and across ranges.
  int64_t Long() {
    static thread_local IssueCall call;
    call.Begin(*tag, {.tag = "order"});
    while (issuer.Issue(call) == Verdict::kWait) {
    }
    return call.runs()[0].first;
  }

  EndlessSource source;
  OwnedTerm term;
  std::shared_ptr<Segment> segment;
  NoRejections rejections;
  Issuer issuer{rejections};
  const Tag* tag = nullptr;
};

inline constexpr int64_t kHuge = 100'000'000;

inline SegmentFixture& Huge() {
  static SegmentFixture fixture(kHuge);
  return fixture;
}
// The numbers of a tag in its owner's memory.
inline SegmentFixture& Owned() {
  static SegmentFixture fixture(kHuge, /*owned=*/true);
  return fixture;
}
inline SegmentFixture& Thousand() {
  static SegmentFixture fixture(1'000);
  return fixture;
}

inline SegmentFixture& TenThousand() {
  static SegmentFixture fixture(10'000);
  return fixture;
}

}  // namespace firn
