#include "registry/claim/hint.h"

#include <string>

#include <gtest/gtest.h>

namespace firn {
namespace {

const Hint kHint{5, {1, 1}, "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1", "firn"};

TEST(HintTest, GivesItselfBackAndIsReadableByEye) {
  const std::string text = FormatHint(kHint);
  EXPECT_EQ(*ParseHint(text), kHint);
  EXPECT_NE(text.find("\nworker=1\n"), std::string::npos) << text;
}

TEST(HintTest, WhatIsNotWholeIsRefused) {
  const std::string good = FormatHint(kHint);
  for (const std::string& text :
       {std::string(), std::string("\n\n"), good + "rack=2\n", good + "colour=blue\n",
        good + "nonsense\n", good.substr(0, good.size() / 2), std::string(1 << 20, 'x'),
        std::string("machineId=-1\nworker=1\nrack=1\ncluster=x\nlayout=firn\n")}) {
    EXPECT_EQ(ParseHint(text).code(), Code::kCorrupt) << text.substr(0, 100);
  }
}

}  // namespace
}  // namespace firn
