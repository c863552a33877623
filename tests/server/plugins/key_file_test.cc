#include "server/plugins/key_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace firn {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHex = "000102030405060708090a0b0c0d0e0f";

class KeyFileTest : public testing::Test {
 protected:
  std::string Write(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ / "k1.key";
    std::filesystem::remove(path);
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }

  Status Refusal(const std::string& text, mode_t mode = 0600) {
    return ReadKeyFile(Write(text, mode)).status();
  }

  TempDir folder_;
};

TEST_F(KeyFileTest, ReadsKeysOfEverySize) {
  for (const std::string& hex : {kHex, kHex + kHex.substr(16), kHex + kHex}) {
    const Result<SecretKey> key = ReadKeyFile(Write(hex + "\n"));
    ASSERT_TRUE(key.ok()) << key.status();
    ASSERT_EQ(key->bytes().size(), hex.size() / 2);
    EXPECT_EQ(key->bytes()[15], 15);
  }
  EXPECT_TRUE(ReadKeyFile(Write("ABCDEFabcdef00112233445566778899\r\n", 0400)).ok());
}

TEST_F(KeyFileTest, RefusesAFileThatOthersCanUse) {
  for (const mode_t mode : {0640u, 0604u, 0620u, 0602u, 0610u, 0601u, 0644u, 0666u, 0777u}) {
    const Status status = Refusal(kHex, mode);
    EXPECT_EQ(status.code(), Code::kDenied) << std::oct << mode;
    EXPECT_THAT(status.message(), HasSubstr("chmod 600"));
  }
}

TEST_F(KeyFileTest, RefusesAnInvalidKeyWithoutShowingIt) {
  for (const std::string& text :
       {std::string(), std::string("\n"), kHex.substr(1), kHex + "0", kHex + "\n" + kHex,
        "0x" + kHex, "g" + kHex.substr(1), kHex.substr(0, 16) + " " + kHex.substr(17),
        std::string(100'000, 'a'), std::string(32, '\0')}) {
    const Status status = Refusal(text);
    EXPECT_EQ(status.code(), Code::kInvalid) << text.substr(0, 70);
    EXPECT_THAT(status.message(), Not(HasSubstr("0102030405")));
  }
}

TEST_F(KeyFileTest, RefusesAPathThatIsNotAFile) {
  EXPECT_EQ(ReadKeyFile(folder_ / "none.key").code(), Code::kNotFound);
  EXPECT_EQ(ReadKeyFile(folder_.path().string()).code(), Code::kDenied);
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(ReadKeyFile(fifo).code(), Code::kDenied);
}

TEST_F(KeyFileTest, AMovedKeyLeavesTheSourceEmpty) {
  Result<SecretKey> key = ReadKeyFile(Write(kHex));
  SecretKey other = *std::move(key);
  EXPECT_EQ(key->bytes().size(), 0u);
  EXPECT_EQ(other.bytes().size(), 16u);
}

}  // namespace
}  // namespace firn
