#include "server/issue/issuer.h"

#include <memory>

#include <gtest/gtest.h>

#include "common/entropy.h"
#include "server/issue/snowflake.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

class IgnoreRejections final : public RejectionHandler {
 public:
  void OnRefusal(const Request&, const Refusal&) override {}
};

class IssuerTest : public testing::Test {
 protected:
  IssuerTest() { EXPECT_TRUE(issuer_.Set({"order", snowflake_, {}}).ok()); }

  void HoldClaim() {
    auto claim = std::make_shared<Claim>(Layout::Firn(), MachineId(7), clock_.Wall());
    claim->ExtendTo(clock_.Wall() + Milliseconds(1000));
    ASSERT_TRUE(snowflake_->Adopt(claim).ok());
  }

  VirtualClock clock_{Layout::Firn().epoch() + Milliseconds(1'000'000)};
  IdClock id_clock_;
  TickSource ticks_{Layout::Firn(), id_clock_, clock_, false};
  SeededEntropy entropy_{1};
  std::shared_ptr<Snowflake> snowflake_ = std::make_shared<Snowflake>(ticks_, entropy_);
  IgnoreRejections ignore_;
  Issuer issuer_{ignore_};
};

TEST_F(IssuerTest, IssuesUnderAClaim) {
  const Tag* tag = issuer_.Resolve("order");
  ASSERT_NE(tag, nullptr);
  IssueCall call(*tag, {.tag = "order", .count = 5000});
  EXPECT_EQ(issuer_.Issue(call), Verdict::kRefused);
  EXPECT_EQ(call.refusal().reason, Reason::kNotReady);
  HoldClaim();
  int64_t id = 0;
  ASSERT_TRUE(issuer_.TryOne(*tag, Method::kThrift, &id));
  EXPECT_EQ(Layout::Firn().Unpack(id)->machine, MachineId(7));
  call.Begin(*tag, {.tag = "order", .count = 5000});
  EXPECT_EQ(issuer_.Issue(call), Verdict::kWait);
  clock_.Advance(Milliseconds(1));
  EXPECT_EQ(issuer_.Issue(call), Verdict::kIssued);
  EXPECT_EQ(call.runs().count(), 5000);
  EXPECT_EQ(call.runs().size(), 2u);
}

}  // namespace
}  // namespace firn
