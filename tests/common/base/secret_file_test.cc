#include "common/base/secret_file.h"

#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class SecretFileTest : public testing::Test {
 protected:
  std::string Write(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ / "secret";
    std::ofstream(path, std::ios::trunc) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  TempDir folder_;
};

TEST_F(SecretFileTest, GivesTheContentAsItIs) {
  EXPECT_EQ(ReadSecretFile(Write(" a\nb \n")).value_or(""), " a\nb \n");
  EXPECT_EQ(ReadSecretFile(Write("")).value_or("?"), "");
}

TEST_F(SecretFileTest, RefusesAFileThatOthersCanUse) {
  for (const mode_t mode : {0640u, 0604u, 0620u, 0601u}) {
    const Status refused = ReadSecretFile(Write("word", mode)).status();
    EXPECT_EQ(refused.code(), Code::kDenied) << mode;
    EXPECT_EQ(refused.message().find("word"), std::string::npos) << refused;
  }
}

TEST_F(SecretFileTest, RefusesWhatIsNoFileOrTooLarge) {
  EXPECT_EQ(ReadSecretFile(folder_ / "missing").code(), Code::kNotFound);
  EXPECT_EQ(ReadSecretFile(folder_.path()).code(), Code::kDenied);
  EXPECT_EQ(ReadSecretFile(Write(std::string(kSecretFileBytesMax + 1, 'x'))).code(),
            Code::kInvalid);
}

}  // namespace
}  // namespace firn
