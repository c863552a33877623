#include "common/id/lease_name.h"

#include <string>

#include <gtest/gtest.h>

namespace firn {
namespace {

TEST(LeaseNameTest, Accepts1To64PlainCharacters) {
  for (const char* name : {"a", "checkout-7f9c", "shop/eu:1@host_2.example"}) {
    EXPECT_TRUE(IsLeaseName(name)) << name;
  }
  for (const std::string& name : {std::string(), std::string(65, 'a'), std::string("a b"),
                                  std::string("a\n"), std::string("\xc3\xa4")}) {
    EXPECT_FALSE(IsLeaseName(name)) << name;
  }
  EXPECT_TRUE(IsLeaseName(std::string(64, 'a')));
}

}  // namespace
}  // namespace firn
