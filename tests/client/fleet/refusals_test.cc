#include "client/fleet/refusals.h"

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "common/base/cat.h"

namespace firn::client {
namespace {

std::string_view RetryText(RefusalRule::Retry retry) {
  switch (retry) {
    case RefusalRule::Retry::kElsewhere:
      return "yes";
    case RefusalRule::Retry::kIfSaid:
      return "if the server says so";
    case RefusalRule::Retry::kNever:
      break;
  }
  return "no";
}

TEST(RefusalRulesTest, EachReasonHasItsOwnRow) {
  for (size_t i = 0; i < kRefusalRules.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(kRefusalRules[i].reason), i);
  }
}

TEST(RefusalRulesTest, ThePageHasTheSameTable) {
  std::string table = "| reason | retry elsewhere | latency counts as an answer |\n|---|---|---|\n";
  for (const RefusalRule& rule : kRefusalRules) {
    table += Cat("| ", ReasonName(rule.reason), " | ", RetryText(rule.retry), " | ",
                 rule.is_answer ? "yes" : "no", " |\n");
  }
  std::ifstream page(FIRN_SOURCE_DIR "/client/call/FAILOVER.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  EXPECT_NE(text.find(table), std::string::npos) << "the page should contain:\n" << table;
}

TEST(RefusalRulesTest, RetriesElsewhereIfTheServerSaysSo) {
  Outcome outcome = Outcome::Of(AttemptEnd::kRefused, "no");
  outcome.refusal = Reason::kExhausted;
  EXPECT_FALSE(MayRetryElsewhere(outcome));
  outcome.another_may_help = true;
  EXPECT_TRUE(MayRetryElsewhere(outcome));
  outcome.refusal = Reason::kRejected;
  EXPECT_FALSE(MayRetryElsewhere(outcome));
}

}  // namespace
}  // namespace firn::client
