#include "registry/state/owner.h"

#include <string>

#include <gtest/gtest.h>

#include "common/net/endpoint.h"

namespace firn {
namespace {

TEST(OwnerTest, NamesApplicationPortAndAddressAsANumber) {
  const auto owner = OwnerName::Make("sequence-client", 8112, "192.168.1.100");
  ASSERT_TRUE(owner.ok());
  EXPECT_EQ(owner->text(), "sequence-client.8112.3232235876");
  EXPECT_EQ(owner->file_stem(), "sequence-client:8112:3232235876");
}

TEST(OwnerTest, NamesFilesByANameThatStaysWhenTheAddressChanges) {
  const auto before = OwnerName::Make("firn", 7609, "10.0.0.7")->WithFilesOf("firn-0");
  const auto after = OwnerName::Make("firn", 7609, "10.0.0.8")->WithFilesOf("firn-0");
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(before->file_stem(), "firn:firn-0");
  EXPECT_EQ(after->file_stem(), before->file_stem());
  EXPECT_EQ(before->text(), "firn.7609.167772167");
  for (const std::string& name : {std::string(), std::string("a.2"), std::string("a/b"),
                                  std::string("a:b"), std::string(101, 'a')}) {
    EXPECT_EQ(before->WithFilesOf(name).code(), Code::kInvalid) << name;
  }
}

TEST(OwnerTest, DistinguishesStateFoldersAndHostsWithOneAddress) {
  const auto owner = OwnerName::Make("firn", 7609, "127.0.0.1");
  FileIdentity file{.device = 8, .inode = 4711, .born_ns = 170};
  const std::string name = owner->TextIn(file, "h1");
  EXPECT_TRUE(name.starts_with("firn.7609.2130706433.")) << name;
  EXPECT_NE(owner->TextIn(file, "h2"), name);
  for (uint64_t* part : {&file.inode, &file.born_ns}) {
    ++*part;
    EXPECT_NE(owner->TextIn(file, "h1"), name);
    --*part;
  }
  ++file.device;
  EXPECT_EQ(owner->TextIn(file, "h1"), name) << "it was mounted again";
  file.born_ns = FileIdentity::kUntold;
  const std::string untold = owner->TextIn(file, "h1");
  ++file.device;
  EXPECT_NE(owner->TextIn(file, "h1"), untold) << "every disk has the same inode numbers";
}

TEST(OwnerTest, WritesAnIpv6AddressInFull) {
  EXPECT_EQ(*IpAsNumber("::1"), "00000000000000000000000000000001");
  EXPECT_EQ(*IpAsNumber("fe80::2"), "fe800000000000000000000000000002");
}

TEST(OwnerTest, RefusesAnInvalidFileName) {
  for (const std::string application : {"", "a/b", "a b", "a:b", "..\n"}) {
    EXPECT_EQ(OwnerName::Make(application, 1, "127.0.0.1").code(), Code::kInvalid) << application;
  }
  EXPECT_FALSE(OwnerName::Make(std::string(101, 'a'), 1, "127.0.0.1").ok());
  EXPECT_FALSE(OwnerName::Make("firn", 1, "localhost").ok());
  EXPECT_FALSE(OwnerName::Make("firn", 1, "1.2.3").ok());
}

}  // namespace
}  // namespace firn
