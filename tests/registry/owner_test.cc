#include "registry/owner.h"

#include <string>

#include <gtest/gtest.h>

#include "common/endpoint.h"

namespace firn {
namespace {

TEST(OwnerTest, NamesApplicationPortAndAddressAsANumber) {
  const auto owner = OwnerName::Make("sequence-client", 8112, "192.168.1.100");
  ASSERT_TRUE(owner.ok());
  EXPECT_EQ(owner->text(), "sequence-client.8112.3232235876");
  EXPECT_EQ(owner->file_stem(), "sequence-client:8112:3232235876");
}

TEST(OwnerTest, WritesAnIpv6AddressInFull) {
  EXPECT_EQ(*IpAsNumber("::1"), "00000000000000000000000000000001");
  EXPECT_EQ(*IpAsNumber("fe80::2"), "fe800000000000000000000000000002");
}

TEST(OwnerTest, RefusesWhatWouldNotBeAFileName) {
  for (const std::string application : {"", "a/b", "a b", "a:b", "..\n"}) {
    EXPECT_EQ(OwnerName::Make(application, 1, "127.0.0.1").code(), Code::kInvalid) << application;
  }
  EXPECT_FALSE(OwnerName::Make(std::string(101, 'a'), 1, "127.0.0.1").ok());
  EXPECT_FALSE(OwnerName::Make("firn", 1, "localhost").ok());
  EXPECT_FALSE(OwnerName::Make("firn", 1, "1.2.3").ok());
}

}  // namespace
}  // namespace firn
