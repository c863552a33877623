#pragma once

#include <memory>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/segment.h"
#include "tests/bench/issue_fixture.h"
#include "tests/support/endless_source.h"

namespace firn {

struct SegmentFixture {
  explicit SegmentFixture(int64_t step) {
    const TagDefinition order{
        .name = "order", .strategy = "segment", .step = step, .step_max = step};
    segment = *Segment::Make(order, {source, SystemClock(), SystemEntropy()});
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
inline SegmentFixture& Thousand() {
  static SegmentFixture fixture(1'000);
  return fixture;
}

inline SegmentFixture& TenThousand() {
  static SegmentFixture fixture(10'000);
  return fixture;
}

}  // namespace firn
